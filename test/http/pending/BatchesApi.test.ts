import { assert, layer } from "#test/support/Test.ts"
import { DateTime, Effect, Schedule, Schema } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { SqlClient, SqlSchema } from "effect/sql"
import { Sandbox } from "#test/support/Sandbox.ts"
import { confirm, newPaidKey } from "#test/support/PaidKey.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { Reply } from "#test/support/ServiceClient.ts"

const path = "/v1/batches"

const decodeBatch = Schema.decodeUnknownEffect(Schema.Struct({ batch_id: Schema.String }))
const decodeTimes = Schema.decodeUnknownEffect(
  Schema.Struct({
    accepted_at: Schema.DateTimeUtcFromString,
    batch_id: Schema.String,
    estimated_end: Schema.NullOr(Schema.DateTimeUtcFromString)
  })
)
const idOf = ({ body }: Reply) => Effect.map(decodeBatch(body), ({ batch_id }) => batch_id)

/** Uploads exactly these bytes as the body, with any content type. */
const upload = Effect.fnUntraced(function* (key: string, contentType: string, body: string | Uint8Array) {
  const { baseUrl } = yield* RunningService.RunningService
  const http = yield* HttpClient.HttpClient
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body
  const request = HttpClientRequest.post(baseUrl + path).pipe(
    HttpClientRequest.setHeaders({ "x-api-key": key }),
    HttpClientRequest.bodyUint8Array(bytes, contentType)
  )
  const response = yield* http.execute(request)
  const text = yield* response.text
  const reply: Reply = { status: response.status, headers: response.headers, text, body: JSON.parse(text) }
  return reply
})

const countOf = Effect.fnUntraced(function* (table: "events" | "uploads") {
  const sql = yield* SqlClient.SqlClient
  const find = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ count: Schema.BigInt }),
    execute: () =>
      table === "uploads"
        ? sql`SELECT count(*) AS count FROM vatproof.uploads`
        : sql`SELECT count(*) AS count FROM vatproof.events WHERE type LIKE 'Batch%'`
  })
  return Number((yield* find()).count)
})

const finished = Effect.fnUntraced(function* (key: string, id: string) {
  const { get } = yield* RunningService.RunningService
  return yield* Effect.repeat(get(`${path}/${id}`, { key, query: { wait: "20" } }), {
    schedule: Schedule.spaced("100 millis"),
    until: ({ text }) => text.includes('"pending":0')
  })
})

const items = [{ custom_id: "a", vat_id: "ATU10550001" }]

