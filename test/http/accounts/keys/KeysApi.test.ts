/** Rotation and revocation of a key by its client. */
import { Effect, Schema } from "effect"
import { confirm, newPaidKey, receiptIdOf } from "#test/support/PaidKey.ts"
import * as People from "#test/support/People.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { ServiceClient } from "#test/support/ServiceClient.ts"
import { assert, layer } from "#test/support/Test.ts"

const decodeRotated = Schema.decodeUnknownEffect(
  Schema.Struct({
    id: Schema.String,
    prefix: Schema.String,
    key: Schema.String,
    old_key_valid_until: Schema.NullOr(Schema.DateTimeUtcFromString)
  })
)

const rotate = (service: ServiceClient, key: string, body: unknown = {}) =>
  Effect.flatMap(service.post("/v1/keys/rotate", body, { key }), (reply) => {
    assert.strictEqual(reply.status, 201, reply.text)
    return decodeRotated(reply.body)
  })

const statusOf = (service: ServiceClient, key: string) =>
  Effect.map(service.validate("ATU12345678", { key }), ({ status }) => status)

layer(RunningService.layerSharedGround, { excludeTestServices: true })("an API key", (it) => {
  it.effect("is replaced by a new key with the same usage and receipts; the old key stays valid for 24 hours", function* () {
    const [one, other] = [yield* RunningService.make(), yield* RunningService.make()]
    const key = yield* newPaidKey(one)
    const receiptId = yield* receiptIdOf(yield* confirm(one, "DE100999120", key))
    assert.strictEqual(yield* statusOf(other, key), 200)
    const rotated = yield* rotate(one, key)
    assert.strictEqual(rotated.id, rotated.key.slice(0, 12))
    for (const replica of [one, other]) {
      for (const secret of [key, rotated.key]) assert.strictEqual(yield* statusOf(replica, secret), 200)
    }
    const usage = yield* other.get("/v1/usage", { key: rotated.key })
    assert.containSubset(usage.body, { requests: { used: 6 } })
    const receipt = yield* other.get(`/v1/qualified-confirmations/${receiptId}`, { key: rotated.key })
    assert.strictEqual(receipt.status, 200)
    yield* other.travel("24 hours")
    assert.strictEqual(yield* statusOf(other, key), 401)
    assert.strictEqual(yield* statusOf(other, rotated.key), 200)
  })

  it.effect(
    "is rejected at once on every replica, as are all earlier keys, if a rotation with revoke_old replaces it",
    function* () {
      const [one, other] = [yield* RunningService.make(), yield* RunningService.make()]
      const first = yield* one.newKey
      const { key: second } = yield* rotate(one, first)
      for (const secret of [first, second]) assert.strictEqual(yield* statusOf(other, secret), 200)
      const { key: third, old_key_valid_until } = yield* rotate(one, second, { revoke_old: true })
      assert.isNull(old_key_valid_until)
      for (const replica of [one, other]) {
        for (const secret of [first, second]) assert.strictEqual(yield* statusOf(replica, secret), 401)
        assert.strictEqual(yield* statusOf(replica, third), 200)
      }
    }
  )

  it.effect("does not pass a change for a submission by its query", function* () {
    const service = yield* RunningService.make()
    const former = yield* service.newKey
    const items = [{ custom_id: "1", vat_id: "ATU12345678" }]
    const sent = yield* service.post("/v1/batches", { items }, { key: former })
    assert.strictEqual(sent.status, 202)
    const id = /"batch_id":"([^"]+)"/u.exec(JSON.stringify(sent.body))?.[1] ?? ""
    assert.notStrictEqual(id, "")
    yield* rotate(service, former)
    for (const path of [`/v1/batches/${id}/cancel`, `/v1/batches/${id}/cancel?x=/v1/batches`]) {
      assertProblem(yield* service.ask(path, { method: "POST", key: former, body: {} }), "API_KEY_REPLACED")
    }
    const link = "/v1/qualified-confirmations/VP-QC-20261125-AAAAAAAAAA/links?x=/v1/validations"
    assertProblem(yield* service.ask(link, { method: "POST", key: former, body: {} }), "API_KEY_REPLACED")
    assert.strictEqual((yield* service.post("/v1/batches?x=1", { items }, { key: former })).status, 202)
  })

  it.effect("validates and reads after a rotation, but changes nothing", function* () {
    const service = yield* RunningService.make()
    const former = yield* service.newKey
    const { key } = yield* rotate(service, former)
    for (const body of [{}, { revoke_old: true }]) {
      const { message } = assertProblem(yield* service.post("/v1/keys/rotate", body, { key: former }), "API_KEY_REPLACED")
      assert.include(message, "for changes send the key that replaced it")
    }
    const link = "/v1/qualified-confirmations/VP-QC-20261125-AAAAAAAAAA/links"
    const id = "01a21262-fcd9-710e-9a37-da162375c19e"
    for (const [method, path] of [
      ["DELETE", "/v1/keys/self"],
      ["DELETE", `/v1/validations/${id}`],
      ["POST", `/v1/batches/${id}/cancel`],
      ["POST", link],
      ["DELETE", `${link}/${id}`]
    ] as const) {
      assertProblem(yield* service.ask(path, { method, key: former, body: {} }), "API_KEY_REPLACED")
    }
    const submitted = yield* service.post("/v1/validations", { vat_id: "ATU12345678" }, { key: former })
    assert.include([200, 202], submitted.status)
    const items = [{ custom_id: "1", vat_id: "ATU12345678" }]
    assert.strictEqual((yield* service.post("/v1/batches", { items }, { key: former })).status, 202)
    for (const secret of [former, key]) {
      assert.strictEqual(yield* statusOf(service, secret), 200)
      assert.strictEqual((yield* service.get("/v1/usage", { key: secret })).status, 200)
    }
    const { token } = yield* People.newUser(service)
    const claim = (api_key: string) => service.post("/v1/auth/api-keys/claim", { api_key }, People.bearing(token))
    assertProblem(yield* claim(former), "NOT_FOUND")
    assert.strictEqual((yield* claim(key)).status, 200)
    assertProblem(yield* service.post("/v1/keys/rotate", {}, { key: former }), "UNAUTHORIZED")
    yield* rotate(service, key)
  })

  it.effect("is replaced by one of ten concurrent rotations on two replicas; the others change nothing", function* () {
    const both = [yield* RunningService.make(), yield* RunningService.make()] as const
    const key = yield* both[0].newKey
    const rotations = Array.from({ length: 10 }, (_, index) => both[index % 2 === 0 ? 0 : 1].post("/v1/keys/rotate", {}, { key }))
    const replies = yield* Effect.all(rotations, { concurrency: "unbounded" })
    const [rotated, ...more] = replies.filter(({ status }) => status === 201)
    assert.lengthOf(more, 0)
    for (const reply of replies.filter((one) => one !== rotated)) assertProblem(reply, "API_KEY_REPLACED")
    const { key: current } = yield* decodeRotated(rotated?.body)
    for (const secret of [key, current]) assert.strictEqual(yield* statusOf(both[1], secret), 200)
    assert.strictEqual((yield* both[1].ask("/v1/keys/self", { method: "DELETE", key: current })).status, 200)
    for (const secret of [key, current]) assert.strictEqual(yield* statusOf(both[0], secret), 401)
  })

  it.effect(
    "is listed under the id of the new key after a rotation; revoking that id revokes the old and the new key",
    function* () {
      const service = yield* RunningService.make()
      const { token } = yield* People.newUser(service)
      const { key } = yield* People.issueKey(service, token)
      const rotated = yield* rotate(service, key)
      const listed = yield* service.get("/v1/auth/api-keys", People.bearing(token))
      assert.containSubset(listed.body, { api_keys: [{ id: rotated.id, revoked: false }] })
      const path = `/v1/auth/api-keys/${rotated.id}`
      assert.strictEqual((yield* service.ask(path, { ...People.bearing(token), method: "DELETE" })).status, 200)
      for (const secret of [key, rotated.key]) assert.strictEqual(yield* statusOf(service, secret), 401)
    }
  )

  it.effect("can revoke itself, and is then rejected on every replica", function* () {
    const [one, other] = [yield* RunningService.make(), yield* RunningService.make()]
    const key = yield* one.newKey
    assert.strictEqual(yield* statusOf(other, key), 200)
    for (const body of [{ revoke_old: "yes" }, [], 7]) {
      assertProblem(yield* one.post("/v1/keys/rotate", body, { key }), "VALIDATION_ERROR")
    }
    assertProblem(yield* one.post("/v1/keys/rotate", {}), "UNAUTHORIZED")
    assertProblem(yield* one.ask("/v1/keys/self", { method: "DELETE" }), "UNAUTHORIZED")
    assert.strictEqual((yield* one.ask("/v1/keys/self", { method: "DELETE", key })).status, 200)
    for (const replica of [one, other]) assert.strictEqual(yield* statusOf(replica, key), 401)
    assertProblem(yield* one.ask("/v1/keys/self", { method: "DELETE", key }), "UNAUTHORIZED")
    assert.include(yield* RunningService.everythingLogged, '"by":"key"')
  })
})
