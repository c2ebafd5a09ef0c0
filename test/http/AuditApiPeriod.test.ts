import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Schema } from "effect"
import { newAuditor } from "#test/support/Auditing.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"

const decodePage = Schema.decodeUnknownEffect(Schema.Struct({ data: Schema.Array(Schema.Struct({ type: Schema.String })) }))

layer(RunningService.layer(), { excludeTestServices: true })("GET /v1/audit/events", (it) => {
  it.effect("takes a day as a whole, and a moment as it is", () =>
    Effect.gen(function* () {
      const { get, newKey } = yield* RunningService.RunningService
      const { headers } = yield* newAuditor()
      yield* newKey
      const now = yield* DateTime.now
      const day = (days: number) => DateTime.formatIsoDateUtc(DateTime.add(now, { days }))
      const count = Effect.fnUntraced(function* (query: Readonly<Record<string, string>>) {
        const reply = yield* get("/v1/audit/events", { headers, query: { type: "ApiKeyIssued", ...query } })
        assert.strictEqual(reply.status, 200, reply.text)
        return (yield* decodePage(reply.body)).data.length
      })
      assert.strictEqual(yield* count({ from: day(0), to: day(0) }), 1)
      assert.strictEqual(yield* count({ to: day(0) }), 1)
      assert.strictEqual(yield* count({ to: `${day(0)}T00:00:00Z` }), 0)
      assert.strictEqual(yield* count({ to: day(-1) }), 0)
      assert.strictEqual(yield* count({ from: day(1) }), 0)
      assert.strictEqual(yield* count({ from: "1970-01-01", to: "9999-12-31" }), 1)
      for (const to of ["+010000-01-02T00:00:00Z", "2026-13-01", "22.11.", ""]) {
        assertProblem(yield* get("/v1/audit/events", { headers, query: { to } }), "VALIDATION_ERROR")
      }
    })
  )
})
