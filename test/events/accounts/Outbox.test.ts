import { Deferred, Effect, Fiber, Layer, Logger, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"
import * as PgKeyedHash from "#events/callers/PgKeyedHash.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import * as MailServer from "#test/support/MailServer.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as OutboxReplica from "#test/support/OutboxReplica.ts"
import { assert, layer } from "#test/support/Test.ts"

const ground = Layer.mergeAll(MigratedDatabase.layer, MailServer.layer(), NodeCrypto.layer)

/** Returns the mails that the mail server received for an address. */
const arrivedFor = Effect.fnUntraced(function* (name: string) {
  const { arrived } = yield* MailServer.MailServer
  return (yield* arrived).filter(({ session }) =>
    session.envelope.rcptTo.some(({ address }) => address === `${name}@example.com`)
  )
})

layer(ground, { excludeTestServices: true })("Outbox", (it) => {
  it.effect("delivers a committed mail once, and then deletes the address", function* () {
    const { signUp } = yield* OutboxReplica.make()
    const row = yield* OutboxReplica.until(yield* signUp("plain"), "sent")
    assert.deepStrictEqual([row.email, row.reply, row.attempts], [null, "250", 1])
    const [mail, ...more] = yield* arrivedFor("plain")
    assert.deepStrictEqual(more, [])
    assert.strictEqual(mail?.parsed.messageId, `<${row.mail_id}@vat.example>`)
    assert.match(mail?.parsed.text ?? "", /https:\/\/vat\.example\/v1\/auth\/verify-email\?token=[\da-f]{64}\n/u)
  })

  it.effect("stores no token of a waiting mail, and sends the same token in each delivery", function* () {
    const sql = yield* SqlClient.SqlClient
    const { down, up } = yield* MailServer.MailServer
    const { signUp } = yield* OutboxReplica.make()
    yield* down
    const accountId = yield* signUp("secret")
    const stored = JSON.stringify(yield* sql`SELECT o::text FROM vatproof.outbox o WHERE account_id = ${accountId}`)
    assert.include(stored, "secret@example.com")
    yield* up
    const { mail_id } = yield* OutboxReplica.until(accountId, "sent")
    const [mail] = yield* arrivedFor("secret")
    const token = /token=([\da-f]{64})/u.exec(mail?.parsed.text ?? "")?.[1] ?? ""
    assert.strictEqual(token, (yield* Effect.provide(KeyedHash, PgKeyedHash.layer)).of("mail", mail_id))
    assert.notInclude(stored, token)
  })

  it.effect("delivers no mail of a transaction that was rolled back", function* () {
    const sql = yield* SqlClient.SqlClient
    const { signUp } = yield* OutboxReplica.make()
    assert.strictEqual(yield* Effect.flip(signUp("undone", Effect.fail("undone"))), "undone")
    yield* OutboxReplica.until(yield* signUp("after"), "sent")
    assert.strictEqual((yield* sql`SELECT 1 AS one FROM vatproof.outbox WHERE email = 'undone@example.com'`).length, 0)
    assert.deepStrictEqual(yield* arrivedFor("undone"), [])
  })

  const passing: ReadonlyArray<readonly [string, ReadonlyArray<MailServer.Conduct>]> = [
    ["the server defers the recipient", [{ at: "recipient", reply: 451 }]],
    ["the server defers the mail after receiving it", [{ at: "end", reply: 452 }]],
    ["the mail server is about to shut down", [{ at: "recipient", reply: 421 }]],
    ["the mail server rejects the sender", [{ at: "sender", reply: 550 }]],
    ["the connection drops at the recipient", [{ at: "recipient", drop: true }]],
    ["the connection drops in the middle of the mail", [{ at: "middle", drop: true }]],
    ["the connection drops after the mail, before the mail server answers", [{ at: "end", drop: true }]],
    ["the connection drops after the mail server has answered", [{ at: "after", drop: true }]],
    [
      "all these failures happen one after the other",
      [
        { at: "recipient", reply: 450 },
        { at: "middle", drop: true },
        { at: "end", reply: 451 },
        { at: "end", drop: true }
      ]
    ]
  ]
  for (const [name, conducts] of passing) {
    it.effect(`delivers a mail exactly once even if ${name}`, function* () {
      const { next } = yield* MailServer.MailServer
      const { signUp } = yield* OutboxReplica.make()
      const account = `passing-${passing.findIndex(([other]) => other === name)}`
      yield* next(...conducts)
      const row = yield* OutboxReplica.until(yield* signUp(account), "sent", "refused")
      assert.strictEqual(row.state, "sent")
      assert.strictEqual((yield* arrivedFor(account)).length, 1)
      const again = yield* signUp(`${account}-next`)
      yield* OutboxReplica.until(again, "sent")
      assert.strictEqual((yield* arrivedFor(account)).length, 1)
    })
  }

  const final: ReadonlyArray<readonly [string, MailServer.Conduct, string]> = [
    ["the recipient", { at: "recipient", reply: 550 }, "550"],
    ["the mail", { at: "end", reply: 554 }, "554"]
  ]
  for (const [what, conduct, reply] of final) {
    it.effect(`does not retry after the mail server rejects ${what} with 5xx, and delivers the next mail`, function* () {
      const { next } = yield* MailServer.MailServer
      const { signUp } = yield* OutboxReplica.make()
      yield* next(conduct)
      const refused = yield* signUp(`refused-${reply}`)
      const row = yield* OutboxReplica.until(refused, "refused")
      assert.deepStrictEqual([row.email, row.reply, row.attempts], [null, reply, 1])
      yield* OutboxReplica.until(yield* signUp(`accepted-${reply}`), "sent")
      assert.deepStrictEqual(yield* arrivedFor(`refused-${reply}`), [])
    })
  }

  it.effect("retries a mail until the mail server is available again", function* () {
    const { down, up } = yield* MailServer.MailServer
    const { signUp } = yield* OutboxReplica.make()
    yield* down
    const accountId = yield* signUp("away")
    yield* Effect.repeat(OutboxReplica.mailsOf(accountId), { until: ([mail]) => (mail?.attempts ?? 0) >= 3 })
    yield* up
    yield* OutboxReplica.until(accountId, "sent")
    assert.strictEqual((yield* arrivedFor("away")).length, 1)
  })

  it.effect("delivers every mail once even if two replicas deliver mails at the same time", function* () {
    const [one, other] = [yield* OutboxReplica.make(), yield* OutboxReplica.make()]
    const names = Array.from({ length: 40 }, (_, index) => `crowd-${index}`)
    const accounts = yield* Effect.forEach(names, (name, index) => (index % 2 === 0 ? one : other).signUp(name), {
      concurrency: 8
    })
    yield* Effect.forEach(accounts, (accountId) => OutboxReplica.until(accountId, "sent"), { concurrency: 4 })
    for (const name of names) assert.strictEqual((yield* arrivedFor(name)).length, 1, name)
  })

  it.effect("returns a mail to the queue if its replica stops and the mail server does not answer", function* () {
    const { next } = yield* MailServer.MailServer
    const first = yield* OutboxReplica.make()
    const hold = yield* MailServer.hold
    yield* next({ at: "recipient", hold })
    const accountId = yield* first.signUp("given-back")
    yield* Deferred.await(hold.reached)
    yield* first.stop
    const [row] = yield* OutboxReplica.mailsOf(accountId)
    assert.deepStrictEqual([row?.state, row?.reply], ["waiting", "interrupted"])
    assert.isAtMost(row?.due_in_ms ?? 1, 0)
    yield* OutboxReplica.make()
    yield* OutboxReplica.until(accountId, "sent")
    assert.strictEqual((yield* arrivedFor("given-back")).length, 1)
  })

  it.effect("ends its delivery of a mail that another replica has claimed, and announces no retry", function* () {
    const sql = yield* SqlClient.SqlClient
    const { next } = yield* MailServer.MailServer
    const lines: Array<string> = []
    const keep = Logger.make(({ logLevel, message }) => void lines.push(`${logLevel} ${String(message)}`))
    const replica = yield* Effect.provide(OutboxReplica.make(OutboxReplica.soon, "Info"), Logger.layer([keep]))
    const hold = yield* MailServer.hold
    yield* next({ at: "recipient", hold })
    const accountId = yield* replica.signUp("taken-over")
    yield* Deferred.await(hold.reached)
    const [row] = yield* sql`UPDATE vatproof.outbox SET claim = gen_random_uuid(), due_at = now() + interval '1 hour'
      WHERE account_id = ${accountId} RETURNING mail_id`
    yield* Effect.repeat(
      Effect.sync(() => lines.length),
      { until: (count) => count > 0, schedule: Schedule.spaced("10 millis") }
    )
    assert.deepStrictEqual(lines, [`Info This replica lost its claim on mail ${String(row?.["mail_id"])} and ended the delivery`])
    yield* replica.stop
    assert.strictEqual((yield* OutboxReplica.mailsOf(accountId))[0]?.state, "claimed")
  })

  it.effect("waits for the answer to a mail in flight when its replica stops", function* () {
    const { next } = yield* MailServer.MailServer
    const first = yield* OutboxReplica.make()
    const hold = yield* MailServer.hold
    yield* next({ at: "end", hold })
    const accountId = yield* first.signUp("awaited")
    yield* Deferred.await(hold.reached)
    const stopped = yield* Effect.forkScoped(first.stop, { startImmediately: true })
    yield* Deferred.succeed(hold.go, undefined)
    yield* Fiber.join(stopped)
    assert.strictEqual((yield* OutboxReplica.mailsOf(accountId))[0]?.state, "sent")
  })

  const takeStock = Effect.fnUntraced(function* (accountId: string) {
    return (yield* OutboxReplica.mailsOf(accountId)).map(({ email, state }) => [state, email])
  })
  /** Delays an account's queued mail by 10 minutes, like the retry of a mail after many attempts. */
  const waitLong = (accountId: string) =>
    Effect.flatMap(
      SqlClient.SqlClient,
      (sql) => sql`UPDATE vatproof.outbox SET due_at = now() + interval '10 minutes' WHERE account_id = ${accountId}`
    )

  it.effect("replaces a waiting mail by a newer mail with the same purpose", function* () {
    const { down, up } = yield* MailServer.MailServer
    const { ask, signUp } = yield* OutboxReplica.make()
    yield* down
    const accountId = yield* signUp("twice")
    yield* Effect.repeat(OutboxReplica.mailsOf(accountId), {
      until: ([mail]) => mail?.attempts === 2 && mail.state === "waiting"
    })
    yield* waitLong(accountId)
    yield* up
    yield* ask(accountId, "twice@example.com")
    yield* OutboxReplica.until(accountId, "sent")
    assert.deepStrictEqual(yield* takeStock(accountId), [
      ["superseded", null],
      ["sent", null]
    ])
    assert.strictEqual((yield* arrivedFor("twice")).length, 1)
  })

  const pointless: ReadonlyArray<readonly [string, (accountId: string) => string, string]> = [
    [
      "its address has been confirmed in the meantime",
      (accountId) => `UPDATE vatproof.accounts SET verified_at = now() WHERE account_id = '${accountId}'`,
      "needless"
    ],
    [
      "its token has expired",
      (accountId) => `UPDATE vatproof.outbox SET expires_at = now() WHERE account_id = '${accountId}'`,
      "expired"
    ]
  ]
  for (const [reason, come, state] of pointless) {
    it.effect(`does not send a mail if ${reason}`, function* () {
      const { down, up } = yield* MailServer.MailServer
      const { signUp } = yield* OutboxReplica.make()
      yield* down
      const accountId = yield* signUp(`pointless-${state}`)
      yield* MigratedDatabase.execute(come(accountId))
      yield* OutboxReplica.until(accountId, state)
      yield* up
      assert.deepStrictEqual(yield* takeStock(accountId), [[state, null]])
      assert.deepStrictEqual(yield* arrivedFor(`pointless-${state}`), [])
    })
  }

  it.effect("deletes the queued mails of an account when its contact data is erased", function* () {
    const sql = yield* SqlClient.SqlClient
    const { down, up } = yield* MailServer.MailServer
    const { signUp } = yield* OutboxReplica.make()
    yield* down
    const accountId = yield* signUp("erased")
    yield* sql`DELETE FROM vatproof.contacts WHERE account_id = ${accountId}`
    yield* up
    assert.deepStrictEqual(yield* OutboxReplica.mailsOf(accountId), [])
  })
})
