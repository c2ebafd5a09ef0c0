/** Attacks of one client on the account of another client, or on all clients. They take seconds and need no load. */
import { Clock, Effect, Fiber, FileSystem, Option, Schedule, Schema } from "effect"
import * as PostgresServer from "#test/faults/PostgresServer.ts"
import * as Scenario from "#test/faults/Scenario.ts"
import { command } from "#test/support/CommandLine.ts"
import { why } from "#test/support/Operations.ts"
import { confirm, receiptIdOf, receiptsPath } from "#test/support/PaidKey.ts"
import * as RawHttp from "#test/support/RawHttp.ts"
import * as People from "#test/support/People.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { Ask, Reply, ServiceClient } from "#test/support/ServiceClient.ts"
import * as TestDatabase from "#test/support/TestDatabase.ts"

/** Starts a replica with default limits, and creates a user with a password. */
const setUp = Effect.fnUntraced(function* (settings: RunningService.Settings = {}) {
  const server = yield* PostgresServer.make()
  const service = yield* Scenario.replica(server.url, { ...RunningService.ownLimits, SIGNUPS_PER_DAY: "100", ...settings })
  return { service, user: yield* People.newUser(service) }
})

const attacker = "203.0.113.66"
const owner = "198.51.100.7"

const timed = Effect.fnUntraced(function* <E, R>(request: Effect.Effect<Reply, E, R>) {
  const startedMs = yield* Clock.currentTimeMillis
  const { status } = yield* request
  return { status, ms: (yield* Clock.currentTimeMillis) - startedMs }
})

const statuses = (replies: ReadonlyArray<{ readonly status: number }>) =>
  Array.from(Map.groupBy(replies, ({ status }) => status))
    .toSorted(([one], [other]) => one - other)
    .map(([status, those]) => `${those.length} × ${status}`)
    .join(", ")

const median = (replies: ReadonlyArray<{ readonly ms: number }>) =>
  replies.map(({ ms }) => ms).toSorted((a, b) => a - b)[Math.floor(replies.length / 2)] ?? 0

const logins = (service: ServiceClient, email: string) =>
  Effect.forEach(Array.from({ length: 15 }), () => timed(People.logIn(service, email, { from: owner })))

const owners = "the password of the owner"
const attackers = "the password of the attacker"

/** Starts a replica in this process, whose clock can be moved, and reads the tokens in its mails. */
const setUpWithMails = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const server = yield* PostgresServer.make()
  const dataDir = yield* fs.makeTempDirectoryScoped({ prefix: "vatproof-faults-" })
  const database = yield* TestDatabase.describe(server.url, "faults")
  const service = yield* RunningService.start({ DATA_DIR: dataDir, NODE_ENV: "production" }).pipe(
    Effect.provideService(TestDatabase.TestDatabase, database)
  )
  const outbox = `${dataDir}/outbox`
  const find = Effect.fnUntraced(function* (email: string) {
    const names = (yield* Effect.orElseSucceed(fs.readDirectory(outbox), () => [])).filter((name) => name.endsWith(".eml"))
    const mails = yield* Effect.forEach(names.toSorted(), (name) => fs.readFileString(`${outbox}/${name}`))
    return mails.filter((mail) => mail.includes(email)).flatMap((mail) => /\?token=([\da-f]{64})/u.exec(mail)?.[1] ?? [])
  })
  /** Waits for `count` mails to an address, and returns the newest token. */
  const mailed = (email: string, count: number) =>
    Effect.map(
      Effect.repeat(find(email), { schedule: Schedule.spaced("20 millis"), until: (tokens) => tokens.length >= count }),
      (tokens) => tokens.at(-1) ?? ""
    )
  const signUp = (email: string, password: string, from: string) =>
    service.post("/v1/auth/signup", { email, password }, { from, headers: { "user-agent": People.browser } })
  const open = (token: string) => service.get("/v1/auth/verify-email", { query: { token } })
  const opens = (email: string, password: string, from: string) =>
    Effect.map(People.logIn(service, email, { password, from }), ({ status }) => status === 200)
  return { service, mailed, signUp, open, opens }
})

