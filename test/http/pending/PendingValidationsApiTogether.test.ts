import { Effect } from "effect"
import * as RegisterIds from "#test/benchmarks/load/RegisterIds.ts"
import * as RoundTrips from "#test/support/RoundTrips.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

const path = "/v1/validations"
const soon = { prefer: "respond-async, wait=20" }

layer(RunningService.layer(), { excludeTestServices: true })("a submitted validation", (it) => {
  it.effect("shares its round trips to the database with the submissions that wait at the same time", function* () {
    const service = yield* RunningService.RunningService
    const key = yield* service.newKey
    const count = 96
    const submit = (index: number) => {
      const vat_id = RegisterIds.roundRobin(index)
      const headers = { ...soon, "idempotency-key": `a-key-of-its-own-${vat_id}` }
      return Effect.map(service.post(path, { vat_id, reference: vat_id }, { key, headers }), ({ body, status }) =>
        assert.containSubset([status, body], [200, { vat_id, status: "final", valid: true }])
      )
    }
    const all = Effect.all(
      Array.from({ length: count }, (_, index) => submit(index)),
      { concurrency: "unbounded" }
    )
    assert.isBelow(yield* RoundTrips.during(all), 9 * count)
  })
})
