/** Mails a link to the owner of an address: draws a token, keeps its hash, and has the token mailed. Finds a token that comes back. */
import { Context, type DateTime, Effect, Layer, Option, Redacted } from "effect"
import { InvalidToken } from "#domain/accounts/Account.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { type EmailPurpose, EmailTokens } from "#domain/accounts/EmailTokens.ts"
import { EmailQueue } from "#domain/email/EmailQueue.ts"

/** An account and its address. */
export interface Addressee {
  readonly accountId: string
  readonly email: string
}

const tokenBytes = 32

/** What is not of this form was never issued. */
const form = /^[\da-f]{64}$/u

const make = Effect.gen(function* () {
  const crypto = yield* Crypto
  const mails = yield* EmailQueue
  const tokens = yield* EmailTokens

  /** Joins the transaction of its caller. */
  const send = Effect.fn("EmailLinks.send")(function* (
    purpose: EmailPurpose,
    { accountId, email }: Addressee,
    issuedAt: DateTime.Utc
  ) {
    const token = hexOf(crypto.randomBytes(tokenBytes))
    yield* tokens.put(crypto.sha256Hex(token), { accountId, purpose, issuedAt })
    yield* mails.enqueue({ purpose, accountId, email, token: Redacted.make(token) })
  })

  const find = Effect.fnUntraced(function* (purpose: EmailPurpose, token: Redacted.Redacted) {
    const text = Redacted.value(token).toLowerCase()
    if (!form.test(text)) return yield* new InvalidToken({ purpose })
    const found = yield* tokens.find(crypto.sha256Hex(text), purpose)
    return yield* Option.match(found, { onNone: () => Effect.fail(new InvalidToken({ purpose })), onSome: Effect.succeed })
  })

  return { send, find }
})

const hexOf = (bytes: Uint8Array) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")

export class EmailLinks extends Context.Service<EmailLinks, Effect.Success<typeof make>>()("vatproof/domain/email/EmailLinks") {
  static readonly layer = Layer.effect(EmailLinks, make)
}
