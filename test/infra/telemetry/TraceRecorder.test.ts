import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Tracer } from "effect"
import type { Sampler } from "#infra/telemetry/Sampler.ts"
import { SqlError, UniqueViolation } from "effect/sql/SqlError"
import * as TraceRecorder from "#infra/telemetry/TraceRecorder.ts"

/** Runs an effect under a recorder and gives back what it exported, one group an export. */
const exportedBy = <A, E>(
  effect: Effect.Effect<A, E>,
  options: { readonly sampler?: Sampler; readonly keepsFailures?: boolean } = {}
) =>
  Effect.gen(function* () {
    const groups: Array<ReadonlyArray<TraceRecorder.RecordedSpan>> = []
    const tracer = TraceRecorder.make({
      sampler: options.sampler ?? (() => false),
      keepsFailures: options.keepsFailures ?? true,
      emit: (spans) => groups.push(spans)
    })
    yield* Effect.exit(Effect.provideService(effect, Tracer.Tracer, tracer))
    return groups
  })

const always: Sampler = () => true
const server = { kind: "server", root: true } as const
const served = (status: number) => Effect.annotateCurrentSpan("http.response.status_code", status)
const namesOf = (groups: ReadonlyArray<ReadonlyArray<TraceRecorder.RecordedSpan>>) =>
  groups.map((spans) => spans.map(({ name }) => name))

describe("TraceRecorder", () => {
  it.effect("exports a sampled trace at its end, whole, children before parents", () =>
    Effect.gen(function* () {
      const inner = Effect.withSpan(Effect.void, "inner")
      const groups = yield* exportedBy(Effect.withSpan(Effect.andThen(inner, served(200)), "request", server), {
        sampler: always
      })
      assert.deepStrictEqual(namesOf(groups), [["inner", "request"]])
      const [child, root] = groups[0] ?? []
      assert.strictEqual(child?.traceId, root?.traceId)
      assert.deepStrictEqual(
        Option.map(child?.parent ?? Option.none(), ({ spanId }) => spanId),
        Option.fromUndefinedOr(root?.spanId)
      )
      assert.match(root?.traceId ?? "", /^[0-9a-f]{32}$/u)
    })
  )

  it.effect.each([
    ["a status of 500 and above", served(503), true],
    ["a refusal", served(404), false],
    ["a success", served(200), false],
    ["a defect anywhere", Effect.withSpan(Effect.die("x"), "inner"), true],
    ["a typed failure within", Effect.ignore(Effect.withSpan(Effect.fail(new Error("x")), "inner")), false],
    [
      "an attempt at a source that failed",
      Effect.withSpan(Effect.annotateCurrentSpan("error.type", "timeout"), "s", { kind: "client" }),
      true
    ],
    ["a failover", Effect.annotateCurrentSpan("vatproof.failover", true), true],
    ["a caller who left", Effect.interrupt, false]
  ] as const)("with a sampler that keeps nothing, %s decides whether the trace is kept", ([, within, kept]) =>
    Effect.gen(function* () {
      const groups = yield* exportedBy(Effect.withSpan(within, "request", server))
      assert.strictEqual(groups.length, kept ? 1 : 0)
    })
  )

  it.effect("keeps failures of an outage up to a bound a second, and none where nothing is to be kept", () =>
    Effect.gen(function* () {
      const many = Effect.replicateEffect(Effect.withSpan(served(503), "request", server), 500)
      assert.strictEqual((yield* exportedBy(many)).length, 50)
      assert.strictEqual((yield* exportedBy(many, { keepsFailures: false })).length, 0)
    })
  )

  it.effect("goes on with a remote parent, and tells the sampler what that one decided", () =>
    Effect.gen(function* () {
      const asked: Array<readonly [string, boolean | null]> = []
      const parent = Tracer.externalSpan({
        traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
        spanId: "00f067aa0ba902b7",
        sampled: true
      })
      const groups = yield* exportedBy(Effect.withSpan(served(200), "request", { kind: "server", parent }), {
        sampler: (traceId, sampled) => {
          asked.push([traceId, sampled])
          return true
        }
      })
      assert.deepStrictEqual(asked, [[parent.traceId, true]])
      assert.strictEqual(groups[0]?.[0]?.traceId, parent.traceId)
      assert.deepStrictEqual(groups[0]?.[0]?.parent, Option.some(parent))
    })
  )

  it.effect("records nothing outside of requests and jobs", () =>
    Effect.gen(function* () {
      const outside = Effect.withSpan(Effect.withSpan(Effect.void, "query", { kind: "client" }), "poll")
      assert.deepStrictEqual(yield* exportedBy(outside, { sampler: always }), [])
    })
  )

  it.effect("a job that is linked to a kept trace is kept", () =>
    Effect.gen(function* () {
      const link = (sampled: boolean) => ({
        span: Tracer.externalSpan({ traceId: "4bf92f3577b34da6a3ce929d0e0e4736", spanId: "00f067aa0ba902b7", sampled }),
        attributes: {}
      })
      const job = (sampled: boolean) =>
        Effect.withSpan(Effect.void, "job", { kind: "consumer", root: true, links: [link(sampled)] })
      assert.strictEqual((yield* exportedBy(job(true))).length, 1)
      assert.strictEqual((yield* exportedBy(job(false))).length, 0)
    })
  )

  it.effect("records the attributes that are listed, briefly, and no others", () =>
    Effect.gen(function* () {
      const attributes = {
        "http.route": "/v1/x",
        "url.path": "/v1/validate/DE123456789",
        "client.address": "203.0.113.7",
        "user_agent.original": "me",
        "db.query.text": "SELECT name FROM vatproof.accounts WHERE email = 'x@example.com'",
        "vatproof.outcome": "x".repeat(5_000),
        "vatproof.object": { vat_id: "DE123456789" }
      }
      const groups = yield* exportedBy(Effect.withSpan(Effect.void, "request", { ...server, attributes }), { sampler: always })
      const recorded = groups[0]?.[0]?.attributes
      assert.deepStrictEqual(
        [...(recorded?.keys() ?? [])],
        ["http.route", "db.operation.name", "db.collection.name", "vatproof.outcome"]
      )
      assert.strictEqual(String(recorded?.get("vatproof.outcome")).length, 200)
    })
  )

  it.effect("names a refusal of the database by PostgreSQL's code", () =>
    Effect.gen(function* () {
      const reason = new UniqueViolation({ cause: { code: "23505" }, constraint: "accounts_email" })
      const failing = Effect.withSpan(Effect.fail(new SqlError({ reason })), "accounts", { kind: "client" })
      const groups = yield* exportedBy(Effect.withSpan(Effect.ignore(failing), "request", server))
      assert.strictEqual(groups[0]?.[0]?.attributes.get("error.type"), "23505")
    })
  )

  it.effect("names what failed and never quotes it", () =>
    Effect.gen(function* () {
      const groups = yield* exportedBy(Effect.withSpan(Effect.die(new TypeError("of DE123456789")), "request", server))
      assert.strictEqual(groups[0]?.[0]?.attributes.get("error.type"), "TypeError")
      assert.isTrue(groups[0]?.[0]?.failed)
    })
  )

  it.effect("bounds the spans of a trace, and its own is always among them", () =>
    Effect.gen(function* () {
      const many = Effect.replicateEffect(Effect.withSpan(Effect.void, "inner"), 1_000)
      const groups = yield* exportedBy(Effect.withSpan(many, "request", server), { sampler: always })
      assert.strictEqual(groups[0]?.length, 201)
      assert.strictEqual(groups[0]?.at(-1)?.name, "request")
    })
  )
})
