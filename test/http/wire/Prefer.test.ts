import { Duration, Effect, Option } from "effect"
import { describe } from "vitest"
import * as Prefer from "#http/wire/Prefer.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, it, layer } from "#test/support/Test.ts"

describe("the header Prefer", () => {
  it.each([
    [undefined, false, 0],
    ["wait=30", false, 30],
    ['handling=strict, Respond-Async; a=b, wait = "5", wait=99', true, 5]
  ] as const)("%s has its preferences", (header, isAsync, seconds) => {
    assert.deepStrictEqual(Prefer.parse(header, 30), Option.some({ isAsync, wait: Duration.seconds(seconds) }))
  })
})

layer(RunningService.layerShared(), { excludeTestServices: true })("a wait that is no number from 0 to 30", (it) => {
  it.effect.each(["31", "-1", "1.5", "x", "", "1000000000000"])("is rejected in each header and query: %s", function* (wait) {
    const { get, newKey, post } = yield* RunningService.RunningService
    const key = yield* newKey
    const headers = { prefer: `respond-async, wait=${wait}` }
    const replies = yield* Effect.all([
      post("/v1/validations", { vat_id: "ATU12345678" }, { key, headers }),
      post("/v1/batches", { items: [{ custom_id: "a", vat_id: "ATU12345678" }] }, { key, headers }),
      get("/v1/validations/01a20419-04ae-76a0-8ca8-7e1e53bc6219", { key, query: { wait } }),
      get("/v1/batches/01a20419-04ae-76a0-8ca8-7e1e53bc6219", { key, query: { wait } })
    ])
    for (const reply of replies) assert.match(assertProblem(reply, "VALIDATION_ERROR").message, /wait/u)
  })
})
