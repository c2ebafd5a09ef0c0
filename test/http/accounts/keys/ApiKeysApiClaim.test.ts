/** Claims of an agent's API key by an account with a login. */
import { Context, Effect, Layer, Schema } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fromEntropy } from "#domain/accounts/ApiKey.ts"
import { checkpointOf, newAuditor, signing, temporaryFolder } from "#test/support/Auditing.ts"
import { command, commandJson } from "#test/support/CommandLine.ts"
import * as ExportedLog from "#test/support/ExportedLog.ts"
import { why } from "#test/support/Operations.ts"
import { confirm, receiptIdOf, receiptsPath } from "#test/support/PaidKey.ts"
import * as People from "#test/support/People.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { ServiceClient } from "#test/support/ServiceClient.ts"
import { assert, layer } from "#test/support/Test.ts"
import * as Rows from "#test/support/Rows.ts"

const path = "/v1/auth/api-keys"
const claim = (service: ServiceClient, token: string, key: unknown) =>
  service.post(`${path}/claim`, { api_key: key }, People.bearing(token))
const statusOf = (service: ServiceClient, key: string) =>
  Effect.map(service.validate("ATU12345678", { key }), ({ status }) => status)
const decodeRotated = Schema.decodeUnknownEffect(Schema.Struct({ key: Schema.String }))
const decodeLink = Schema.decodeUnknownEffect(Schema.Struct({ url: Schema.String }))
const decodeEvents = Schema.decodeUnknownEffect(
  Schema.Struct({ data: Schema.Array(Schema.Struct({ type: Schema.String, position: Schema.Int })) })
)
const headOfLog = Effect.gen(function* () {
  return Number((yield* Rows.one({ head: Schema.BigInt }, (sql) => sql`SELECT next_position AS head FROM vatproof.logs`)).head)
})
const Report = Schema.Struct({ ok: Schema.Boolean, findings: Schema.Array(Schema.Json) })

/** A replica that signs the log, its folder, and a replica that does not sign the log. */
class Replicas extends Context.Service<Replicas, Effect.Success<typeof replicas>>()("vatproof/test/Replicas") {}

const limits = { PLAN_FREE_PER_MONTH: "50", PLAN_BUSINESS_PER_MONTH: "70" }

const replicas = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const signed = yield* RunningService.start({ ...signing(folder), ...limits })
  return { folder, signed, unsigned: yield* RunningService.start(limits) }
})

const testLayer = Layer.effect(Replicas, replicas).pipe(Layer.provideMerge(RunningService.layerGround))

layer(testLayer, { excludeTestServices: true })("a claimed key", (it) => {
  it.effect(
    "gets the plan of the claiming account on every replica, appears in its key list, and keeps its usage and receipts",
    function* () {
      const { folder, signed: one, unsigned: other } = yield* Replicas
      const { body } = yield* one.post("/v1/register", { agent_id: "claimed agent" })
      const { api_key: key } = yield* Schema.decodeUnknownEffect(Schema.Struct({ api_key: Schema.String }))(body)
      yield* command("account", "plan", "claimed agent", "business", ...why)
      const early = yield* receiptIdOf(yield* confirm(one, "DE100999121", key))
      const { url } = yield* decodeLink((yield* one.post(`${receiptsPath}/${early}/links`, {}, { key })).body)
      assert.strictEqual(yield* statusOf(other, key), 200)
      const { accountId, token } = yield* People.newUser(one)

      const claimed = yield* claim(one, token, key)
      const id = key.slice(0, 12)
      assert.containSubset(claimed, { status: 200, body: { id, prefix: id, name: "", revoked: false } })
      const again = yield* claim(other, token, key)
      assert.deepStrictEqual([again.status, again.body], [200, claimed.body])
      assert.deepStrictEqual((yield* other.get(path, People.bearing(token))).body, { api_keys: [claimed.body] })

      const usage = yield* other.get("/v1/usage", { key })
      assert.containSubset(usage.body, { plan: "free", requests: { used: 2, limit: 50 } })
      assertProblem(yield* confirm(other, "DE100999122", key), "PAYMENT_REQUIRED")
      yield* command("account", "plan", accountId, "business", ...why)
      const late = yield* receiptIdOf(yield* confirm(other, "DE100999122", key))
      const receipts = yield* other.get(receiptsPath, People.bearing(token))
      assert.containSubset(receipts.body, { data: [{ receipt_id: late }, { receipt_id: early }], next_cursor: null })
      for (const reader of [People.bearing(token), { key }]) {
        assert.strictEqual((yield* one.get(`${receiptsPath}/${early}`, reader)).status, 200)
      }
      const shared = new URL(url).pathname
      assert.strictEqual((yield* one.get(shared)).status, 200)

      const auditor = yield* newAuditor(accountId)
      const events = yield* one.get("/v1/audit/events", { headers: auditor.headers, query: { vat_id: "DE100999122" } })
      const [seen] = (yield* decodeEvents(events.body)).data
      assert.strictEqual(seen?.type, "ReceiptIssued")
      const hidden = { headers: auditor.headers, query: { vat_id: "DE100999121" } }
      assert.deepStrictEqual((yield* decodeEvents((yield* one.get("/v1/audit/events", hidden)).body)).data, [])

      yield* one.ask(`${path}/${id}`, { ...People.bearing(token), method: "DELETE" })
      for (const replica of [one, other]) assert.strictEqual(yield* statusOf(replica, key), 401)
      assert.strictEqual((yield* one.get(shared)).status, 200)
      assertProblem(yield* claim(one, token, key), "NOT_FOUND")

      yield* checkpointOf(one, (seen?.position ?? 0) + 1)
      assert.containSubset(yield* commandJson(Report, "audit", "verify", "--key", ExportedLog.key), { ok: true })
      const directory = join(folder, "export")
      assert.isNull((yield* command("audit", "export", "--out", directory)).failure)
      assert.containSubset(yield* ExportedLog.verify(directory), { ok: true, findings: [] })
      const validations = readFileSync(join(directory, "verifications.csv"), "utf8").trim().split("\r\n").slice(1)
      assert.isTrue(validations.length > 0 && validations.every((row) => row.includes(accountId)))
    }
  )

  it.effect("is exported with the account that it had before the claim if no checkpoint covers the claim yet", function* () {
    const { folder, signed, unsigned } = yield* Replicas
    const key = yield* signed.newKey
    assert.strictEqual(yield* statusOf(signed, key), 200)
    yield* checkpointOf(signed, yield* headOfLog)
    yield* signed.stop
    const { token } = yield* People.newUser(unsigned)
    assert.strictEqual((yield* claim(unsigned, token, key)).status, 200)
    const directory = join(folder, "export before the claim is signed")
    assert.isNull((yield* command("audit", "export", "--out", directory)).failure)
    assert.containSubset(yield* ExportedLog.verify(directory), { ok: true, findings: [] })
  })
})

