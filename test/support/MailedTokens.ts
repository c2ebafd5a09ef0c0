/** The tokens in the mails of a service. */
import { Effect, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import * as MailServer from "#test/support/MailServer.ts"

/** Waits for `count` tokens in the mails to an address, and returns them. `path` selects the links that contain the tokens. */
export const tokensFor = Effect.fnUntraced(function* (email: string, count: number, path = "verify-email") {
  const { arrived } = yield* MailServer.MailServer
  const tokens = Effect.map(arrived, (mails) =>
    mails
      .filter(({ session }) => session.envelope.rcptTo.some(({ address }) => address.toLowerCase() === email.toLowerCase()))
      .flatMap(({ parsed }) => new RegExp(`/${path}\\?token=([\\da-f]{64})`, "u").exec(parsed.text ?? "")?.[1] ?? [])
  )
  return yield* Effect.repeat(tokens, { schedule: Schedule.spaced("10 millis"), until: (found) => found.length >= count })
})

/** Waits until every requested mail is delivered. */
export const allDelivered = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const open = sql`SELECT mail_id FROM vatproof.outbox WHERE settled_at IS NULL`
  yield* Effect.repeat(open, { schedule: Schedule.spaced("10 millis"), until: (rows) => rows.length === 0 })
})
