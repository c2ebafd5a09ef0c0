/**
 * Mails a link to the owner of an address: generates a token, stores its
 * hash, and queues the mail. Finds the token when the link is opened.
 */
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

/** The form of every issued token. Text in another form is rejected without a query. */
const form = /^[\da-f]{64}$/u

const make = Effect.gen(function* () {
  const crypto = yield* Crypto
  const mails = yield* EmailQueue
  const tokens = yield* EmailTokens

  /** Generates a token, stores its hash and queues the mail. Joins the caller's transaction. */
  const send = Effect.fn("EmailLinks.send")(function* (
    purpose: EmailPurpose,
    { accountId, email }: Addressee,
    issuedAt: DateTime.Utc
  ) {
    const token = hexOf(crypto.randomBytes(tokenBytes))
    yield* tokens.put(crypto.sha256Hex(token), { accountId, purpose, issuedAt })
    yield* mails.enqueue({ purpose, accountId, email, token: Redacted.make(token) })
  })

  /** Returns the account of a token and the time of its issue. Fails with InvalidToken if the token is unknown or malformed. */
  const find = Effect.fnUntraced(function* (purpose: EmailPurpose, token: Redacted.Redacted) {
    const text = Redacted.value(token).toLowerCase()
    if (!form.test(text)) return yield* new InvalidToken({ purpose })
    const issued = yield* tokens.find(crypto.sha256Hex(text), purpose)
    return yield* Option.match(issued, { onNone: () => Effect.fail(new InvalidToken({ purpose })), onSome: Effect.succeed })
  })

  return { send, find }
})

const hexOf = (bytes: Uint8Array) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")

export class EmailLinks extends Context.Service<EmailLinks, Effect.Success<typeof make>>()("vatproof/domain/email/EmailLinks") {
  static readonly layer = Layer.effect(EmailLinks, make)
}
