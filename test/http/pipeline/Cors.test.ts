import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

const app = "https://app.example.com"
const preflight = {
  method: "OPTIONS",
  headers: { origin: app, "access-control-request-method": "GET", "access-control-request-headers": "x-api-key" }
} as const

layer(RunningService.layerShared({ CORS_ORIGINS: `${app}, http://localhost:3000` }), { excludeTestServices: true })(
  "a page of another origin",
  (it) => {
    it.effect("may call and read response headers if the operator allows it", function* () {
      const { ask } = yield* RunningService.RunningService
      const allowed = yield* ask("/v1/validate/ATU12345678", preflight)
      assert.containSubset(allowed, {
        status: 204,
        headers: { "access-control-allow-origin": app, "access-control-allow-methods": "GET", "access-control-max-age": "600" }
      })
      assert.include(allowed.headers["access-control-allow-headers"] ?? "", "X-Api-Key")
      assert.isUndefined(allowed.headers["access-control-allow-credentials"])
      for (const path of ["/v1/validate/ATU12345678", "/v1/validate/nonsense", "/nothing"]) {
        const { headers } = yield* ask(path, { headers: { origin: app } })
        assert.strictEqual(headers["access-control-allow-origin"], app)
        assert.include(headers["access-control-expose-headers"] ?? "", "X-Service-Usage")
        assert.include(headers["vary"] ?? "", "Origin")
      }
    })

    it.effect("may not call if the operator does not allow it", function* () {
      const { ask } = yield* RunningService.RunningService
      for (const origin of ["https://evil.example", "https://app.example.com.evil.example", "null"]) {
        const refused = yield* ask("/v1/validate/ATU12345678", { ...preflight, headers: { ...preflight.headers, origin } })
        assert.strictEqual(refused.status, 405)
        const { headers } = yield* ask("/health", { headers: { origin } })
        assert.isUndefined(headers["access-control-allow-origin"] ?? refused.headers["access-control-allow-origin"])
      }
    })

    it.effect("may call if all origins are allowed, and may not without a setting", function* () {
      const open = yield* RunningService.make({ CORS_ORIGINS: "*" })
      assert.strictEqual((yield* open.ask("/v1/usage", preflight)).headers["access-control-allow-origin"], "*")
      const { headers } = yield* open.get("/health", { headers: { origin: app } })
      assert.deepStrictEqual([headers["access-control-allow-origin"], headers["vary"]], ["*", undefined])
      const closed = yield* RunningService.make()
      for (const more of [preflight, { headers: { origin: app } }]) {
        const reply = yield* closed.ask("/health", more)
        assert.isFalse(Object.keys(reply.headers).some((name) => name.startsWith("access-control")))
      }
    })
  }
)
