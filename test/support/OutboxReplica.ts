/** The outbox of a replica, and signups that request mails. */
import { Effect, Layer, type LogLevel, References, Schedule, Schema, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { Crypto } from "#domain/kernel/Crypto.ts"
import * as PgKeyedHash from "#events/callers/PgKeyedHash.ts"
import { Outbox, type Pace } from "#events/accounts/Outbox.ts"
import * as SmtpMailer from "#infra/mail/SmtpMailer.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { MailServer } from "#test/support/MailServer.ts"
import * as Rows from "#test/support/Rows.ts"

/** Settings like the service's, with shorter intervals. */
export const soon: Pace = {
  firstRetry: "20 millis",
  longestRetry: "100 millis",
  lease: "900 millis",
  poll: "20 millis",
  grace: "2 seconds"
}

export const letterhead = {
  from: "Vatproof <no-reply@vat.example>",
  publicUrl: "https://vat.example",
  serviceName: "vatproof"
}

const mailer = Layer.unwrap(Effect.map(MailServer, ({ url }) => SmtpMailer.layer({ ...letterhead, url, name: "vat.example" })))

/** Starts an outbox. `stop` or the end of the scope stops it like SIGTERM. It logs nothing by default. */
export const make = Effect.fnUntraced(function* (pace: Pace = soon, logLevel: LogLevel.LogLevel = "None") {
  const scope = yield* Scope.fork(yield* Effect.scope)
  const outbox = Outbox.layer(pace).pipe(Layer.provide([mailer, PgKeyedHash.layer]))
  const context = yield* Layer.buildWithMemoMap(outbox, Layer.makeMemoMapUnsafe(), scope).pipe(
    Effect.provideService(References.MinimumLogLevel, logLevel)
  )
  const stop = Effect.flatMap(Effect.exit(Effect.void), (exit) => Scope.close(scope, exit))

  /** Creates an account for `<name>@example.com` and requests its mail in one transaction, which `then` may roll back. */
  const signUp = Effect.fnUntraced(function* (name: string, then: Effect.Effect<void, "undone"> = Effect.void) {
    const sql = yield* SqlClient.SqlClient
    const accountId = (yield* Crypto).uuidV7()
    const email = `${name}@example.com`
    yield* MigratedDatabase.execute(
      `INSERT INTO vatproof.accounts (account_id, plan, created_at) VALUES ('${accountId}', 'free', now())`
    )
    yield* Effect.gen(function* () {
      yield* ask(accountId, email)
      yield* sql`INSERT INTO vatproof.contacts (account_id, email, email_key) VALUES (${accountId}, ${email}, ${email})`
      yield* then
    }).pipe(sql.withTransaction)
    return accountId
  })

  /** Requests a mail to an account. */
  const ask = (accountId: string, email: string) =>
    Effect.gen(function* () {
      const mailId = (yield* Crypto).uuidV7()
      yield* (yield* Outbox).enqueue({ mailId, purpose: "verify_email", accountId, email })
    }).pipe(Effect.provide(context))

  return { signUp, ask, stop }
})

const MailRow = Schema.Struct({
  mail_id: Schema.String,
  state: Schema.String,
  email: Schema.NullOr(Schema.String),
  reply: Schema.NullOr(Schema.String),
  attempts: Schema.Int,
  due_in_ms: Schema.Int
})

/** Returns the mails of an account, oldest first. */
export const mailsOf = Effect.fnUntraced(function* (accountId: string) {
  return yield* Rows.all(
    MailRow.fields,
    (sql) => sql`SELECT mail_id, state, email, reply, attempts,
        (extract(epoch FROM due_at - clock_timestamp()) * 1000)::int AS due_in_ms
      FROM vatproof.outbox WHERE account_id = ${accountId} ORDER BY mail_id`
  )
})

/** Waits until the account's newest mail is in one of the states. */
export const until = (accountId: string, ...states: ReadonlyArray<string>) =>
  mailsOf(accountId).pipe(
    Effect.map((mails) => mails.at(-1)),
    Effect.flatMap((mail) => (mail !== undefined && states.includes(mail.state) ? Effect.succeed(mail) : Effect.fail("not yet"))),
    Effect.retry({ schedule: Schedule.spaced("10 millis"), while: (error) => error === "not yet" })
  )
