/** What the two simulated sources have in common: how a call is read and what an answer is made of. */
import type { VatId } from "#domain/vat/VatId.ts"

/** An HTTP answer before it is sent. `outcome` is the source's word for it, as the journal keeps it; `json` is what `body` says. */
export interface Reply {
  readonly status: number
  readonly outcome: string
  readonly body: string
  readonly json: unknown
  readonly headers: Readonly<Record<string, string>>
}

/** The things that differ from call to call: the time and fresh identifiers. */
export interface Stamp {
  /** Nanoseconds since 1970. */
  readonly nanos: bigint
  /** 16 hexadecimal digits. */
  readonly id: string
  /** 16 characters as VIES' consultation numbers have them. */
  readonly consultationNumber: string
}

/**
 * One check that was read. `asked` and `requester` are what the caller wrote; `vatId` is undefined when that is no structurally sound
 * VAT ID; `proper` says that the source's own checks of the request let it pass. `answer` builds the reply: with a code as that
 * code says, without one as the register says.
 */
export interface Question {
  readonly asked: string | null
  readonly requester: string | null
  readonly vatId: VatId | undefined
  readonly proper: boolean
  readonly answer: (stamp: Stamp, code: string | undefined) => Reply
}

/** A JSON reply. */
export const json = (status: number, outcome: string, body: object): Reply => ({
  status,
  outcome,
  body: JSON.stringify(body),
  json: body,
  headers: { "content-type": "application/json" }
})
