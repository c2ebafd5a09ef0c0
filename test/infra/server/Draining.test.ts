import { Effect, Exit, Fiber } from "effect"
import { connect } from "node:net"
import { vatIdEnding } from "#infra/sandbox/MagicNumbers.ts"
import { Sandbox } from "#infra/sandbox/Sandbox.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

layer(RunningService.layerSharedGround, { excludeTestServices: true })("a service that receives SIGTERM", (it) => {
  it.effect("responds during its delay and closes each connection with the response", function* () {
    const sandbox = yield* Sandbox
    const service = yield* RunningService.start({ SHUTDOWN_DELAY: "1500ms" })
    assert.notStrictEqual((yield* service.get("/health")).headers["connection"], "close")
    const key = yield* service.newKey
    for (const _ of [1, 2]) yield* service.validate("ATU12345678", { key })
    yield* sandbox.configure({ latency_ms: 500 })
    const slow = yield* Effect.forkScoped(service.validate(vatIdEnding("LV", "480009")), { startImmediately: true })
    yield* sandbox.until(({ vies }) => vies.in_flight === 1)
    const stopping = yield* Effect.forkScoped(service.stop, { startImmediately: true })
    const next = yield* Effect.repeat(service.get("/health"), { until: ({ headers }) => headers["connection"] === "close" })
    assert.strictEqual(next.status, 200)
    const repeated = yield* service.validate("ATU12345678", { key })
    assert.strictEqual(repeated.headers["connection"], "close", "also from the cache")
    const underWay = yield* Fiber.join(slow)
    assert.strictEqual(underWay.status, 200)
    assert.strictEqual(underWay.headers["connection"], "close", "also if the request was in flight")
    yield* Fiber.join(stopping)
    assert.isTrue(Exit.isFailure(yield* Effect.exit(service.get("/health"))))
  })

  it.effect(
    "interrupts requests after SHUTDOWN_GRACE and responds to them, even while another client sends half a request",
    function* () {
      const sandbox = yield* Sandbox
      const service = yield* RunningService.start({ SHUTDOWN_GRACE: "300ms" })
      const key = yield* service.newKey
      yield* sandbox.configure({ latency_ms: 8_000 })
      const slow = yield* Effect.forkScoped(service.validate(vatIdEnding("LV", "480017"), { key }), { startImmediately: true })
      yield* sandbox.until(({ vies }) => vies.in_flight > 0)
      const socket = connect(service.port, "127.0.0.1")
      yield* Effect.addFinalizer(() => Effect.sync(() => socket.destroy()))
      socket.on("error", () => undefined)
      socket.write("GET /health HTTP/1.1\r\nhost: x\r\n")
      yield* service.get("/health")
      yield* Effect.timeout(service.stop, "5 seconds")
      const { body, headers, status } = yield* Fiber.join(slow)
      assert.strictEqual(status, 503)
      assert.deepInclude(body, {
        error: {
          code: "SERVICE_UNAVAILABLE",
          message: "The service is stopping; retry after 2 seconds",
          request_id: headers["x-request-id"]
        }
      })
      assert.strictEqual(headers["retry-after"], "2")
      assert.strictEqual(headers["x-service-usage"], "0/100000")
      assert.strictEqual(headers["connection"], "close")
    }
  )
})
