import { Duration, Effect, Fiber, Schedule, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { confirm, newPaidKey } from "#test/support/PaidKey.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RegisterIds from "#test/benchmarks/load/RegisterIds.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { Ask, ServiceClient } from "#test/support/ServiceClient.ts"
import { assert, layer } from "#test/support/Test.ts"

const path = "/v1/updates"
const later = { prefer: "respond-async" }

const Page = Schema.Struct({
  data: Schema.Array(
    Schema.Struct({ id: Schema.String, type: Schema.String, data: Schema.Record(Schema.String, Schema.Unknown) })
  ),
  next_cursor: Schema.String,
  has_more: Schema.Boolean
})
const decodePage = Schema.decodeUnknownEffect(Page)
const decodeId = Schema.decodeUnknownEffect(
  Schema.Struct({ validation_id: Schema.optionalKey(Schema.String), batch_id: Schema.optionalKey(Schema.String) })
)

const read = (service: ServiceClient, key: string, query: Ask["query"] = {}) =>
  Effect.flatMap(service.get(path, { key, query }), ({ body, text }) =>
    Effect.mapError(decodePage(body), (error) => new Error(text, { cause: error }))
  )
const subjectOf = ({ data }: (typeof Page.Type)["data"][number]) => String(data["validation_id"] ?? data["batch_id"])

const submit = Effect.fnUntraced(function* (service: ServiceClient, key: string, vat_id: string, more: object = {}) {
  const reply = yield* service.post("/v1/validations", { vat_id, ...more }, { key, headers: later })
  return (yield* decodeId(reply.body)).validation_id ?? assert.fail(reply.text)
})

const submitBatch = Effect.fnUntraced(function* (service: ServiceClient, key: string, vatIds: ReadonlyArray<string>) {
  const items = vatIds.map((vat_id, index) => ({ custom_id: `ours ${index}`, vat_id }))
  const reply = yield* service.post("/v1/batches", { items }, { key })
  return (yield* decodeId(reply.body)).batch_id ?? assert.fail(reply.text)
})

/** Returns the ids of validations and batches in the order in which the log has their ends. */
const endsInLog = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
  const sql = yield* SqlClient.SqlClient
  const find = SqlSchema.findAll({
    Request: Schema.Void,
    Result: Schema.Struct({ id: Schema.String }),
    execute: () => sql`SELECT coalesce(causation_id::text, data::jsonb ->> 'batch_id') AS id FROM vatproof.events
      WHERE causation_id IS NOT NULL OR type = 'BatchCompleted' ORDER BY position`
  })
  return (yield* find(undefined)).map(({ id }) => id).filter((id) => ids.includes(id))
})

