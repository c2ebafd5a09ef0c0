import { assert, describe, it } from "@effect/vitest"
import { DateTime, Effect, Layer, Queue, Tracer } from "effect"
import { TestClock } from "effect/testing"
import { createHash } from "node:crypto"
import type { SourceFailure } from "#domain/vat/Verdict.ts"
import * as SourceHttp from "#infra/sources/SourceHttp.ts"
import * as StandIn from "#test/support/StandIn.ts"
import { fresh } from "#test/support/Test.ts"

const parts = Layer.mergeAll(StandIn.layer, SourceHttp.layerClient)

const connect = Effect.gen(function* () {
  const standIn = yield* StandIn.StandIn
  const http = yield* SourceHttp.make("vies", { baseUrl: `${standIn.baseUrl}/api/`, timeout: "20 seconds" })
  return { standIn, http, ask: http.post("/question", { a: "ü" }) }
})

const plain = ({ source, reason, scope, retry }: SourceFailure) => ({ source, reason, scope, retry })

const malformed = { source: "vies", reason: "malformed", scope: "source", retry: "soon" } as const

const own = fresh(parts)

describe("an HTTP call to a source", () => {
  own.effect("sends the exact text and keeps the exact bytes of the response", function* () {
    const { standIn, ask } = yield* connect
    const body = `{ "name":"ČEZ\\n", "valid" : true }\n`
    yield* standIn.next(StandIn.answer(200, body, { "content-type": "text/html" }))
    const { evidence, json } = yield* ask
    assert.deepStrictEqual(json, { name: "ČEZ\n", valid: true })
    assert.deepStrictEqual(evidence, {
      request: `{"a":"ü"}`,
      response: body,
      response_sha256: createHash("sha256").update(body).digest("hex"),
      http_status: 200
    })
    const call = yield* Queue.take(standIn.calls)
    assert.strictEqual(call.body, `{"a":"ü"}`)
    assert.match(call.head, /^POST \/api\/question HTTP\/1\.1\r\n/u)
    // The request has only these headers, so that neither a caller's header nor an id reaches a source.
    const headers = call.head.split("\r\n").slice(1)
    assert.sameMembers(
      headers.filter((line) => !line.startsWith("host: ")),
      [
        "connection: keep-alive",
        "accept: application/json",
        "accept-encoding: identity",
        "user-agent: vatproof/0.1.0",
        "content-type: application/json",
        "content-length: 10"
      ]
    )
  })

  own.effect("sends no trace context to the source and opens no span of its own", function* () {
    const { standIn, http } = yield* connect
    yield* standIn.next(StandIn.answer(200, {}))
    const spans: Array<string> = []
    const tracer = Tracer.make({
      span: (options) => {
        spans.push(options.name)
        return new Tracer.NativeSpan(options)
      }
    })
    yield* http.get("/status").pipe(Effect.withSpan("caller"), Effect.provideService(Tracer.Tracer, tracer))
    const call = yield* Queue.take(standIn.calls)
    assert.deepStrictEqual(spans, ["caller"])
    assert.notMatch(call.head, /traceparent|b3:/iu)
    assert.match(call.head, /^GET \/api\/status HTTP/u)
  })

  own.effect("reuses connections for later calls", function* () {
    const { standIn, ask } = yield* connect
    yield* Effect.forEach(
      [200, 503, 200, 404, 200, 429, 200, 200],
      (status) => Effect.andThen(standIn.next(StandIn.answer(status, { status })), ask),
      { discard: true }
    )
    // A call may need a second connection in the tick in which the previous call ends.
    assert.isAtMost(yield* standIn.connections, 2)
  })

  own.effect("keeps the text of a response that is not JSON, and reports the response as malformed", function* () {
    const { standIn, ask } = yield* connect
    for (const body of ["", "<html>", `{"valid":tru`, "\uFEFF{}", "{}}"]) {
      yield* standIn.next(StandIn.answer(200, body))
      const exchange = yield* ask
      assert.strictEqual(exchange.json, undefined)
      assert.strictEqual(exchange.evidence.response, body)
      assert.deepStrictEqual(plain(SourceHttp.failureWithoutCode("vies", exchange)), malformed)
    }
  })

  own.effect("reads a response of 256 KiB", function* () {
    const { standIn, ask } = yield* connect
    yield* standIn.next(StandIn.answer(200, `[${" ".repeat(256 * 1024 - 2)}]`))
    assert.deepStrictEqual((yield* ask).json, [])
  })

  own.effect("does not follow a redirect", function* () {
    const { standIn, ask } = yield* connect
    yield* standIn.next(StandIn.answer(302, "", { location: `${standIn.baseUrl}/elsewhere` }))
    assert.strictEqual((yield* ask).evidence.http_status, 302)
    yield* Queue.take(standIn.calls)
    assert.strictEqual(yield* Queue.size(standIn.calls), 0)
  })

  own.effect("reads JSON that arrives byte by byte, even inside a character", function* () {
    const { standIn, ask } = yield* connect
    const bytes = Buffer.from(`{"name":"Č"}`)
    yield* standIn.next((call) =>
      Effect.andThen(
        call.write(`HTTP/1.1 200 OK\r\ncontent-length: ${bytes.byteLength}\r\n\r\n`),
        Effect.forEach(bytes, (byte) => Effect.andThen(call.write(Uint8Array.of(byte)), Effect.yieldNow))
      )
    )
    assert.deepStrictEqual((yield* ask).json, { name: "Č" })
  })
})