layer(RunningService.layerSharedGround, { excludeTestServices: true })("an API key that an agent registered", (it) => {
  it.effect(
    "moves to only one of two accounts that claim it concurrently; after the claim, the secret from before its rotation is rejected",
    function* () {
      const [one, other] = [yield* RunningService.make(), yield* RunningService.make()]
      const former = yield* one.newKey
      const { key } = yield* decodeRotated((yield* one.post("/v1/keys/rotate", {}, { key: former })).body)
      const users = [yield* People.newUser(one), yield* People.newUser(other)]
      assertProblem(yield* claim(one, users[0]?.token ?? "", former), "NOT_FOUND")
      assert.strictEqual(yield* statusOf(other, former), 200)
      const replies = yield* Effect.forEach(
        [one, other, one, other],
        (service, index) => claim(service, users[index % 2]?.token ?? "", key),
        { concurrency: "unbounded" }
      )
      const [first, second, ...repeated] = replies.map(({ status }) => status)
      assert.deepStrictEqual([first, second].toSorted(), [200, 409])
      assert.deepStrictEqual(repeated, [first, second])
      for (const replica of [one, other]) {
        assert.deepStrictEqual([yield* statusOf(replica, former), yield* statusOf(replica, key)], [401, 200])
      }
    }
  )

  it.effect(
    "cannot be claimed if it belongs to another user's account, and an account can attempt at most 30 claims an hour",
    function* () {
      const service = yield* RunningService.make()
      const { token } = yield* People.newUser(service)
      const own = yield* People.issueKey(service, token)
      assert.containSubset(yield* claim(service, token, own.key), { status: 200, body: { id: own.id } })
      const stranger = yield* People.newUser(service)
      const refused = assertProblem(yield* claim(service, stranger.token, own.key), "API_KEY_NOT_CLAIMABLE")
      assert.include(refused.message, "/v1/register")
      for (const body of [{}, { api_key: 7 }, []]) {
        assertProblem(yield* service.post(`${path}/claim`, body, People.bearing(token)), "VALIDATION_ERROR")
      }
      assertProblem(yield* service.post(`${path}/claim`, { api_key: own.key }), "UNAUTHORIZED")
      const unknown = fromEntropy(new Uint8Array(64).fill(9)) ?? ""
      const { message } = assertProblem(yield* claim(service, stranger.token, unknown), "NOT_FOUND")
      const malformed = assertProblem(yield* claim(service, stranger.token, `${own.key}x`), "NOT_FOUND")
      assert.strictEqual(malformed.message, message)
      for (let index = 3; index < 30; index += 1) yield* claim(service, stranger.token, unknown)
      assertProblem(yield* claim(service, stranger.token, unknown), "RATE_LIMIT_EXCEEDED")
      assert.strictEqual((yield* claim(service, token, own.key)).status, 200)
      assert.notInclude(yield* RunningService.everythingLogged, own.key)
    }
  )
})