/** An attacker signs up with the owner's e-mail address before the owner does. */
export const hijack = Effect.gen(function* () {
  const { mailed, open, opens, service, signUp } = yield* setUpWithMails
  const later = "later@example.com"
  yield* signUp(later, attackers, attacker)
  const older = yield* mailed(later, 1)
  yield* service.travel("10 minutes")
  yield* signUp(later, owners, owner)
  const newer = yield* mailed(later, 2)
  const isOlderInvalid = (yield* open(older)).status === 400
  yield* open(newer)
  const isLockedLater = !(yield* opens(later, attackers, attacker)) && !(yield* opens(later, owners, owner))

  const sooner = "sooner@example.com"
  yield* signUp(sooner, attackers, attacker)
  yield* signUp(sooner, owners, owner)
  yield* open(yield* mailed(sooner, 1))
  const isLockedSooner = !(yield* opens(sooner, attackers, attacker)) && !(yield* opens(sooner, owners, owner))
  yield* service.post("/v1/auth/password-reset", { email: sooner }, { from: owner })
  const reset = (token: string) => service.post("/v1/auth/password-reset/confirm", { token, password: owners }, { from: owner })
  yield* reset(yield* mailed(sooner, 2))

  const taken = "taken@example.com"
  const session = yield* Effect.flatMap(
    service.post("/v1/auth/signup", { email: taken, password: attackers }, { from: attacker }),
    People.tokenIn
  )
  const keys = service.get("/v1/auth/api-keys", People.bearing(session))
  const before = (yield* keys).status
  yield* service.post("/v1/auth/password-reset", { email: taken }, { from: owner })
  yield* reset(yield* mailed(taken, 1))
  const after = (yield* keys).status

  const claim = Effect.fnUntraced(function* (statement: string, email: string) {
    const isSafe = !(yield* opens(email, attackers, attacker)) && (yield* opens(email, owners, owner))
    return {
      statement: `${statement}: the owner's password opens the account, and the attacker's does not`,
      holds: isSafe
    }
  })
  return {
    claims: [
      {
        statement: "the owner signs up after ten minutes and opens the newer mail: no password opens the account",
        holds: isOlderInvalid && isLockedLater
      },
      {
        statement: "the owner signs up within ten minutes and opens the only mail: no password opens the account",
        holds: isLockedSooner
      },
      yield* claim("the owner resets the password of that account", sooner),
      yield* claim("the owner resets the password of an account that a program signed up", taken),
      { statement: `the reset ends the attacker's login: ${before}, then ${after}`, holds: before === 200 && after === 401 }
    ],
    notes: []
  } satisfies Scenario.Trial
})

const decodeLink = Schema.decodeUnknownEffect(Schema.Struct({ link_id: Schema.String, url: Schema.String }))

/** Issues two receipts to one key, in a replica whose clock can be moved. `share` creates a one-day link to the first receipt. */
const setUpReceipts = Effect.gen(function* () {
  const server = yield* PostgresServer.make()
  const database = yield* TestDatabase.describe(server.url, "faults")
  const service = yield* RunningService.start().pipe(Effect.provideService(TestDatabase.TestDatabase, database))
  const { email, token } = yield* People.newUser(service)
  yield* Effect.provideService(command("account", "plan", email, "business", ...why), TestDatabase.TestDatabase, database)
  const { key } = yield* People.issueKey(service, token)
  const issue = (vatId: string) => Effect.flatMap(confirm(service, vatId, key), receiptIdOf)
  const [one, other] = [yield* issue("DE100440900"), yield* issue("DE100440901")]
  const share = Effect.gen(function* () {
    const reply = yield* service.post(`${receiptsPath}/${one}/links`, { expires_in_days: 1 }, { key })
    const { link_id, url } = yield* decodeLink(reply.body)
    return { linkId: link_id, secret: url.split("/").at(-1) ?? "" }
  })
  const open = (secret: string, more: Ask = {}) => timed(service.get(`/v1/receipt-links/${secret}`, more))
  const own = (receiptId: string, accept = "application/json") =>
    timed(service.get(`${receiptsPath}/${receiptId}`, { key, headers: { accept } }))
  const revoke = (linkId: string) => service.ask(`${receiptsPath}/${one}/links/${linkId}`, { key, method: "DELETE" })
  return { one, open, other, own, revoke, service, share }
})

