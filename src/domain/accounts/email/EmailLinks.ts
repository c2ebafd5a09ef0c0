/**
 * Mails a link to the owner of an address: stores the hash of its token, and queues the mail. Finds the token when the link is opened. The
 * token is a keyed hash of the mail's id, which the delivery computes again, so no table contains a token.
 */
import { Context, type DateTime, Effect, Layer, Option, Redacted } from "effect"
import { InvalidToken } from "#domain/accounts/Account.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { type EmailPurpose, EmailTokens } from "#domain/accounts/EmailTokens.ts"
import { EmailQueue } from "#domain/accounts/email/EmailQueue.ts"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"

/** An account and its address. */
export interface Addressee {
  readonly accountId: string
  readonly email: string
}

/** Returns the token of a mail: 64 hex digits. */
export const tokenOf = (keyedHash: KeyedHash["Service"], mailId: string): Redacted.Redacted =>
  Redacted.make(keyedHash.of("mail", mailId))

/** The form of every issued token. Text in another form is rejected without a query. */
const form = /^[\da-f]{64}$/u

const make = Effect.gen(function* () {
  const crypto = yield* Crypto
  const keyedHash = yield* KeyedHash
  const mails = yield* EmailQueue
  const tokens = yield* EmailTokens

  /** Stores the hash of a new token and queues the mail. Joins the caller's transaction. */
  const send = Effect.fn("EmailLinks.send")(function* (
    purpose: EmailPurpose,
    { accountId, email }: Addressee,
    issuedAt: DateTime.Utc
  ) {
    const mailId = crypto.uuidV7()
    yield* tokens.put(crypto.sha256Hex(Redacted.value(tokenOf(keyedHash, mailId))), { accountId, purpose, issuedAt })
    yield* mails.enqueue({ mailId, purpose, accountId, email })
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

export class EmailLinks extends Context.Service<EmailLinks, Effect.Success<typeof make>>()(
  "vatproof/domain/accounts/email/EmailLinks"
) {
  static readonly layer = Layer.effect(EmailLinks, make)
}