describe("a source's response without an error code", () => {
  const statuses: ReadonlyArray<readonly [number, object]> = [
    [200, malformed],
    [204, malformed],
    [301, malformed],
    [400, malformed],
    [404, malformed],
    [403, { ...malformed, reason: "blocked", retry: "later" }],
    [429, { ...malformed, reason: "throttled", retry: "later" }],
    [500, { ...malformed, reason: "unavailable", retry: "soon" }],
    [502, { ...malformed, reason: "unavailable", retry: "soon" }],
    [503, { ...malformed, reason: "unavailable", retry: "later" }],
    [504, { ...malformed, reason: "unavailable", retry: "later" }]
  ]
  for (const [status, expected] of statuses) {
    own.effect(`is classified by its HTTP status: ${status}`, function* () {
      const { standIn, ask } = yield* connect
      yield* standIn.next(status === 204 ? StandIn.raw("HTTP/1.1 204 x\r\n\r\n") : StandIn.answer(status, "<html></html>"))
      const failure = SourceHttp.failureWithoutCode("vies", yield* ask)
      assert.deepStrictEqual(plain(failure), expected)
      assert.strictEqual(failure.code, status === 200 ? null : `HTTP ${status}`)
      assert.isUndefined(failure.retry_after_s)
    })
  }

  const pauses: ReadonlyArray<readonly [string, number, number | undefined]> = [
    ["120", 429, 120],
    ["120", 503, 120],
    ["0", 503, 0],
    ["99999999999999999999", 503, 600],
    ["Fri, 20 Nov 2026 12:00:30 GMT", 503, 30],
    ["Fri, 20 Nov 2026 11:00:00 GMT", 503, 0],
    ["soon", 503, undefined],
    ["-5", 503, undefined],
    ["120", 500, undefined],
    ["120", 200, undefined]
  ]
  for (const [header, status, expected] of pauses) {
    const pause = expected === undefined ? "no pause" : `a pause of ${expected} seconds`
    own.effect(`with Retry-After: ${header} and status ${status} requests ${pause}`, function* () {
      yield* TestClock.setTime(DateTime.makeUnsafe("2026-11-20T12:00:00Z").epochMilliseconds)
      const { standIn, ask } = yield* connect
      yield* standIn.next(StandIn.answer(status, "", { "retry-after": header }))
      assert.strictEqual(SourceHttp.failureWithoutCode("vies", yield* ask).retry_after_s, expected)
    })
  }
})

describe("a text that a source discloses", () => {
  it("is null if it is blank or ---, and otherwise has only characters that Postgres can store", () => {
    for (const nothing of ["---", "", "  \n", " --- ", null, undefined]) assert.isNull(SourceHttp.disclosed(nothing))
    assert.strictEqual(SourceHttp.disclosed(" A\nB "), "A\nB")
    assert.strictEqual(SourceHttp.disclosed("a\u0000b\uD800c"), "a\uFFFDb\uFFFDc")
  })
})