/** An attacker with a link to one receipt tries to read other data, to use the link after its end, and to slow down the owner. */
export const receiptLink = Effect.gen(function* () {
  const { one, open, other, own, revoke, service, share } = yield* setUpReceipts
  const { linkId, secret } = yield* share
  const genuine = yield* open(secret)

  const altered = Array.from(secret, (was, at) => `${secret.slice(0, at)}${was === "1" ? "2" : "1"}${secret.slice(at + 1)}`)
  const guesses = yield* Effect.forEach([...altered, secret.replace(one, other), `${secret}0`, secret.slice(0, -1)], (guess) =>
    open(guess)
  )
  const elsewhere = yield* Effect.forEach([`${receiptsPath}/${one}`, `${receiptsPath}/${other}`, receiptsPath], (path) =>
    Effect.forEach([{ key: secret }, People.bearing(secret), { query: { token: secret } }], (more) =>
      timed(service.get(path, more))
    )
  )

  const flooding = yield* Effect.forkChild(
    Effect.forEach(Array.from({ length: 40 }), () => open(secret, { query: { format: "pdf" } }), { concurrency: "unbounded" })
  )
  const owned = yield* Effect.forEach([one, other], (receiptId) => own(receiptId, "application/pdf"))
  const flooded = yield* Fiber.join(flooding)

  yield* revoke(linkId)
  const revoked = yield* open(secret)
  const renewed = yield* share
  yield* service.travel("1 day")
  const expired = yield* open(renewed.secret)

  const all = (statement: string, replies: ReadonlyArray<{ readonly status: number }>, status: number) => ({
    statement: `${statement}: ${statuses(replies)}`,
    holds: replies.length > 0 && replies.every((reply) => reply.status === status)
  })
  return {
    claims: [
      all("the link opens its receipt", [genuine], 200),
      all("an altered character, another receipt's id or another length returns 404", guesses, 404),
      all("the link is rejected as a key and as a token", elsewhere.flat(), 401),
      {
        statement: `40 concurrent requests for PDFs return 200 or 429: ${statuses(flooded)}`,
        holds: flooded.every(({ status }) => status === 200 || status === 429)
      },
      all("meanwhile the owner's key reads its PDFs", owned, 200),
      all("a revoked link returns 404", [revoked], 404),
      all("an expired link returns 404", [expired], 404)
    ],
    notes: []
  } satisfies Scenario.Trial
})

/** One client guesses a password until it is rate limited. The user still logs in from another address. */
export const lockout = Effect.gen(function* () {
  const { service, user } = yield* setUp()
  const guesses = yield* Effect.forEach(Array.from({ length: 30 }), (_, index) =>
    timed(People.logIn(service, user.email, { password: `guess number ${index}`, from: attacker }))
  )
  const owners = yield* logins(service, user.email)
  return {
    claims: [
      {
        statement: `the guessing client is rejected after ten guesses: ${statuses(guesses)}`,
        holds: statuses(guesses) === "10 × 401, 20 × 429"
      },
      {
        statement: `the owner logs in from another address: ${statuses(owners)}`,
        holds: owners.every(({ status }) => status === 200)
      }
    ],
    notes: []
  } satisfies Scenario.Trial
})

/** One client keeps a hundred logins in flight. It is rate limited, and other clients log in as before. */
export const flood = Effect.gen(function* () {
  const { service, user } = yield* setUp()
  const before = yield* logins(service, user.email)
  const flooded: Array<Reply> = []
  const one = Effect.map(People.logIn(service, user.email, { from: attacker }), (reply) => flooded.push(reply))
  const flooding = yield* Effect.forkChild(
    Effect.forEach(Array.from({ length: 100 }), () => Effect.repeat(one, Schedule.spaced("2 seconds")), {
      concurrency: "unbounded"
    })
  )
  yield* Effect.repeat(
    Effect.sync(() => flooded.length),
    { schedule: Schedule.spaced("10 millis"), until: (count) => count >= 100 }
  )
  const meanwhile = yield* logins(service, user.email)
  yield* Fiber.interrupt(flooding)
  const refused = flooded.filter(({ status }) => status !== 200)
  return {
    claims: [
      {
        statement: `the flooding client gets 200, or 429 with Retry-After: ${statuses(flooded)}`,
        holds: refused.length > 0 && refused.every(({ headers, status }) => status === 429 && Number(headers["retry-after"]) >= 1)
      },
      { statement: `another client logs in: ${statuses(meanwhile)}`, holds: meanwhile.every(({ status }) => status === 200) },
      {
        statement: `a login of that client takes ${median(before)} ms without the flood, ${median(meanwhile)} ms during the flood`,
        holds: median(meanwhile) <= 10 * median(before)
      }
    ],
    notes: []
  } satisfies Scenario.Trial
})

