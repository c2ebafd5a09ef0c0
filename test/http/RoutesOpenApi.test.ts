import { assert, expect, it, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { join } from "node:path"
import { interfaceVersion } from "#http/Api.ts"
import { allowedMethods, templateOf } from "#http/Routes.ts"
import { openApi, operations } from "#test/support/Description.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"

const file = join(import.meta.dirname, "../../openapi.json")

/** Anybody may ask these (INTERFACE 4 and 5; checkpoint and tiles are there to be copied). Everything else wants a key, a login or a token. */
const publicOperations = new Set([
  "GET /health",
  "GET /v1/status",
  "GET /v1/validate/{vat_id}",
  "POST /v1/register",
  "POST /v1/auth/signup",
  "GET /v1/auth/verify-email",
  "POST /v1/auth/verify-email",
  "POST /v1/auth/login",
  "GET /v1/audit/checkpoint",
  "GET /v1/audit/tile/{level}/{index}",
  "GET /v1/audit/tile/{level}/{index}.p/{width}"
])

it("openapi.json describes the interface as it is (to write it: npm run test:only -- test/http/RoutesOpenApi.test.ts -u)", () =>
  expect(`${JSON.stringify(openApi, null, 2)}\n`).toMatchFileSnapshot(file))

it("the description is of OpenAPI 3.1 and of the interface's own version", () => {
  assert.strictEqual(openApi.openapi, "3.1.0")
  assert.strictEqual(openApi.info.version, interfaceVersion)
})

it.each(operations)("$name has a success, and a request id wherever it has an error", ({ operation }) => {
  const statuses = Object.keys(operation.responses)
  assert.isTrue(
    statuses.some((status) => status.startsWith("2")),
    statuses.join()
  )
  for (const response of Object.values(operation.responses)) assert.property(response.headers, "X-Request-Id")
})

it("routes are known by their templates, those of tiles by one for all of them", () => {
  assert.strictEqual(templateOf("/v1/validate/DE123456789"), "/v1/validate/{vat_id}")
  assert.strictEqual(templateOf("/v1/audit/tile/0/x001/234.p/8"), "/v1/audit/tile/*")
  assert.strictEqual(templateOf("/openapi.json"), "/openapi.json")
  assert.isNull(templateOf("/v1/nothing"))
  assert.deepStrictEqual(allowedMethods("/v1/auth/api-keys").toSorted(), ["GET", "HEAD", "POST"])
  assert.deepStrictEqual(allowedMethods("/v1/audit/tile/0/000"), ["GET", "HEAD"])
  assert.deepStrictEqual(allowedMethods("/v1/nothing"), [])
})

const decodeMethod = Schema.decodeUnknownSync(Schema.Literals(["GET", "POST", "PUT", "PATCH", "DELETE"]))

layer(RunningService.layer(), { excludeTestServices: true })("the service", (it) => {
  it.effect("gives out its description", () =>
    Effect.gen(function* () {
      const { get } = yield* RunningService.RunningService
      const reply = yield* get("/openapi.json")
      assert.strictEqual(reply.headers["content-type"], "application/json")
      assert.strictEqual(reply.text, JSON.stringify(openApi))
    })
  )

  it.effect("says in it where its interface begins, behind a proxy that gives it a path", () =>
    Effect.gen(function* () {
      const { get } = yield* RunningService.make({ PUBLIC_URL: "https://vat.example/proof" })
      assert.containSubset((yield* get("/openapi.json")).body, { servers: [{ url: "/proof" }] })
      assert.include((yield* get("/docs")).text, '"servers":[{"url":"/proof"')
    })
  )

  it.effect.each(operations.map(({ name }) => name))("%s is public or refuses anonymous callers before anything else", (name) =>
    Effect.gen(function* () {
      const { ask } = yield* RunningService.RunningService
      const [method = "", template = ""] = name.split(" ", 2)
      const path = template.replace(/\{\w+\}/gu, "x")
      const reply = yield* ask(path, { method: decodeMethod(method), ...(method === "POST" ? { body: {} } : {}) })
      if (publicOperations.has(name)) assert.notStrictEqual(reply.status, 401)
      else assertProblem(reply, "UNAUTHORIZED")
    })
  )

  it.effect("has a page for people that loads nothing from elsewhere", () =>
    Effect.gen(function* () {
      const { get } = yield* RunningService.RunningService
      const { headers, status, text } = yield* get("/docs")
      assert.strictEqual(status, 200)
      assert.match(headers["content-type"] ?? "", /^text\/html/u)
      assert.include(text, "Validate a VAT ID")
      assert.include(text, '"showDeveloperTools":"never"')
      const markup = text.replace(/<script>[\s\S]*?<\/script>/gu, "")
      assert.notMatch(markup, /(?:src|href)=|@import|url\(/u)
      // The script could ask for fonts and more: the browser is told not to.
      const policy = headers["content-security-policy"] ?? ""
      assert.match(policy, /^default-src 'none';/u)
      assert.notMatch(policy, /https?:|\*/u)
    })
  )
})
