import { assert, expect, it, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { version } from "#domain/kernel/Version.ts"
import { routeTable } from "#http/Routes.ts"
import { namedOperations, openApi, operations } from "#test/support/Description.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"

const file = join(import.meta.dirname, "../../openapi.json")

/**
 * Operations that require no API key, login or auditor's token. Checkpoint and tiles of the log are public. The URL of a receipt link contains
 * its own secret.
 */
const publicOperations = new Set([
  "GET /health",
  "GET /v1/status",
  "GET /v1/status/history",
  "GET /v1/validate/{vat_id}",
  "POST /v1/register",
  "POST /v1/auth/signup",
  "GET /v1/auth/verify-email",
  "POST /v1/auth/verify-email",
  "POST /v1/auth/login",
  "POST /v1/auth/password-reset",
  "GET /v1/auth/password-reset",
  "POST /v1/auth/password-reset/confirm",
  "GET /v1/receipt-links/{token}",
  "GET /v1/audit/checkpoint",
  "GET /v1/audit/tile/{level}/{index}",
  "GET /v1/audit/tile/{level}/{index}.p/{width}"
])

it("openapi.json equals the generated description (to write it: npm run test:only -- test/http/RoutesOpenApi.test.ts -u)", () =>
  expect(`${JSON.stringify(openApi, null, 2)}\n`).toMatchFileSnapshot(file))

it("openapi.json declares OpenAPI 3.1 and the version of the package", () => {
  assert.strictEqual(openApi.openapi, "3.1.0")
  assert.strictEqual(openApi.info.version, version)
  const decodePackage = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ version: Schema.String })))
  const manifest = decodePackage(readFileSync(join(import.meta.dirname, "../../package.json"), "utf8"))
  assert.strictEqual(manifest.version, version)
})

it.each(namedOperations)("%s declares a success response, and X-Request-Id on every response", (_, { operation }) => {
  const statuses = Object.keys(operation.responses)
  assert.isTrue(
    statuses.some((status) => status.startsWith("2")),
    statuses.join()
  )
  for (const response of Object.values(operation.responses)) assert.property(response.headers, "X-Request-Id")
})

it("the route table returns the route template and the allowed methods of a path; all tiles of the log share one template", () => {
  const { allowedMethods, templateOf } = routeTable
  assert.strictEqual(templateOf("/v1/validate/DE123456789"), "/v1/validate/{vat_id}")
  assert.strictEqual(templateOf("/v1/audit/tile/0/x001/234.p/8"), "/v1/audit/tile/*")
  assert.strictEqual(templateOf("/openapi.json"), "/openapi.json")
  assert.isNull(templateOf("/v1/nothing"))
  assert.deepStrictEqual(allowedMethods("/v1/auth/api-keys").toSorted(), ["GET", "HEAD", "POST"])
  assert.deepStrictEqual(allowedMethods("/v1/audit/tile/0/000"), ["GET", "HEAD"])
  assert.deepStrictEqual(allowedMethods("/v1/validate/DE123456789"), ["GET"])
  assert.deepStrictEqual(allowedMethods("/v1/nothing"), [])
})

const decodeJson = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Json))

const decodeMethod = Schema.decodeUnknownSync(Schema.Literals(["GET", "POST", "PUT", "PATCH", "DELETE"]))