const batchesPath = "/v1/batches"
const decodeBatch = Schema.decodeUnknownEffect(Schema.Struct({ batch_id: Schema.String, status: Schema.String }))

/** Begins an upload that never completes. Returns the error response, or null if the service accepts and reads the upload. */
const slowUpload = Effect.fnUntraced(function* (port: number, key: string) {
  const connection = yield* RawHttp.open(port)
  const head = [`POST ${batchesPath} HTTP/1.1`, "host: x", `x-api-key: ${key}`, "content-type: text/csv", "content-length: 9999"]
  yield* connection.send(`${head.join("\r\n")}\r\n\r\ncustom_id,vat_id\n`)
  const reply = Effect.map(
    connection.until((text) => text.includes('"error"')),
    RawHttp.readReply
  )
  return yield* Effect.timeoutOrElse(reply, { duration: "3 seconds", orElse: () => Effect.succeed(null) })
})

/** One client uploads far more items than its quota, keeps 500 requests waiting for the results, and keeps slow uploads open. */
export const batchFlood = Effect.gen(function* () {
  const { service } = yield* setUp({ PLAN_FREE_PER_MINUTE: "1000" })
  const [attackersKey, key] = [yield* service.newKey, yield* service.newKey]
  const validate = timed(service.get("/v1/validate/ATU12345678", { key }))
  const validations = Effect.replicateEffect(validate, 30)
  const upload = (ofKey: string, count: number, from: number) => {
    const items = Array.from({ length: count }, (_, item) => ({ custom_id: `${item}`, vat_id: `ATU${from + item}` }))
    return service.post(batchesPath, { items }, { key: ofKey })
  }
  yield* validate
  const before = yield* validations

  const { batch_id } = yield* Effect.flatMap(upload(attackersKey, 20_000, 20_000_000), ({ body }) => decodeBatch(body))
  const path = `${batchesPath}/${batch_id}`
  const read = Effect.flatMap(service.get(path, { key: attackersKey }), ({ body }) => decodeBatch(body))
  yield* Effect.forkChild(
    Effect.replicateEffect(service.get(path, { key: attackersKey, query: { wait: "30" } }), 500, { concurrency: "unbounded" })
  )
  const port = Number(new URL(service.baseUrl).port)
  const slow = yield* Effect.replicateEffect(slowUpload(port, attackersKey), 10, { concurrency: "unbounded" })
  const meanwhile = yield* validations
  const others = yield* timed(upload(key, 10, 30_000_000))
  const paused = yield* Effect.repeat(read, {
    schedule: Schedule.spaced("200 millis"),
    until: ({ status }) => status === "paused"
  }).pipe(Effect.timeoutOption("30 seconds"))

  const refused = slow.filter((reply) => reply !== null)
  return {
    claims: [
      {
        statement: `the service reads two of ten slow uploads of one key and rejects the others: ${statuses(refused)}`,
        holds: statuses(refused) === "8 × 429"
      },
      { statement: `another client uploads a batch: ${others.status}`, holds: others.status === 202 },
      { statement: `another client validates: ${statuses(meanwhile)}`, holds: meanwhile.every(({ status }) => status === 200) },
      {
        statement: `a validation of that client takes ${median(before)} ms without the flood, ${median(meanwhile)} ms during the flood`,
        holds: median(meanwhile) <= 10 * Math.max(median(before), 5)
      },
      { statement: "the batch is paused when the quota is used up", holds: Option.isSome(paused) }
    ],
    notes: []
  } satisfies Scenario.Trial
})
