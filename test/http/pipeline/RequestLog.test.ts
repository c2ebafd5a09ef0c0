import { Effect, Logger } from "effect"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import * as RequestLog from "#http/pipeline/RequestLog.ts"
import { assert, describe, it } from "#test/support/Test.ts"

const line: RequestLog.ServedLine = { method: "GET", route: "/v1/x/{id}", status: 200, durationMs: 3, refusal: null }

/** Returns the log lines of requests, each given with its time in milliseconds. `access` sets ACCESS_LOG. */
const linesOf = Effect.fnUntraced(function* (
  requests: ReadonlyArray<readonly [number, Partial<RequestLog.ServedLine>]>,
  access = false
) {
  const lines: Array<{
    readonly level: string
    readonly message: unknown
    readonly annotations: Readonly<Record<string, unknown>>
  }> = []
  const log = yield* Effect.provideService(RequestLog.make, RequestLog.AccessLog, access)
  const keep = Logger.map(Logger.formatStructured, (one) => void lines.push(one))
  for (const [now, more] of requests)
    yield* (log({ ...line, ...more }, now) ?? Effect.void).pipe(Effect.provide(Logger.layer([keep])))
  return lines
})

describe("RequestLog", () => {
  it.effect("writes no line for a fast and successful request", function* () {
    assert.deepStrictEqual(
      yield* linesOf([
        [0, {}],
        [1, { status: 304 }],
        [2, { durationMs: 999 }]
      ]),
      []
    )
  })

  it.effect("writes a line with the route for each slow, rejected or failed request", function* () {
    const lines = yield* linesOf([
      [0, { durationMs: 1_500 }],
      [1, { status: 404, route: null }],
      [2, { status: 503, refusal: new StoreUnavailable({}) }]
    ])
    assert.deepStrictEqual(
      lines.map(({ level, message }) => [level, message]),
      [
        ["INFO", "A request was slow: GET /v1/x/{id}"],
        ["INFO", "A request was refused with status 404: GET on an unknown path"],
        ["WARN", "A request failed with status 503: GET /v1/x/{id}"]
      ]
    )
  })

  it.effect(
    "writes one line per status in ten seconds for rejected requests; the next line has the number of omitted lines",
    function* () {
      const storm = Array.from({ length: 1_000 }, (_, index) => [index, { status: 429 }] as const)
      const lines = yield* linesOf([...storm, [9_999, { status: 429 }], [10_000, { status: 429 }], [10_001, { status: 401 }]])
      assert.deepStrictEqual(
        lines.map(({ annotations }) => [annotations["status"], annotations["suppressed"] ?? 0]),
        [
          [429, 0],
          [429, 1_000],
          [401, 0]
        ]
      )
    }
  )

  it.effect("writes a line for every request if ACCESS_LOG is set", function* () {
    const lines = yield* linesOf(
      [
        [0, {}],
        [0, {}],
        [0, { status: null }],
        [0, { status: 429 }],
        [0, { status: 429 }]
      ],
      true
    )
    assert.strictEqual(lines.length, 5)
    assert.containSubset(lines[0]?.annotations, { method: "GET", route: "/v1/x/{id}", status: 200, duration_ms: 3 })
  })
})
