/** The common parts of both simulated sources: parsed calls and answers. */
import type { VatId } from "#domain/vat/VatId.ts"

/** An HTTP answer before it is sent. `outcome` is the source's code for it in the journal; `json` is the content of `body`. */
export interface Reply {
  readonly status: number
  readonly outcome: string
  readonly body: string
  readonly json: unknown
  readonly headers: Readonly<Record<string, string>>
}

/** The parts of an answer that differ from call to call: the time and fresh identifiers. */
export interface Stamp {
  /** Nanoseconds since 1970. */
  readonly nanos: bigint
  /** 16 hexadecimal digits. */
  readonly id: string
  /** 16 characters in the form of VIES' consultation numbers. */
  readonly consultationNumber: string
}

/**
 * A parsed check. `target` and `requester` are the caller's texts; `vatId` is undefined if the text is not a well-formed VAT ID;
 * `isAccepted` means that the request passed the source's own checks. `answer` builds the reply: for the given code, or from the
 * register if `code` is undefined.
 */
export interface Question {
  readonly target: string | null
  readonly requester: string | null
  readonly vatId: VatId | undefined
  readonly isAccepted: boolean
  readonly answer: (stamp: Stamp, code: string | undefined) => Reply
}

export const json = (status: number, outcome: string, body: object): Reply => ({
  status,
  outcome,
  body: JSON.stringify(body),
  json: body,
  headers: { "content-type": "application/json" }
})