layer(RunningService.layer(), { excludeTestServices: true })("the batch API", (it) => {
  it.effect(
    "returns a result for every item in the order of the input, and charges neither malformed nor repeated VAT IDs",
    function* () {
      const { get, newKey } = yield* RunningService.RunningService
      const key = yield* newKey
      const rows = ['"=one";ATU10550001;=1+1;a', "-5;NO123;;b", '+49;ATU 10550001;"Köln\n""Süd""";c', "four;ATU10550002;#end,;d"]
      const lines = ["custom_id;vat_id;My City;n", ...rows]
      const reply = yield* upload(key, "text/csv", `\u{feff}${lines.join("\r\n")}`)
      assert.strictEqual(reply.status, 202, reply.text)
      const id = yield* idOf(reply)
      assert.strictEqual(reply.headers["location"], `${path}/${id}`)
      assert.containSubset((yield* finished(key, id)).body, {
        status: "finished",
        counts: { total: 4, pending: 0, final: 2, invalid_format: 1, duplicates: 1, expired: 0, cancelled: 0 },
        estimated_end: null
      })
      const first = yield* get(`${path}/${id}/results`, { key, query: { limit: "3" } })
      assert.containSubset(first.body, {
        data: [
          { custom_id: "=one", vat_id: "ATU10550001", status: "final", valid: true },
          { custom_id: "-5", vat_id: "NO123", status: "invalid_format" },
          { custom_id: "+49", vat_id: "ATU10550001", status: "final", valid: true }
        ]
      })
      const { next_cursor } = yield* Schema.decodeUnknownEffect(Schema.Struct({ next_cursor: Schema.String }))(first.body)
      const second = yield* get(`${path}/${id}/results`, { key, query: { cursor: next_cursor } })
      assert.containSubset(second.body, { data: [{ custom_id: "four", status: "final" }], next_cursor: null })
      const ndjson = yield* get(`${path}/${id}/results`, { key, headers: { accept: "application/x-ndjson" } })
      assert.deepStrictEqual(ndjson.text.trimEnd().split("\n").length, 5)
      assert.match(ndjson.text, /\{"end":true,"complete":true,"items":4\}\n$/u)
      const table = yield* get(`${path}/${id}/results`, { key, headers: { accept: "text/csv" } })
      assert.match(table.text, /^custom_id,vat_id,status,[^\n]*,receipt_id,"My City","n"\r\n"'=one","ATU10550001","final",true,/u)
      assert.match(table.text, /,"=1\+1","a"\r\n"-5",.*,"","b"\r\n"\+49",.*,"Köln\n""Süd""","c"\r\n"four",.*,"#end,","d"\r\n/u)
      assert.match(table.text, /\r\n#end,,complete,{11}\r\n$/u)
      const usage = yield* get("/v1/usage", { key })
      assert.strictEqual(usage.headers["x-service-usage"], "2/100000")
      assert.containSubset((yield* get(path, { key })).body, { data: [{ batch_id: id }], next_cursor: null })
      assertProblem(yield* get(`${path}/${id}`, { key: yield* newKey }), "NOT_FOUND")
      assert.containSubset((yield* get("/v1/validations", { key })).body, { data: [], next_cursor: null })
    }
  )

  it.effect(
    "returns the company name from an earlier answer of VIES if the cached answer is a qualified confirmation, which has no name",
    function* () {
      const service = yield* RunningService.make(RunningService.otherSettings)
      const key = yield* newPaidKey(service)
      const vatId = "EL100550010"
      const names = { company_name: "ΠΑΡΑΔΕΙΓΜΑ Α.Ε.", company_address: "ΕΡΜΟΥ 1\n10563 ΑΘΗΝΑ" }
      assert.containSubset((yield* service.validate(vatId, { key })).body, names)
      assert.containSubset((yield* confirm(service, vatId, key)).body, { source: "bzst", company_name: null })
      const id = yield* idOf(yield* service.post(path, { items: [{ custom_id: "one", vat_id: vatId }] }, { key }))
      yield* finished(key, id)
      assert.containSubset((yield* service.get(`${path}/${id}/results`, { key })).body, { data: [{ source: "cache", ...names }] })
    }
  )

  it.effect("rejects an invalid upload as a whole, and names the invalid line in the error", function* () {
    const { newKey } = yield* RunningService.RunningService
    const key = yield* newKey
    const before = yield* countOf("events")
    const good = (item: number) => `{"custom_id":"${item}","vat_id":"ATU10550001"}`
    const ndjson = "application/x-ndjson"
    const uploads = [
      [
        ndjson,
        Array.from({ length: 1_200 }, (_, item) => good(item))
          .with(1_099, "{")
          .join("\n"),
        "line 1100"
      ],
      ["text/csv", 'custom_id,vat_id\na,"ATU', "line 2"],
      ["text/csv", Uint8Array.of(0xff, 0xfe, 0x61, 0), "line 1"],
      ["application/json", `{"items":[${good(1)},${good(2)}`, "line 1"]
    ] as const
    for (const [type, body, line] of uploads) {
      const reply = yield* upload(key, type, body)
      assertProblem(reply, "VALIDATION_ERROR")
      assert.include(reply.text, line)
    }
    assertProblem(yield* upload(key, "text/plain", good(1)), "UNSUPPORTED_MEDIA_TYPE")
    assertProblem(yield* upload(key, ndjson, `${" ".repeat(1_000)}\n`.repeat((21 * 1024 * 1024) / 1_000)), "PAYLOAD_TOO_LARGE")
    assert.deepStrictEqual([yield* countOf("events"), yield* countOf("uploads")], [before, 0])
  })

  it.effect("accepts one batch per Idempotency-Key, and cancels the pending items of a batch on request", function* () {
    const { get, newKey, post } = yield* RunningService.RunningService
    const sandbox = yield* Sandbox
    const key = yield* newKey
    yield* sandbox.configure({ vies_unavailable_member_states: ["SE"] })
    const headers = { "idempotency-key": "list of November" }
    const items = [
      { custom_id: "a", vat_id: "SE556000000001" },
      { custom_id: "b", vat_id: "nonsense" }
    ]
    const reply = yield* post(path, { items }, { key, headers })
    const id = yield* idOf(reply)
    const spelled = [{ custom_id: "a", vat_id: "se 5560000000-01" }, ...items.slice(1)]
    const again = yield* post(path, { items: spelled }, { key, headers })
    assert.deepStrictEqual([again.status, yield* idOf(again), again.headers["idempotent-replayed"]], [202, id, "true"])
    assertProblem(yield* post(path, { items: items.slice(1) }, { key, headers }), "IDEMPOTENCY_KEY_REUSED")
    const misspelled = yield* get(`${path}/${id}/results`, { key, query: { curser: "a" } })
    assert.include(assertProblem(misspelled, "VALIDATION_ERROR").message, "did you mean cursor?")
    const invalid = yield* get(`${path}/${id}/results`, { key, query: { cursor: "a" } })
    const { details, message } = assertProblem(invalid, "VALIDATION_ERROR")
    assert.strictEqual(message, "cursor: Expected the next_cursor of the previous page of the same list")
    assert.containSubset(details, [{ field: "cursor" }])
    const attempted = yield* Effect.repeat(get(`${path}/${id}/results`, { key }), {
      schedule: Schedule.spaced("100 millis"),
      until: ({ text }) => text.includes("MS_UNAVAILABLE")
    })
    assert.containSubset(attempted.body, {
      data: [{ status: "pending", last_failure: { source: "vies", code: "MS_UNAVAILABLE" } }]
    })
    const cancelled = yield* post(`${path}/${id}/cancel`, undefined, { key })
    assert.containSubset(cancelled.body, { status: "cancelled", counts: { pending: 0, cancelled: 1, invalid_format: 1 } })
    assert.deepStrictEqual((yield* post(`${path}/${id}/cancel`, undefined, { key })).body, cancelled.body)
    yield* sandbox.configure({ vies_unavailable_member_states: [] })
  })

  it.effect(
    "returns the pages of a batch that is stored in several chunks, and cancels its pending items on request",
    function* () {
      const { get, newKey, post } = yield* RunningService.RunningService
      const sandbox = yield* Sandbox
      const key = yield* newKey
      yield* sandbox.configure({ vies_unavailable_member_states: ["SE"] })
      const vatIdOf = (item: number) => (item === 1_100 ? "ATU10550001" : `SE${556_000_000_000 + (item % 1_098)}01`.slice(0, 14))
      const lines = Array.from({ length: 1_101 }, (_, item) => JSON.stringify({ custom_id: `${item}`, vat_id: vatIdOf(item) }))
      const id = yield* idOf(yield* upload(key, "application/x-ndjson", lines.join("\n")))
      const attempted = yield* Effect.repeat(get(`${path}/${id}/results`, { key, query: { limit: "500" } }), {
        schedule: Schedule.spaced("100 millis"),
        until: ({ text }) => text.includes("MS_UNAVAILABLE")
      })
      const { next_cursor } = yield* Schema.decodeUnknownEffect(Schema.Struct({ next_cursor: Schema.String }))(attempted.body)
      // The items of the second chunk may not be in the log yet.
      const second = yield* Effect.repeat(get(`${path}/${id}/results`, { key, query: { cursor: next_cursor, limit: "1" } }), {
        schedule: Schedule.spaced("100 millis"),
        until: ({ text }) => !text.startsWith('{"data":[]')
      })
      assert.containSubset(second.body, { data: [{ custom_id: "500" }] })
      yield* Effect.repeat(get(`${path}/${id}`, { key }), {
        schedule: Schedule.spaced("100 millis"),
        until: ({ text }) => text.includes('"final":1')
      })
      yield* post(`${path}/${id}/cancel`, undefined, { key })
      assert.containSubset((yield* finished(key, id)).body, {
        status: "cancelled",
        counts: { total: 1_101, final: 1, duplicates: 2, cancelled: 1_098 }
      })
      const all = yield* get(`${path}/${id}/results`, { key, headers: { accept: "text/csv" } })
      const rows = all.text.trimEnd().split("\r\n").slice(1)
      assert.deepStrictEqual(
        rows.slice(-4).map((row) => row.split(",", 4).join()),
        [
          `"1098","${vatIdOf(0)}","cancelled",`,
          `"1099","${vatIdOf(1)}","cancelled",`,
          '"1100","ATU10550001","final",true',
          "#end,,complete,"
        ]
      )
      yield* sandbox.configure({ vies_unavailable_member_states: [] })
    }
  )

  it.effect("estimates the end of a batch while it is running, after its first answers", function* () {
    const { get, newKey, post } = yield* RunningService.RunningService
    const sandbox = yield* Sandbox
    const key = yield* newKey
    yield* sandbox.configure({ latency_ms: 500 })
    const items = Array.from({ length: 120 }, (_, number) => ({ custom_id: `${number}`, vat_id: `ATU106${10_000 + number}` }))
    const { body } = yield* post(path, { items }, { key })
    const { accepted_at, batch_id, estimated_end } = yield* decodeTimes(body)
    assert.isNull(estimated_end)
    const running = yield* Effect.repeat(
      Effect.flatMap(get(`${path}/${batch_id}`, { key }), ({ body }) => decodeTimes(body)),
      {
        schedule: Schedule.spaced("100 millis"),
        until: ({ estimated_end }) => estimated_end !== null
      }
    )
    assert.isAbove(DateTime.toEpochMillis(running.estimated_end ?? accepted_at), DateTime.toEpochMillis(accepted_at))
    yield* sandbox.reset
  })

  it.effect.each([
    ["respond-async, wait=1", "respond-async, wait=1"],
    ["wait=1", "wait=1"],
    ["respond-async", "respond-async"],
    ["handling=strict", undefined]
  ] as const)("responds to Prefer: %s with Preference-Applied: %s", function* ([prefer, applied]) {
    const { newKey, post } = yield* RunningService.RunningService
    const { headers } = yield* post(path, { items }, { key: yield* newKey, headers: { prefer } })
    assert.strictEqual(headers["preference-applied"], applied)
  })

  it.effect("accepts up to twenty open batches of a key whose quota is used up, and rejects the next batch", function* () {
    const { newKey, post } = yield* RunningService.RunningService
    const key = yield* newKey
    yield* RunningService.setQuota(key, 2)
    const submit = (number: number) => post(path, { items: [{ custom_id: "a", vat_id: `ATU105500${number + 10}` }] }, { key })
    yield* finished(key, yield* idOf(yield* submit(0)))
    yield* finished(key, yield* idOf(yield* submit(1)))
    for (let number = 2; number < 22; number += 1) assert.strictEqual((yield* submit(number)).status, 202)
    assertProblem(yield* submit(22), "RATE_LIMIT_EXCEEDED")
  })

  it.effect("pauses a batch when the quota is used up, and continues it in the next month", function* () {
    const { get, newKey, post, travel } = yield* RunningService.RunningService
    const key = yield* newKey
    yield* RunningService.setQuota(key, 2)
    const items = [1, 2, 3].map((number) => ({ custom_id: `${number}`, vat_id: `ATU1055000${number}` }))
    const id = yield* idOf(yield* post(path, { items }, { key }))
    const paused = yield* Effect.repeat(get(`${path}/${id}`, { key }), {
      schedule: Schedule.spaced("100 millis"),
      until: ({ text }) => text.includes('"paused"')
    })
    assert.containSubset(paused.body, { reason: "QUOTA", counts: { final: 2, pending: 1 } })
    yield* travel("32 days")
    assert.containSubset((yield* finished(key, id)).body, { status: "finished", counts: { final: 3 } })
  })
})
