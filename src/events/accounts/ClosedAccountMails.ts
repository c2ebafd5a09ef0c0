/** Removes the mails of closed accounts from the folder of this machine. Each replica does it, because replicas may have folders of their own. */
import { Context, Effect, Layer, Schedule, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { MailFolder } from "#domain/accounts/email/Mailer.ts"
import * as Worker from "#domain/concurrency/Worker.ts"
import { elementType, sqlArray } from "#events/log/database/SqlArray.ts"

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const folder = yield* MailFolder
  const findClosed = SqlSchema.findAll({
    Request: Schema.Array(Schema.String),
    Result: Schema.Struct({ account_id: Schema.String }),
    execute: (accounts) => sql`SELECT account_id FROM vatproof.accounts
      WHERE account_id = ANY (${sqlArray(accounts, elementType.uuid)}) AND closed_at IS NOT NULL`
  })
  const remove = Effect.gen(function* () {
    const closed = yield* findClosed(yield* folder.accounts)
    yield* Effect.forEach(closed, ({ account_id }) => folder.remove(account_id), { discard: true })
  })
  return { remove }
})

export class ClosedAccountMails extends Context.Service<ClosedAccountMails, Effect.Success<typeof make>>()(
  "vatproof/events/accounts/ClosedAccountMails"
) {
  static readonly layer = Layer.effect(ClosedAccountMails, make)

  /** Removes the mails now and each minute. A replica also writes mails that it claimed before the account was closed. */
  static readonly layerRepeated = Layer.effectDiscard(
    ClosedAccountMails.use(({ remove }) =>
      Worker.loop("Removing the mails of closed accounts", remove, { schedule: Schedule.spaced("1 minute") })
    )
  ).pipe(Layer.provide(ClosedAccountMails.layer))
}
