import { Console, Effect, Layer, Logger, type LogLevel, Option, Redacted, Schema } from "effect"
import { SqlError, UniqueViolation } from "effect/sql/SqlError"
import { RequestContext } from "#domain/kernel/RequestContext.ts"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import * as Logs from "#infra/telemetry/Logs.ts"
import * as Redaction from "#infra/telemetry/Redaction.ts"
import { assert, describe, it } from "#test/support/Test.ts"

const redaction = Redaction.make([Redacted.make("hidden-secret")])

/** Returns the lines that an effect logs to standard output. */
const written = Effect.fnUntraced(function* <A, E>(
  effect: Effect.Effect<A, E>,
  settings: Partial<Logs.LogSettings> = {},
  isTerminal = false
) {
  const lines: Array<string> = []
  const console = { ...globalThis.console, log: (...parts: ReadonlyArray<unknown>) => void lines.push(parts.join(" ")) }
  const logs = Logs.layer(
    { format: Option.none(), level: "Info", production: false, access: false, ...settings },
    redaction,
    isTerminal
  )
  yield* effect.pipe(Effect.provide(Layer.merge(logs, Layer.succeed(Console.Console, console))))
  return lines
})

const parse = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))

const context = {
  requestId: "my-request",
  correlationId: "00000000-0000-0000-0000-000000000000",
  traceId: "4bf92f3577b34da6a3ce929d0e0e4736"
}

describe("log lines", () => {
  it.effect("are JSON in production or without a terminal, and otherwise text", function* () {
    const hello = Effect.logInfo("hello")
    assert.strictEqual(parse((yield* written(hello))[0])["message"], "hello")
    assert.strictEqual(parse((yield* written(hello, { production: true }, true))[0])["message"], "hello")
    assert.match((yield* written(hello, {}, true))[0] ?? "", /^\S*\d\d:\d\d:\d\d\.\d{3}.*INFO.* hello/u)
    assert.strictEqual(parse((yield* written(hello, { format: Option.some("json") }, true))[0])["level"], "info")
    assert.match((yield* written(hello, { format: Option.some("pretty") }))[0] ?? "", /^\d\d:\d\d:\d\d\.\d{3} INFO  hello$/u)
  })

  it.effect("contain the ids of their request, trace and span", function* () {
    const [line] = yield* written(
      Effect.logInfo("x").pipe(Effect.withSpan("request"), Effect.provideService(RequestContext, context))
    )
    assert.containSubset(parse(line), { request_id: "my-request", trace_id: context.traceId })
    assert.match(String(parse(line)["span_id"]), /^[0-9a-f]{16}$/u)
    assert.notProperty(parse((yield* written(Effect.logInfo("x")))[0]), "request_id")
  })

  it.effect.each(["Trace", "Debug", "Info", "Warn", "Error", "Fatal"] as const satisfies ReadonlyArray<LogLevel.LogLevel>)(
    "at the level %s contain no secret and no personal data, in messages, annotations and causes",
    function* (level) {
      const cause = Object.assign(new Error("duplicate"), {
        code: "23505",
        detail: "Key (email)=(max@example.com) already exists"
      })
      const reason = new UniqueViolation({
        cause,
        message: "max@example.com",
        operation: "execute",
        constraint: "contacts_email_key"
      })
      const log = Effect.logWithLevel(level)
      for (const format of ["json", "pretty"] as const) {
        const lines = yield* written(
          log(
            "for DE123456789 by max@example.com",
            { password: "geheim", at: "203.0.113.7" },
            new StoreUnavailable({ cause: new SqlError({ reason }) })
          ).pipe(
            Effect.annotateLogs({ token: "hidden-secret", note: "svc_live_abcdefghijklmnop", key: Redacted.make("geheim") })
          ),
          { level: "All", format: Option.some(format) }
        )
        assert.strictEqual(lines.length, 1)
        for (const secret of ["DE123456789", "max@", "geheim", "203.0.113.7", "hidden-secret", "svc_live_abc"]) {
          assert.notInclude(lines[0], secret)
        }
      }
    }
  )

  it.effect("describe a failure in one line, with its type, its code and its stack frames", function* () {
    const failing = Effect.fail(new StoreUnavailable({ cause: new TypeError("broken") }))
    for (const log of [
      Effect.catchCause(failing, (cause) => Effect.logError("It failed", cause)),
      Effect.catch(failing, (error) => Effect.logError("It failed", error))
    ]) {
      const lines = yield* written(log)
      assert.strictEqual(lines.length, 1)
      assert.containSubset(parse(lines[0]), {
        message: "It failed",
        error: { type: "StoreUnavailable", cause: { type: "TypeError", message: "broken" } }
      })
    }
  })

  it.effect("are written to standard error by commands", function* () {
    const log = Effect.provideService(Effect.logWarning("aside"), Logger.LogToStderr, true)
    assert.deepStrictEqual(yield* written(log), [])
    const errors: Array<unknown> = []
    const asError = Effect.updateService(log, Console.Console, (console) => ({
      ...console,
      error: (line) => void errors.push(line)
    }))
    yield* written(asError)
    assert.strictEqual(parse(errors[0])["message"], "aside")
  })

  it.effect("are not written below the configured level", function* () {
    assert.deepStrictEqual(yield* written(Effect.logInfo("x"), { level: "Error" }), [])
  })
})
