/** The common parts of both simulated sources: parsed calls and answers. */
import type { VatId } from "#domain/vat/VatId.ts"

/**
 * An HTTP answer that is not yet sent. `outcome` is the code that an observer gets for the answer. `json` is the value that
 * `body` contains as text.
 */
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
  /** The identifier in an answer of the BZSt: 16 hexadecimal digits. */
  readonly id: string
  /** A consultation number in the form that VIES uses: 16 characters. */
  readonly consultationNumber: string
}

/**
 * A parsed check. `target` and `requester` are the texts in the request. `vatId` is undefined if `target` is not a well-formed
 * VAT ID. `isAccepted` is true if the source accepts the request. `answer` builds the reply for the given code, or from the
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
