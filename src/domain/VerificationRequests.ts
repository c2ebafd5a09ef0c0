/** Asks the owner of an address to confirm it: draws a token, keeps its hash, and has the token mailed. */
import { Context, type DateTime, Effect, Layer, Redacted } from "effect"
import { Hashing } from "#domain/Hashing.ts"
import { Randomness } from "#domain/Randomness.ts"
import { VerificationMails } from "#domain/VerificationMails.ts"
import { VerificationTokens } from "#domain/VerificationTokens.ts"

const tokenBytes = 32

const make = Effect.gen(function* () {
  const hashing = yield* Hashing
  const mails = yield* VerificationMails
  const random = yield* Randomness
  const tokens = yield* VerificationTokens

  return {
    /** Joins the transaction of its caller. */
    send: Effect.fn("VerificationRequests.send")(function* (accountId: string, email: string, issuedAt: DateTime.Utc) {
      const token = hexOf(yield* random.bytes(tokenBytes))
      yield* tokens.put(hashing.sha256(token), { accountId, issuedAt })
      yield* mails.enqueue({ accountId, email, token: Redacted.make(token) })
    })
  }
})

const hexOf = (bytes: Uint8Array) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")

export class VerificationRequests extends Context.Service<VerificationRequests, Effect.Success<typeof make>>()(
  "vatproof/domain/VerificationRequests"
) {
  static readonly layer = Layer.effect(VerificationRequests, make)
}
