import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"
import * as People from "#test/support/People.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { ServiceClient } from "#test/support/ServiceClient.ts"
import { assert, layer } from "#test/support/Test.ts"

const path = "/v1/auth/api-keys"

const Listed = Schema.Struct({
  api_keys: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      prefix: Schema.String,
      name: Schema.String,
      created_at: Schema.String,
      revoked: Schema.Boolean
    })
  )
})
const decodeListed = Schema.decodeUnknownEffect(Listed, { onExcessProperty: "error" })

const list = (service: ServiceClient, token: string) =>
  Effect.flatMap(service.get(path, People.bearing(token)), ({ body }) =>
    Effect.map(decodeListed(body), ({ api_keys }) => api_keys)
  )

const create = (service: ServiceClient, token: string, body: unknown = {}) => service.post(path, body, People.bearing(token))

const revoke = (service: ServiceClient, token: string, id: string) =>
  service.ask(`${path}/${encodeURIComponent(id)}`, { ...People.bearing(token), method: "DELETE" })

const count = (replies: ReadonlyArray<{ readonly status: number }>, status: number) =>
  replies.filter((reply) => reply.status === status).length

layer(RunningService.layerShared(), { excludeTestServices: true })("an API key of an account", (it) => {
  it.effect("is shown in full only when it is created, and authenticates requests", function* () {
    const service = yield* RunningService.RunningService
    const { token } = yield* People.newUser(service)
    const reply = yield* create(service, token, { name: "Billing, nightly 🌙" })
    assert.strictEqual(reply.status, 201)
    assert.hasAllKeys(reply.body, ["id", "key", "prefix", "name", "created_at"])
    const { created_at, id, key } = yield* People.issueKey(service, token)
    assert.match(key, /^svc_live_[0-9A-Za-z]{38}$/u)
    assert.strictEqual(id, key.slice(0, 12))
    assert.match(created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/u)
    assert.containSubset(yield* service.validate("ATU12345678", { key }), {
      status: 200,
      headers: { "x-service-usage": "1/100000" }
    })
    const listed = yield* service.get(path, People.bearing(token))
    assert.notInclude(listed.text, key)
    assert.containSubset(listed.body, {
      api_keys: [
        { id, prefix: id, name: "", created_at, revoked: false },
        { name: "Billing, nightly 🌙", revoked: false }
      ]
    })
  })

  it.effect("is created without a body or with a name of at most 100 printable characters", function* () {
    const service = yield* RunningService.RunningService
    const { token } = yield* People.newUser(service)
    const empty = yield* service.ask(path, { ...People.bearing(token), method: "POST" })
    assert.containSubset(empty, { status: 201, body: { name: "" } })
    assert.containSubset(yield* create(service, token, { name: "" }), { status: 201, body: { name: "" } })
    assert.containSubset(yield* create(service, token, { name: "🌙".repeat(100) }), { status: 201 })
    for (const name of ["x".repeat(101), "🌙".repeat(101), "a\u0000b", "a\nb", 7, null, ["x"]]) {
      assertProblem(yield* create(service, token, { name }), "VALIDATION_ERROR")
    }
    for (const body of [[], "x", 7]) assertProblem(yield* create(service, token, body), "VALIDATION_ERROR")
    assert.lengthOf(yield* list(service, token), 3)
  })

  it.effect(
    "can be created, listed and revoked only with a login token; a missing token is reported before an invalid input",
    function* () {
      const service = yield* RunningService.RunningService
      const key = yield* service.newKey
      for (const more of [{}, { key }]) {
        assertProblem(yield* service.post(path, { name: 7 }, more), "UNAUTHORIZED")
        assertProblem(yield* service.get(path, more), "UNAUTHORIZED")
        assertProblem(yield* service.ask(`${path}/${key.slice(0, 12)}`, { ...more, method: "DELETE" }), "UNAUTHORIZED")
      }
    }
  )

  it.effect("is rejected on every replica after its revocation, and stays in the list of keys", function* () {
    const service = yield* RunningService.RunningService
    const other = yield* RunningService.make()
    const { token } = yield* People.newUser(service)
    const { id, key } = yield* People.issueKey(service, token, { name: "kept" })
    const { key: second } = yield* People.issueKey(other, token)
    for (const one of [service, other]) assert.strictEqual((yield* one.validate("ATU12345678", { key })).status, 200)
    const revoked = yield* revoke(service, token, id)
    assert.deepStrictEqual([revoked.status, revoked.body], [200, { message: `The API key ${id} is now revoked` }])
    for (const one of [service, other]) {
      assertProblem(yield* one.validate("ATU12345678", { key }), "UNAUTHORIZED")
      assertProblem(yield* one.get("/v1/usage", { key }), "UNAUTHORIZED")
      assert.strictEqual((yield* one.get("/v1/usage", { key: second })).status, 200)
    }
    const [, first] = yield* list(other, token)
    assert.containSubset(first, { id, name: "kept", revoked: true })
  })

  it.effect("can be revoked repeatedly and concurrently; only one event records the revocation", function* () {
    const both = [yield* RunningService.RunningService, yield* RunningService.make()] as const
    const sql = yield* SqlClient.SqlClient
    const { accountId, token } = yield* People.newUser(both[0])
    const { id } = yield* People.issueKey(both[0], token)
    const asked = Array.from({ length: 10 }, (_, index) => revoke(both[index % 2 === 0 ? 0 : 1], token, id))
    assert.strictEqual(count(yield* Effect.all(asked, { concurrency: "unbounded" }), 200), 10)
    const facts = yield* sql`SELECT type FROM vatproof.events WHERE stream_id = ${`account-${accountId}`} ORDER BY version`
    assert.deepStrictEqual(
      facts.map(({ type }) => type),
      ["AccountSignedUp", "EmailVerified", "ApiKeyIssued", "ApiKeyRevoked"]
    )
  })

  it.effect("can be neither listed nor revoked by another user", function* () {
    const service = yield* RunningService.RunningService
    const owner = yield* People.newUser(service)
    const other = yield* People.newUser(service)
    const { id, key } = yield* People.issueKey(service, owner.token)
    assertProblem(yield* revoke(service, other.token, id), "NOT_FOUND")
    assert.deepStrictEqual(yield* list(service, other.token), [])
    for (const none of ["svc_live_zzz", key, "x", "\u0000", "ü", "..%2f", "%", "' OR 1=1"]) {
      assertProblem(yield* revoke(service, owner.token, none), "NOT_FOUND")
    }
    assert.strictEqual((yield* service.get("/v1/usage", { key })).status, 200)
  })
})

layer(RunningService.layerShared(), { excludeTestServices: true })("the keys of an account", (it) => {
  it.effect("are limited to 25 active keys, even under concurrent calls to several replicas", function* () {
    const both = [yield* RunningService.RunningService, yield* RunningService.make()] as const
    const { token } = yield* People.newUser(both[0])
    const asked = Array.from({ length: 40 }, (_, index) => create(both[index % 2 === 0 ? 0 : 1], token))
    const replies = yield* Effect.all(asked, { concurrency: "unbounded" })
    assert.deepStrictEqual([count(replies, 201), count(replies, 429)], [25, 15])
    const refused = yield* create(both[0], token)
    assert.include(assertProblem(refused, "RATE_LIMIT_EXCEEDED").message, "25")
    assert.isDefined(refused.headers["retry-after"])
    const keys = yield* list(both[1], token)
    assert.strictEqual(new Set(keys.map(({ id }) => id)).size, 25)
    yield* revoke(both[1], token, keys[3]?.id ?? "")
    assert.strictEqual((yield* create(both[0], token)).status, 201)
  })
})
