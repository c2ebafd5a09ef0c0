import { DateTime, Effect } from "effect"
import { TestClock } from "effect/testing"
import { SqlClient } from "effect/sql"
import { QuotaExceeded } from "#domain/callers/Metering.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"
import type { ErrorCode, Problem } from "#http/pipeline/Errors.ts"
import { assertProblem } from "#test/support/Problem.ts"
import { exchange, readReply, send } from "#test/support/RawHttp.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { Reply } from "#test/support/ServiceClient.ts"
import { assert, describe, it, layer } from "#test/support/Test.ts"

const json = "content-type: application/json"

layer(RunningService.layerShared(), { excludeTestServices: true })("the service", (it) => {
  it.effect.each([
    "/v1",
    "/v1/",
    "/v2/validate/DE123456789",
    "/v1/validate",
    "/v1/validate/",
    "/v1/validate/DE/123456789",
    "/v1/nothing",
    "/openapi.yaml",
    "/v1/validateX/DE123456789",
    "/health/x",
    "/health/",
    "/openapi.json/",
    "/v1/auth/verify-email/?token=x",
    "/docs/",
    "/v1/status/",
    "/v1/usage/?x=1",
    "/v1/validate/DE123456789/",
    "/v1/qualified-confirmations/",
    "/v1/qualified-confirmations/VP-QC-20261101-0000000000/",
    "/v1/audit/checkpoint/",
    "/HEALTH",
    "/V1/validate/DE123456789",
    "/v1//validate/DE123456789",
    "//v1/status",
    "/..%2f..%2fetc/passwd",
    "/%ff",
    "/%",
    "/none?x=%ff"
  ])("answers the unknown path %s with 404", function* (path) {
    const { port } = yield* RunningService.RunningService
    assertProblem(yield* send(port, `GET ${path} HTTP/1.1`), "NOT_FOUND")
  })

  it.effect.each([
    ["POST", "/v1/validate/DE123456789", "GET"],
    ["DELETE", "/v1/validate/DE123456789", "GET"],
    ["OPTIONS", "/v1/validate/DE123456789", "GET"],
    ["PATCH", "/v1/validate/%ff", "GET"],
    ["HEAD", "/v1/validate/DE123456789", "GET"],
    ["HEAD", "/v1/validate/%ff", "GET"],
    ["POST", "/v1/usage", "GET, HEAD"],
    ["GET", "/v1/register", "POST"],
    ["HEAD", "/v1/register", "POST"],
    ["PUT", "/v1/register?x=1", "POST"],
    ["POST", "/health", "GET, HEAD"],
    ["DELETE", "/v1/status", "GET, HEAD"],
    ["POST", "/openapi.json", "GET, HEAD"],
    ["PUT", "/docs", "GET, HEAD"],
    ["PROPFIND", "/health", "GET, HEAD"],
    ["POST", "/%68ealth", "GET, HEAD"]
  ] as const)("answers %s %s with 405 and an Allow header", function* ([method, path, allow]) {
    const { port } = yield* RunningService.RunningService
    const reply = yield* send(port, `${method} ${path} HTTP/1.1`)
    assert.strictEqual(reply.headers["allow"], allow)
    if (method === "HEAD") return assert.deepStrictEqual([reply.status, reply.text], [405, ""])
    assertProblem(reply, "METHOD_NOT_ALLOWED")
  })

  it.effect("answers a HEAD request without a body", function* () {
    const { port } = yield* RunningService.RunningService
    for (const path of ["/health", "/v1/status", "/docs"]) {
      const { status, text } = yield* send(port, `HEAD ${path} HTTP/1.1`)
      assert.deepStrictEqual([status, text], [200, ""])
    }
    const { headers, status, text } = yield* send(port, "HEAD /v1/usage HTTP/1.1")
    assert.deepStrictEqual([status, text], [401, ""])
    assert.isDefined(headers["x-request-id"])
  })

  const register = (headers: ReadonlyArray<string>, body: string) =>
    Effect.flatMap(RunningService.RunningService, ({ port }) =>
      send(port, "POST /v1/register HTTP/1.1", [...headers, `content-length: ${Buffer.byteLength(body)}`], body)
    )

  it.effect.each([
    ["plain text", ["content-type: text/plain"], '{"agent_id":"x"}', "UNSUPPORTED_MEDIA_TYPE"],
    ["a form", ["content-type: application/x-www-form-urlencoded"], "agent_id=x", "UNSUPPORTED_MEDIA_TYPE"],
    ["XML", ["content-type: application/xml"], "<agent_id>x</agent_id>", "UNSUPPORTED_MEDIA_TYPE"],
    ["empty", [json], "", "VALIDATION_ERROR"],
    ["truncated JSON", [json], '{"agent_id":"x"', "VALIDATION_ERROR"],
    ["text that is no JSON", [json], "agent_id=x", "VALIDATION_ERROR"],
    ["two JSON values", [json], '{"agent_id":"x"}{}', "VALIDATION_ERROR"],
    ["a number too large for JSON", [json], '{"agent_id":1e999}', "VALIDATION_ERROR"],
    ["a thousand brackets", [json], "[".repeat(1_000), "VALIDATION_ERROR"],
    ["17 KiB long", [json], JSON.stringify({ agent_id: "x".repeat(17 * 1024) }), "PAYLOAD_TOO_LARGE"],
    ["2 MiB long", [json], JSON.stringify({ agent_id: "x".repeat(2 * 1024 * 1024) }), "PAYLOAD_TOO_LARGE"]
  ] as const)("rejects a registration whose body is %s", function* ([, headers, body, code]) {
    assertProblem(yield* register(headers, body), code)
  })

  it.effect("rejects a registration without a body, whether it has a content type or not", function* () {
    const { port } = yield* RunningService.RunningService
    for (const headers of [[json], []]) {
      assertProblem(yield* send(port, "POST /v1/register HTTP/1.1", headers), "VALIDATION_ERROR")
    }
  })

  it.effect(
    "accepts a registration with a body of 16 KiB, with a charset in its content type, or without a content type",
    function* () {
      const padded = `${" ".repeat(16 * 1024 - 16)}{"agent_id":"x"}`
      assert.strictEqual((yield* register([json], padded)).status, 201)
      for (const headers of [["content-type: application/json; charset=utf-8"], []]) {
        assert.strictEqual((yield* register(headers, '{"agent_id":"x"}')).status, 201)
      }
    }
  )

  it.effect("rejects a chunked body of more than 16 KiB", function* () {
    const { port } = yield* RunningService.RunningService
    const chunk = `1000\r\n${"x".repeat(4096)}\r\n`
    const reply = yield* send(
      port,
      "POST /v1/register HTTP/1.1",
      [json, "transfer-encoding: chunked"],
      `${chunk.repeat(6)}0\r\n\r\n`
    )
    assertProblem(reply, "PAYLOAD_TOO_LARGE")
  })

  it.effect.each(["%", "%2", "%zz", "%ff", "%c3%28", "%ed%a0%80", "DE%", "DE%e2%82", "%00", "%u0031", "%25"])(
    "rejects the VAT ID %s as malformed",
    function* (text) {
      const { port } = yield* RunningService.RunningService
      assertProblem(yield* send(port, `GET /v1/validate/${text} HTTP/1.1`), "INVALID_VAT_ID")
    }
  )

  it.effect.each(["?force_live=%ff", "?force_live=%", "?company_name=%c3%28&force_live=2", "?%ff=%ff&force_live=x"])(
    "rejects the query %s without an internal error",
    function* (query) {
      const { port } = yield* RunningService.RunningService
      assertProblem(yield* send(port, `GET /v1/validate/ATU12345678${query} HTTP/1.1`), "VALIDATION_ERROR")
    }
  )

  it.effect("rejects a path with bytes that must be percent-encoded", function* () {
    const { port } = yield* RunningService.RunningService
    for (const bytes of [[0xff, 0xfe], [0xc3, 0xa4], [0x7f], [0xe2, 0x82, 0xac], [0x22, 0x3c, 0x3e], [0x5c], [0x01], [0x00]]) {
      const line = Buffer.concat([Buffer.from("GET /v1/validate/DE"), Buffer.from(bytes), Buffer.from("123456789 HTTP/1.1")])
      const reply = yield* send(port, line)
      assert.strictEqual(reply.status, 400, bytes.join())
      const code: ErrorCode = /"INVALID_VAT_ID"/u.test(reply.text) ? "INVALID_VAT_ID" : "VALIDATION_ERROR"
      assertProblem(reply, code)
    }
  })

  it.effect.each([
    [8, "INVALID_VAT_ID"],
    [33, "REQUEST_HEADER_FIELDS_TOO_LARGE"],
    [2048, "REQUEST_HEADER_FIELDS_TOO_LARGE"]
  ] as const)("answers a path or a query of %s KiB with %s", function* ([kib, code]) {
    const { port } = yield* RunningService.RunningService
    assertProblem(yield* send(port, `GET /v1/validate/${"D".repeat(kib * 1024)} HTTP/1.1`), code)
    assertProblem(yield* send(port, `GET /v1/validate/DE1?x=${"D".repeat(kib * 1024)} HTTP/1.1`), code)
  })

  it.effect.each([
    "GET",
    "GET / HTTP/9.9",
    "\u0016\u0003\u0001\u0002\u0000\u0001",
    "x".repeat(100),
    "GET /health HTTP/1.1\r\n: x"
  ])("answers the malformed request %j with 400", function* (bytes) {
    const { port } = yield* RunningService.RunningService
    assertProblem(readReply(yield* exchange(port, `${bytes}\r\n\r\n`)), "VALIDATION_ERROR")
  })

  it.effect.each(["CONNECT example.org:443", "CONNECT /health"])("answers %s with 405", function* (line) {
    const { port } = yield* RunningService.RunningService
    const reply = yield* send(port, `${line} HTTP/1.1`)
    assertProblem(reply, "METHOD_NOT_ALLOWED")
    assert.isDefined(reply.headers["allow"])
  })

  it.effect.each(["expect: the impossible", "upgrade: websocket\r\nconnection: upgrade", "te: gzip"])(
    "ignores the request header %j",
    function* (header) {
      const { port } = yield* RunningService.RunningService
      assert.strictEqual((yield* send(port, "GET /health HTTP/1.1", [header])).status, 200)
    }
  )

  it.effect("names every invalid field of a request in the error", function* () {
    const service = yield* RunningService.RunningService
    const fieldsOf = (reply: Reply) => assertProblem(reply, "VALIDATION_ERROR").details?.map(({ field }) => field)
    const signup = { email: 5, password: null }
    assert.deepStrictEqual(fieldsOf(yield* service.post("/v1/auth/signup", signup)), ["email", "password"])
    assert.deepStrictEqual(fieldsOf(yield* service.post("/v1/auth/login", signup)), ["email", "password"])
    assert.deepStrictEqual(fieldsOf(yield* service.post("/v1/register", { email: 5, agent_id: 6 })), ["email", "agent_id"])
    const query = { force_live: "maybe", match_format: "both" }
    assert.sameMembers([...(fieldsOf(yield* service.get("/v1/validate/DE123456789", { query })) ?? [])], Object.keys(query))
  })

  it.effect("accepts a request without a Host header", function* () {
    const { port } = yield* RunningService.RunningService
    assert.strictEqual(readReply(yield* exchange(port, "GET /health HTTP/1.1\r\nconnection: close\r\n\r\n")).status, 200)
  })

  it.effect("rejects a request with both Content-Length and Transfer-Encoding", function* () {
    const { port } = yield* RunningService.RunningService
    const lines = [json, "content-length: 16", "transfer-encoding: chunked"]
    assertProblem(yield* send(port, "POST /v1/register HTTP/1.1", lines, '{"agent_id":"x"}'), "VALIDATION_ERROR")
  })

  it.effect("hides the cause of an internal error from the client", function* () {
    const { newKey, validate } = yield* RunningService.make()
    const sql = yield* SqlClient.SqlClient
    const key = yield* newKey
    yield* sql`ALTER TABLE vatproof.meters RENAME TO meters_away`
    const reply = yield* validate("ATU12345678", { key })
    yield* sql`ALTER TABLE vatproof.meters_away RENAME TO meters`
    const { message } = assertProblem(reply, "INTERNAL_ERROR")
    assert.strictEqual(message, "The service failed; report the request_id to the operator")
    assert.notMatch(reply.text, /meters|relation|sql/iu)
    assert.containSubset(yield* validate("ATU12345678", { key }), { status: 200 })
  })
})

describe("Retry-After for a used-up monthly quota", () => {
  const now = DateTime.makeUnsafe("2026-03-01T00:00:01.000Z")
  const retryAfter = (periodEnd: string) =>
    FailureResponses.problemOf(
      new QuotaExceeded({
        plan: "starter",
        periodEnd: DateTime.makeUnsafe(periodEnd),
        standing: { usage: { used: 1, limit: 1 }, window: null }
      })
    ).pipe(Effect.map(({ retryAfterSeconds }: Problem) => retryAfterSeconds))

  it.effect.each([
    ["at the start of the next month", "2026-04-01T00:00:00.000Z", 31 * 86_400 - 1],
    ["after one second if the call started in the previous month", "2026-03-01T00:00:00.000Z", 1]
  ] as const)("ends %s", function* ([_, end, seconds]) {
    yield* TestClock.setTime(DateTime.toEpochMillis(now))
    assert.strictEqual(yield* retryAfter(end), seconds)
  })
})