layer(RunningService.layer(), { excludeTestServices: true })("the updates of an API key", (it) => {
  it.effect(
    "have each end once and in the order of the log for a reader of several replicas, also after the kill of one",
    function* () {
      const one = yield* RunningService.RunningService
      const other = yield* RunningService.make()
      const victim = yield* RunningService.spawn()
      const key = yield* newPaidKey(one)
      const vatIds = Array.from({ length: 240 }, (_, index) => RegisterIds.roundRobin(index))
      const batches = [yield* submitBatch(victim, key, vatIds.slice(0, 150)), yield* submitBatch(one, key, ["nonsense"])]
      const singles = yield* Effect.forEach(
        vatIds.slice(150),
        (vatId, index) => submit(index % 2 === 0 ? victim : one, key, vatId),
        {
          concurrency: 8
        }
      )
      const expected = [...singles, ...batches]
      const seen: Array<(typeof Page.Type)["data"][number]> = []
      let query: Ask["query"] = { limit: "7", wait: "5" }
      for (let turn = 0; seen.length < expected.length; turn += 1) {
        if (turn === 3) yield* victim.signal("SIGKILL")
        const page: typeof Page.Type = yield* read(turn % 2 === 0 ? one : other, key, query)
        seen.push(...page.data)
        query = { ...query, after: page.next_cursor }
      }
      assert.deepStrictEqual(seen.map(subjectOf), yield* endsInLog(expected))
      assert.strictEqual(new Set(seen.map(({ id }) => id)).size, expected.length)
      assert.deepStrictEqual((yield* read(other, key, { ...query, wait: "0" })).data, [])
      const again = yield* read(other, key, { limit: "100" })
      const idsOf = (updates: (typeof Page.Type)["data"]) => updates.map(({ id }) => id)
      assert.deepStrictEqual(idsOf(again.data), idsOf(seen.slice(0, 100)), "every reader gets the same updates")
    },
    60_000
  )

  it.effect("say what has ended, without references, names and custom ids", function* () {
    const service = yield* RunningService.RunningService
    const key = yield* newPaidKey(service)
    const receipt = yield* confirm(service, "DE811115368", key)
    assert.strictEqual(receipt.status, 200)
    const answered = yield* submit(service, key, "ATU10580001", { reference: "our reference" })
    const waiting = yield* submit(service, key, "MT10999301")
    yield* service.ask(`/v1/validations/${waiting}`, { key, method: "DELETE" })
    const batch = yield* submitBatch(service, key, ["ATU10580002", "ATU10580002", "nonsense"])
    const { text } = yield* Effect.repeat(service.get(path, { key, query: { wait: "5" } }), {
      schedule: Schedule.recurs(20),
      until: ({ text }) => [answered, waiting, batch].every((id) => text.includes(id))
    })
    assert.notMatch(text, /our reference|ours 0|company/u)
    const { data } = yield* read(service, key)
    const of = (id: string) => data.find((update) => subjectOf(update) === id)
    assert.containSubset(of(answered), {
      type: "validation.final",
      data: { vat_id: "ATU10580001", valid: true, source: "vies", receipt_id: null }
    })
    assert.containSubset(of(waiting), { type: "validation.cancelled", data: { vat_id: "MT10999301", reason: "requested" } })
    const counts = { final: 1, expired: 0, cancelled: 0, invalid_format: 1, duplicates: 1 }
    assert.containSubset(of(batch), { type: "batch.completed", data: { counts } })
    assert.match(String(of(batch)?.data["url"]), new RegExp(`/v1/batches/${batch}$`, "u"))
    const filtered = yield* read(service, key, { types: "batch.completed,validation.cancelled" })
    assert.deepStrictEqual(
      filtered.data,
      data.filter(({ type }) => type !== "validation.final")
    )
  })

  it.effect("reach a client that waits when the end commits, of any type that it asked for", function* () {
    const service = yield* RunningService.RunningService
    const other = yield* RunningService.make()
    const key = yield* service.newKey
    const waiting = yield* submit(service, key, "MT10999301")
    const { next_cursor: after } = yield* read(service, key, { after: "now" })
    const query = { after, wait: "30", types: "validation.cancelled" }
    const clients = yield* Effect.forEach([service, other], (replica) =>
      Effect.forkChild(Effect.timed(read(replica, key, query)))
    )
    yield* submit(service, key, "ATU10580003")
    yield* service.ask(`/v1/validations/${waiting}`, { key, method: "DELETE" })
    for (const client of clients) {
      const [duration, { data }] = yield* Fiber.join(client)
      assert.deepStrictEqual(data.map(subjectOf), [waiting])
      assert.isBelow(Duration.toSeconds(duration), 20)
    }
    assert.deepStrictEqual((yield* read(service, key, { after: "now", wait: "1" })).data, [])
  })

  it.effect("are never visible to another key, whose cursors are refused", function* () {
    const service = yield* RunningService.RunningService
    const [key, stranger] = [yield* service.newKey, yield* service.newKey]
    yield* submit(service, key, "ATU10580004")
    const page = yield* Effect.repeat(read(service, key, { wait: "5" }), { until: ({ data }) => data.length === 1 })
    assert.deepStrictEqual((yield* read(service, stranger)).data, [])
    const refused = yield* service.get(path, { key: stranger, query: { after: page.next_cursor } })
    assertProblem(refused, "VALIDATION_ERROR")
    assert.include(refused.text, '"field":"after"')
    assertProblem(yield* service.get(path), "UNAUTHORIZED")
  })

  it.effect("are refused with the invalid parameter", function* () {
    const service = yield* RunningService.RunningService
    const key = yield* service.newKey
    const wrong = { after: "0", limit: "101", wait: "31", types: "validation.final,batch.paused" }
    for (const [name, value] of Object.entries(wrong)) {
      const reply = yield* service.get(path, { key, query: { [name]: value } })
      assertProblem(reply, "VALIDATION_ERROR")
      assert.include(reply.text, `"field":"${name}"`)
    }
  })
})
