/** A closed account keeps its events and receipts. */
import { cpSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { Effect, Schedule, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { formatVerifier } from "#events/log/merkle/NoteKeys.ts"
import { checkpointOf, layerSigned, newAuditor, signing, temporaryFolder } from "#test/support/Auditing.ts"
import { command, commandJson, commandWith } from "#test/support/CommandLine.ts"
import { showAccount, why } from "#test/support/Operations.ts"
import { confirm, receiptIdOf, receiptsPath } from "#test/support/PaidKey.ts"
import * as People from "#test/support/People.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"
import { signer } from "#test/support/log/Keys.ts"

const Closed = Schema.Struct({
  user_id: Schema.String,
  closed_at: Schema.String,
  revoked_keys: Schema.Int,
  changed: Schema.Boolean
})
const close = (who: string) => commandJson(Closed, "account", "close", who, ...why, "--by", "carol")

const started = Effect.gen(function* () {
  const service = yield* RunningService.RunningService
  const { accountId, email, token } = yield* People.newUser(service)
  yield* command("account", "plan", email, "business", ...why)
  const { key } = yield* People.issueKey(service, token, { name: "Ada's laptop" })
  return { service, accountId, email, token, key }
})

/** Returns the tables that have contact data of an account. */
const tablesAbout = Effect.fnUntraced(function* (accountId: string) {
  const sql = yield* SqlClient.SqlClient
  const tables = ["api_key_labels", "contacts", "mail_tokens", "outbox"]
  return yield* Effect.filter(tables, (table) =>
    Effect.map(sql`SELECT 1 FROM vatproof.${sql.literal(table)} WHERE account_id = ${accountId}`, (rows) => rows.length > 0)
  )
})

layer(layerSigned(), { excludeTestServices: true })("`vatproof account close`", (it) => {
  it.effect("revokes keys and logins on every replica, and erases the contact data", function* () {
    const { accountId, email, key, service, token } = yield* started
    const sql = yield* SqlClient.SqlClient
    const other = yield* RunningService.start(signing(yield* temporaryFolder))
    yield* People.issueKey(service, token)
    yield* service.post("/v1/auth/password-reset", { email })
    assert.strictEqual((yield* other.validate("ATU12345678", { key })).status, 200)
    assert.deepStrictEqual(yield* tablesAbout(accountId), ["api_key_labels", "contacts", "mail_tokens", "outbox"])

    assert.containSubset(yield* close(email), { user_id: accountId, revoked_keys: 2, changed: true })

    for (const replica of [service, other]) {
      assertProblem(yield* replica.validate("ATU12345678", { key }), "UNAUTHORIZED")
      assertProblem(yield* replica.post("/v1/auth/api-keys", {}, People.bearing(token)), "UNAUTHORIZED")
      assertProblem(yield* replica.get(receiptsPath, People.bearing(token)), "UNAUTHORIZED")
    }
    assertProblem(yield* People.logIn(service, email), "UNAUTHORIZED")
    assert.deepStrictEqual(yield* tablesAbout(accountId), [])
    assert.containSubset(yield* showAccount(accountId), { email: null, agent_id: null, active_keys: 0 })

    const events =
      yield* sql`SELECT type, metadata::json ->> 'actor' AS actor, metadata::json ->> 'reason' AS reason FROM vatproof.events
        WHERE stream_id = ${`account-${accountId}`} ORDER BY version DESC LIMIT 3`
    const who = { actor: "carol", reason: "a test" }
    assert.deepStrictEqual(
      events.map((event) => ({ ...event })),
      [
        { type: "AccountClosed", ...who },
        { type: "ApiKeyRevoked", ...who },
        { type: "ApiKeyRevoked", ...who }
      ]
    )

    const again = yield* People.signUp(service, email)
    assert.strictEqual(again.status, 201)
    assert.notStrictEqual((yield* showAccount(email)).user_id, accountId)
  })

  it.effect("keeps the receipts readable for auditors, and the log intact", function* () {
    const { email, key, service } = yield* started
    const receiptId = yield* receiptIdOf(yield* confirm(service, "DE123456789", key))
    yield* close(email)
    const { headers } = yield* newAuditor()
    const events = yield* service.get(`/v1/audit/events?receipt_id=${receiptId}`, { headers })
    assert.containSubset(events.body, { data: [{ type: "ReceiptIssued", data: { receipt: { receipt_id: receiptId } } }] })
    assert.notInclude(events.text, '"personal":null')
    yield* checkpointOf(service, Number(/"position":(\d+)/u.exec(events.text)?.[1]) + 1)
    const audited = yield* command("audit", "verify", "--key", formatVerifier(signer))
    assert.isNull(audited.failure, audited.output)
  })

  it.effect("leaves no active key, even if API keys are created concurrently", function* () {
    const { accountId, service, token } = yield* started
    const issue = service.post("/v1/auth/api-keys", {}, People.bearing(token))
    const [replies] = yield* Effect.all([Effect.replicateEffect(issue, 15, { concurrency: 15 }), close(accountId)], {
      concurrency: "unbounded"
    })
    assert.isTrue(
      replies.every(({ status }) => status === 201 || status === 401),
      JSON.stringify(replies)
    )
    assert.strictEqual((yield* showAccount(accountId)).active_keys, 0)
  })

  it.effect("changes nothing if the account is already closed", function* () {
    const { accountId } = yield* started
    const first = yield* close(accountId)
    assert.deepStrictEqual(yield* close(accountId), { ...first, revoked_keys: 0, changed: false })
  })

  it.effect("closes the account for `account plan`, which then fails", function* () {
    const { accountId } = yield* started
    yield* close(accountId)
    const { failure } = yield* command("account", "plan", accountId, "business", ...why)
    assert.strictEqual(failure, `There is no open account ${accountId}`)
  })
})

layer(RunningService.layerGround, { excludeTestServices: true })("`vatproof account close` without a mail server", (it) => {
  it.effect(
    "removes the mails of the account from its own folder at once, and from those of all replicas within a minute",
    function* () {
      const [one, other] = [yield* temporaryFolder, yield* temporaryFolder]
      const inFolder = (folder: string) =>
        Effect.sync(() => readdirSync(join(folder, "outbox")).filter((name) => name.endsWith(".eml")))
      const untilCount = (folder: string, count: number) =>
        inFolder(folder).pipe(
          Effect.repeat({ until: ({ length }) => length === count, schedule: Schedule.spaced("20 millis") }),
          Effect.timeout("20 seconds")
        )
      const withoutServer = { SMTP_URL: "", MAIL_FROM: "" }
      const service = yield* RunningService.start({ ...withoutServer, DATA_DIR: one })
      for (const email of ["ada@example.com", "grace@example.com"]) yield* People.signUpByBrowser(service, email)
      yield* untilCount(one, 2)
      cpSync(join(one, "outbox"), join(other, "outbox"), { recursive: true })
      const replica = yield* RunningService.start({ ...withoutServer, DATA_DIR: other })

      yield* commandWith({ DATA_DIR: one }, "account", "close", "ada@example.com", ...why)
      const kept = yield* inFolder(one)
      assert.lengthOf(kept, 1)
      yield* replica.travel("1 minute")
      assert.deepStrictEqual(yield* untilCount(other, 1), kept)
    }
  )
})