layer(RunningService.layerShared(), { excludeTestServices: true })("the service", (it) => {
  it.effect("serves its OpenAPI document", () =>
    Effect.gen(function* () {
      const { get } = yield* RunningService.RunningService
      const reply = yield* get("/openapi.json")
      assert.strictEqual(reply.headers["content-type"], "application/json")
      assert.strictEqual(reply.text, JSON.stringify(openApi))
    })
  )

  it.effect.each(operations.map(({ name }) => name))(
    "answers %s without authentication if it is public, otherwise rejects it with 401 before any other check",
    (name) =>
      Effect.gen(function* () {
        const { ask } = yield* RunningService.RunningService
        const [method = "", template = ""] = name.split(" ", 2)
        const path = template.replace(/\{\w+\}/gu, "x")
        const reply = yield* ask(path, { method: decodeMethod(method), ...(method === "POST" ? { body: {} } : {}) })
        if (publicOperations.has(name)) assert.notStrictEqual(reply.status, 401)
        else {
          assert.strictEqual(reply.status, 401, "Require a key or a login, or add the operation to publicOperations")
          assertProblem(reply, "UNAUTHORIZED")
        }
      })
  )

  it.effect("serves a documentation page whose policy allows only its own script, style and service", () =>
    Effect.gen(function* () {
      const { get } = yield* RunningService.RunningService
      const { headers, status, text } = yield* get("/docs")
      assert.strictEqual(status, 200)
      assert.match(headers["content-type"] ?? "", /^text\/html/u)
      assert.include(headers["cache-control"], "max-age=")
      const policy = headers["content-security-policy"] ?? ""
      assert.match(
        policy,
        /^default-src 'none'; style-src 'sha256-\S+'; script-src 'sha256-\S+'; connect-src 'self'; img-src 'self' data:;/u
      )
      assert.notMatch(policy, /https?:|\*|unsafe/u)
      assert.isBelow(gzipSync(text).length, 600_000)
      const markup = text.replace(/<(script|style)\b[\s\S]*?<\/\1>/gu, "")
      assert.notMatch(markup, /src=|@import|url\(/u)
    })
  )

  it.effect(
    "serves an llms.txt with commands that register a key, validate a VAT ID and read the quota, an explanation of error codes, and all calls",
    () =>
      Effect.gen(function* () {
        const { ask, baseUrl, get, validate } = yield* RunningService.RunningService
        const [, link = ""] = /href="([^"]*llms\.txt)"/u.exec((yield* get("/")).text) ?? []
        const { headers, text } = yield* get(link)
        assert.match(headers["content-type"] ?? "", /^text\/plain/u)
        assert.match(text, /^# Vatproof\n\n> /u)
        const commands = [...text.matchAll(/^curl -i (.+)$/gmu)].map(([, command = ""]) => command)
        assert.lengthOf(commands, 7)
        const run = (command: string, key: string) => {
          const [, url = ""] = /(https?:[^\s"]+)/u.exec(command) ?? []
          assert.isTrue(url.startsWith(baseUrl), url)
          const sent = [...command.matchAll(/-H ['"]([^:]+): ([^'"]+)['"]/gu)].map(([, name = "", value = ""]) => [
            name,
            value.replace("$API_KEY", key)
          ])
          const [, data] = /-d '(.+)'/u.exec(command) ?? []
          const body = data === undefined ? {} : { body: decodeJson(data) }
          const method = command.includes("-X POST") ? ("POST" as const) : ("GET" as const)
          return ask(url.slice(baseUrl.length), { method, headers: Object.fromEntries(sent), ...body })
        }
        const [register = "", check = "", usage = "", later = "", batch = "", results = "", updates = ""] = commands
        const registered = yield* run(register, "")
        const { api_key } = yield* Schema.decodeUnknownEffect(Schema.Struct({ api_key: Schema.String }))(registered.body)
        const validated = yield* run(check, api_key)
        assert.containSubset(validated, { status: 200, body: { valid: true } })
        assert.include(text, "`X-Service-Usage: <used>/<limit>`")
        assert.match(validated.headers["x-service-usage"] ?? "", /^1\/\d+$/u)
        assert.containSubset((yield* run(usage, api_key)).body, { requests: { used: 1 } })
        assert.containSubset(yield* run(later, api_key), { status: 200, body: { status: "final" } })
        const submitted = yield* run(batch, api_key)
        const { batch_id } = yield* Schema.decodeUnknownEffect(Schema.Struct({ batch_id: Schema.String }))(submitted.body)
        assert.include((yield* run(results.replace("$BATCH_ID", batch_id), api_key)).text, '"1","')
        assert.include((yield* run(updates, api_key)).text, '"type":"validation.final"')
        // The table of errors in llms.txt has a row for this error code.
        const refused = yield* validate("XX1", { key: api_key })
        const { error } = yield* Schema.decodeUnknownEffect(Schema.Struct({ error: Schema.Struct({ code: Schema.String }) }))(
          refused.body
        )
        assert.match(text, new RegExp(`^\\| ${refused.status} \\| \`${error.code}\` \\| .+\\|$`, "mu"))
        for (const name of ["plan", "limit", "resets_at", "upgrade_url", "contact"]) assert.include(text, `\`${name}\``)
        for (const { name } of operations) assert.include(text, `- \`${name}\`: `)
        for (const [, url = ""] of text.matchAll(/\]\((\S+)\)/gu)) {
          assert.strictEqual((yield* get(url.slice(baseUrl.length))).status, 200, url)
        }
      })
  )
})
