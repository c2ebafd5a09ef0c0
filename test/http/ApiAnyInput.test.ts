/** Any input gets a JSON response: no 5xx, no HTML page, no dropped connection. */
import { assert, layer } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"
import { assertProblem } from "#test/support/Problem.ts"
import { send } from "#test/support/RawHttp.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { errors, type ErrorCode } from "#http/pipeline/Errors.ts"

/** Random texts, and texts that often break servers. */
const Text = Schema.Union([
  Schema.String,
  Schema.Literals([
    "",
    "%",
    "%00",
    "%ff%fe",
    "../..",
    "null",
    "__proto__",
    "constructor",
    "'; DROP TABLE events; --",
    "\u0000",
    "😀",
    "DE123456789",
    "0",
    "-1",
    "1e999",
    "x".repeat(9_000)
  ])
])

const Request = Schema.Struct({
  method: Schema.Literals(["GET", "GET", "GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"]),
  route: Schema.Literals([
    "/v1/validate/",
    "/v1/validate/",
    "/v1/register",
    "/v1/register",
    "/health",
    "/v1/status",
    "/v1/",
    "/"
  ]),
  rest: Text,
  encoded: Schema.Boolean,
  query: Schema.Array(
    Schema.Tuple([
      Schema.Union([
        Schema.Literals(["force_live", "requester_vat_id", "company_name", "company_city", "match_format", "vat_id"]),
        Text
      ]),
      Text
    ])
  ),
  headers: Schema.Array(
    Schema.Tuple([
      Schema.Literals(["x-api-key", "x-request-id", "x-forwarded-for", "accept", "authorization", "content-type"]),
      Text
    ])
  ),
  json: Schema.Boolean,
  body: Schema.Union([
    Schema.Json,
    Schema.Struct({
      email: Schema.optionalKey(Schema.Union([Text, Schema.Json])),
      agent_id: Schema.optionalKey(Schema.Union([Text, Schema.Json]))
    })
  ])
})

const isCode = (code: string): code is ErrorCode => code in errors

/** Removes line breaks, which would end the request line or a header. */
const line = (text: string) => text.replace(/[\r\n]/gu, "")
const oneOf = (encoded: boolean) => (text: string) => line(encoded ? encodeURIComponent(text.toWellFormed()) : text)

const write = ({ body, encoded, headers, json, method, query, rest, route }: typeof Request.Type) => {
  const text = oneOf(encoded)
  const asked = query.map(([key, value]) => `${text(key)}=${text(value)}`).join("&")
  const path = route + (route.endsWith("/") ? text(rest) : "") + (asked === "" ? "" : `?${asked}`)
  const content = method === "POST" || method === "PUT" || method === "PATCH" ? JSON.stringify(body) : ""
  return {
    line: `${method} ${path} HTTP/1.1`,
    headers: [
      ...headers.map(([name, value]) => `${name}: ${line(value)}`),
      ...(json && content !== "" ? ["content-type: application/json"] : []),
      ...(content === "" ? [] : [`content-length: ${Buffer.byteLength(content)}`])
    ],
    content
  }
}

layer(RunningService.layerShared(), { excludeTestServices: true })("any request", (it) => {
  it.effect.prop(
    "causes no 5xx response, even if it contains random text, and every error response has the documented body",
    [Arbitrary.schema(Request)],
    ([request]) =>
      Effect.gen(function* () {
        const { port } = yield* RunningService.RunningService
        const { content, headers, line } = write(request)
        const reply = yield* send(port, line, headers, content)
        assert.isTrue(reply.status >= 200 && reply.status < 500, `${reply.status} ${reply.text}`)
        assert.isDefined(reply.headers["x-request-id"])
        if (reply.status < 400 || request.method === "HEAD") return
        const code = /"code":"(\w+)"/u.exec(reply.text)?.[1] ?? ""
        if (!isCode(code)) return assert.fail(`This is no error body: ${reply.text}`)
        assertProblem(reply, code)
      }),
    { arbitrary: { runs: 600 } }
  )
})
