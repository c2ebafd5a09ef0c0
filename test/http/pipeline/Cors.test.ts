import { Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import * as Cors from "#http/pipeline/Cors.ts"
import { RouteTable } from "#http/pipeline/RouteTable.ts"
import { routeTable } from "#http/Routes.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, describe, it, layer } from "#test/support/Test.ts"

const app = "https://app.example.com"
const asked = { origin: app, "access-control-request-method": "GET", "access-control-request-headers": "x-api-key" }
const path = "/v1/validate/ATU12345678"

const corsOf = (...origins: ReadonlyArray<string>) =>
  Cors.make.pipe(Effect.provideService(Cors.CorsOrigins, origins), Effect.provideService(RouteTable, routeTable))

const requestOf = (method: string, headers: Record<string, string>, target = path) =>
  HttpServerRequest.fromWeb(new Request(`http://x${target}`, { method, headers })).modify({ url: target })

describe("a page of another origin", () => {
  it.effect(
    "gets no CORS response to a preflight request if the service does not allow its origin, or the path is unknown",
    function* () {
      const { preflight } = yield* corsOf(app)
      for (const origin of ["https://evil.example", "https://app.example.com.evil.example", "null"]) {
        assert.isNull(preflight(requestOf("OPTIONS", { ...asked, origin })))
      }
      assert.isNull(preflight(requestOf("OPTIONS", asked, "/nothing")))
      assert.isNull(preflight(requestOf("OPTIONS", { origin: app })))
      assert.isNull((yield* corsOf()).preflight(requestOf("OPTIONS", asked)))
    }
  )

  it.effect("can read a response only if the service allows its origin or every origin", function* () {
    const headersFor = Effect.fnUntraced(function* (origins: ReadonlyArray<string>, origin: string) {
      const { shared } = yield* corsOf(...origins)
      const { headers } = shared(requestOf("GET", { origin }), HttpServerResponse.empty({ headers: { vary: "Accept" } }))
      return [headers["access-control-allow-origin"], headers["vary"], "access-control-expose-headers" in headers]
    })
    assert.deepStrictEqual(yield* headersFor([app], app), [app, "Accept, Origin", true])
    assert.deepStrictEqual(yield* headersFor([app], "https://evil.example"), [undefined, "Accept, Origin", false])
    assert.deepStrictEqual(yield* headersFor(["*"], "https://evil.example"), ["*", "Accept", true])
    assert.deepStrictEqual(yield* headersFor([], app), [undefined, "Accept", false])
  })
})

layer(RunningService.layerShared({ CORS_ORIGINS: `${app}, http://localhost:3000` }), { excludeTestServices: true })(
  "a page of an allowed origin",
  (it) => {
    it.effect("can call the service, and can read the headers of success and error responses", function* () {
      const { ask } = yield* RunningService.RunningService
      const allowed = yield* ask(path, { method: "OPTIONS", headers: asked })
      assert.containSubset(allowed, {
        status: 204,
        headers: { "access-control-allow-origin": app, "access-control-allow-methods": "GET", "access-control-max-age": "600" }
      })
      assert.include(allowed.headers["access-control-allow-headers"] ?? "", "X-Api-Key")
      assert.isUndefined(allowed.headers["access-control-allow-credentials"])
      for (const target of [path, "/v1/validate/nonsense", "/nothing"]) {
        const { headers } = yield* ask(target, { headers: { origin: app } })
        assert.strictEqual(headers["access-control-allow-origin"], app)
        assert.include(headers["access-control-expose-headers"] ?? "", "X-Service-Usage")
        assert.include(headers["vary"] ?? "", "Origin")
      }
      const foreign = yield* ask(path, { method: "OPTIONS", headers: { ...asked, origin: "https://evil.example" } })
      assert.strictEqual(foreign.status, 405)
    })
  }
)
