/** A service that sends its mails to a mail server of the test, and the verification tokens in them. */
import { Effect, Layer, Redacted, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import * as MailServer from "#test/support/MailServer.ts"
import * as RunningService from "#test/support/RunningService.ts"

export const layerGround = RunningService.layerGround.pipe(Layer.provideMerge(MailServer.layer()))

/** A replica that sends its mails to the mail server. */
export const replica = Effect.fnUntraced(function* (settings: RunningService.Settings = {}) {
  const { url } = yield* MailServer.MailServer
  return yield* RunningService.make({ SMTP_URL: Redacted.value(url), MAIL_FROM: "no-reply@vat.example", ...settings })
})

/** The tokens in the mails to an address, once there are so many: those to confirm it, or those of links to another path. */
export const tokensFor = Effect.fnUntraced(function* (email: string, count: number, path = "verify-email") {
  const { arrived } = yield* MailServer.MailServer
  const tokens = Effect.map(arrived, (mails) =>
    mails
      .filter(({ session }) => session.envelope.rcptTo.some(({ address }) => address === email))
      .flatMap(({ parsed }) => new RegExp(`/${path}\\?token=([\\da-f]{64})`, "u").exec(parsed.text ?? "")?.[1] ?? [])
  )
  return yield* Effect.repeat(tokens, { schedule: Schedule.spaced("10 millis"), until: (found) => found.length >= count })
})

/** Waits until every mail that was asked for has been delivered. */
export const allDelivered = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const open = sql`SELECT mail_id FROM vatproof.outbox WHERE settled_at IS NULL`
  yield* Effect.repeat(open, { schedule: Schedule.spaced("10 millis"), until: (rows) => rows.length === 0 })
})
