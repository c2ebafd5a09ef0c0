import { Deferred, Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { Crypto } from "#domain/kernel/Crypto.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import * as MailServer from "#test/support/MailServer.ts"
import * as OutboxReplica from "#test/support/OutboxReplica.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

const ground = Layer.mergeAll(RunningService.layerGround, MailServer.layer(), NodeCrypto.layer)

/** Starts a service in a separate process, which the test kills. */
const victim = Effect.flatMap(MailServer.MailServer, ({ url }) =>
  RunningService.spawn({ SMTP_URL: Redacted.value(url), MAIL_FROM: "no-reply@vat.example" })
)

/** Commits the rows that a sign-up writes. */
const signUp = Effect.fnUntraced(function* (name: string) {
  const sql = yield* SqlClient.SqlClient
  const { uuidV7 } = yield* Crypto
  const [accountId, mailId] = [uuidV7(), uuidV7()]
  const email = `${name}@example.com`
  yield* Effect.gen(function* () {
    yield* sql`INSERT INTO vatproof.accounts (account_id, plan, created_at) VALUES (${accountId}, 'free', now())`
    yield* sql`INSERT INTO vatproof.contacts (account_id, email, email_key) VALUES (${accountId}, ${email}, ${email})`
    yield* sql`INSERT INTO vatproof.outbox (mail_id, account_id, purpose, email, expires_at)
      VALUES (${mailId}, ${accountId}, 'verify_email', ${email}, now() + interval '24 hours')`
  }).pipe(sql.withTransaction)
  return accountId
})

/** Makes the mail due again, as if the lease of the killed replica had expired. */
const leaseEnds = (accountId: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`UPDATE vatproof.outbox SET due_at = now() WHERE account_id = ${accountId} AND settled_at IS NULL`
  )

const countFor = (name: string) =>
  Effect.flatMap(MailServer.MailServer, ({ arrived }) =>
    Effect.map(arrived, (mails) => mails.filter(({ raw }) => raw.includes(`To: ${name}@example.com`)).length)
  )

layer(ground, { excludeTestServices: true })("The outbox after the kill of a replica", (it) => {
  it.effect("lets another replica send every mail whose delivery the killed replica had not recorded", function* () {
    const { next } = yield* MailServer.MailServer
    const [beforeMail, afterMail] = [yield* MailServer.hold, yield* MailServer.hold]
    const { ended, output, signal } = yield* victim
    yield* next({ at: "recipient", hold: beforeMail })
    const early = yield* signUp("early")
    yield* Deferred.await(beforeMail.reached)
    yield* next({ at: "end", hold: afterMail })
    const late = yield* signUp("late")
    yield* Deferred.await(afterMail.reached)
    yield* signal("SIGKILL")
    yield* ended
    yield* Deferred.succeed(afterMail.go, undefined)
    yield* OutboxReplica.make()
    for (const accountId of [early, late]) {
      yield* leaseEnds(accountId)
      yield* OutboxReplica.until(accountId, "sent")
    }
    assert.deepStrictEqual([yield* countFor("early"), yield* countFor("late")], [1, 2])
    assert.notInclude(yield* output, "example.com")
  })
})
