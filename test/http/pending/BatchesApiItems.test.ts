import { Effect, Schedule, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { Sandbox } from "#test/support/Sandbox.ts"
import type { Reply } from "#test/support/ServiceClient.ts"
import { assert, layer } from "#test/support/Test.ts"

const path = "/v1/batches"

const decodeBatch = Schema.decodeUnknownEffect(Schema.Struct({ batch_id: Schema.String }))
const idOf = ({ body }: Reply) => Effect.map(decodeBatch(body), ({ batch_id }) => batch_id)

const finished = Effect.fnUntraced(function* (key: string, id: string) {
  const { get } = yield* RunningService.RunningService
  return yield* Effect.repeat(get(`${path}/${id}`, { key, query: { wait: "20" } }), {
    schedule: Schedule.spaced("100 millis"),
    until: ({ text }) => text.includes('"pending":0')
  })
})

layer(RunningService.layer(), { excludeTestServices: true })("a batch whose items have more than a VAT ID", (it) => {
  it.effect(
    "returns the reference of each item, stores it with the answer, and ignores answers older than max_age",
    function* () {
      const { get, newKey, post, validate } = yield* RunningService.RunningService
      const sandbox = yield* Sandbox
      const key = yield* newKey
      const [vatId, down] = ["ATU10550081", "SE556000550082"]
      for (const stored of [vatId, down]) yield* validate(stored, { key })
      yield* sandbox.configure({ vies_unavailable_member_states: ["SE"] })
      const rows = [
        "1,ATU10550081,INV-cached,x",
        "2,ATU10550081,INV-twice,y",
        "3,SE556000550082,INV-later,z",
        "4,SE556000550083,,w"
      ]
      const file = ["custom_id,vat_id,Reference,more", ...rows].join("\n")
      const upload = (key: string, query = {}, headers = {}) =>
        post(path, file, { key, query, headers: { "content-type": "text/csv", ...headers } })
      const cached = yield* idOf(yield* upload(key))
      const live = yield* idOf(yield* upload(key, { max_age: "0" }))
      yield* Effect.repeat(get(`${path}/${live}`, { key }), {
        schedule: Schedule.spaced("50 millis"),
        until: ({ text }) => text.includes('"final":1')
      })
      yield* sandbox.configure({ vies_unavailable_member_states: [] })
      for (const [id, sources] of [
        [cached, ["cache", "cache", "cache"]],
        [live, ["vies", "vies", "vies", "vies"]]
      ] as const) {
        yield* finished(key, id)
        const { body } = yield* get(`${path}/${id}/results`, { key })
        const references = [{ reference: "INV-cached" }, { reference: "INV-twice" }, { reference: "INV-later" }, {}]
        assert.containSubset(body, { data: sources.map((source, index) => ({ ...references[index], status: "final", source })) })
        const table = yield* get(`${path}/${id}/results`, { key, headers: { accept: "text/csv" } })
        assert.match(
          table.text,
          /^custom_id,.*,reference,"more"\r\n.*,"INV-cached","x"\r\n.*,"INV-twice","y"\r\n.*,"INV-later","z"\r\n.*,,"w"/u
        )
      }
      assert.notInclude(yield* RunningService.everythingLogged, "INV-")
      const sql = yield* SqlClient.SqlClient
      const [{ count }] =
        yield* sql`SELECT count(*)::int AS count FROM vatproof.personal_documents d JOIN vatproof.events e USING (log_id, position)
      WHERE e.type = 'VatIdVerified' AND d.document LIKE '%INV-later%'`.pipe(
          Effect.map((found) => [found[0] ?? { count: 0 }] as const)
        )
      assert.strictEqual(count, 2)
      const other = yield* newKey
      const keyed = { "idempotency-key": "one" }
      assert.strictEqual((yield* upload(other, {}, keyed)).status, 202)
      assert.strictEqual((yield* upload(other, {}, keyed)).headers["idempotent-replayed"], "true")
      assertProblem(yield* upload(other, { max_age: "60" }, keyed), "IDEMPOTENCY_KEY_REUSED")
      assertProblem(yield* upload(other, { max_age: "x" }), "VALIDATION_ERROR")
    }
  )
})
