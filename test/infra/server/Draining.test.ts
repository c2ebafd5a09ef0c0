import { Effect, Exit, Fiber } from "effect"
import { connect } from "node:net"
import { vatIdEnding } from "#test/support/MagicVatIds.ts"
import { Sandbox } from "#test/support/Sandbox.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

layer(RunningService.layerSharedGround, { excludeTestServices: true })("a service that receives SIGTERM", (it) => {
  it.effect(
    "answers during SHUTDOWN_DELAY, closes each connection after its response, and interrupts requests after SHUTDOWN_GRACE",
    function* () {
      const sandbox = yield* Sandbox
      const service = yield* RunningService.start({ SHUTDOWN_DELAY: "1500ms", SHUTDOWN_GRACE: "300ms" })
      const key = yield* service.newKey
      const ask = Effect.fnUntraced(function* (vatId: string, latencyMs: number, inFlight: number) {
        yield* sandbox.configure({ latency_ms: latencyMs })
        const asked = yield* Effect.forkScoped(service.validate(vatId, { key }), { startImmediately: true })
        yield* sandbox.until(({ vies }) => vies.in_flight === inFlight)
        return asked
      })
      assert.notStrictEqual((yield* service.get("/health")).headers["connection"], "close")
      for (const _ of [1, 2]) yield* service.validate("ATU12345678", { key })
      const finished = yield* ask(vatIdEnding("LV", "480009"), 500, 1)
      const interrupted = yield* ask(vatIdEnding("LV", "480017"), 8_000, 2)
      const socket = connect(service.port, "127.0.0.1")
      yield* Effect.addFinalizer(() => Effect.sync(() => socket.destroy()))
      socket.on("error", () => undefined)
      socket.write("GET /health HTTP/1.1\r\nhost: half a request\r\n")

      const stopping = yield* Effect.forkScoped(Effect.timeout(service.stop, "5 seconds"), { startImmediately: true })
      const next = yield* Effect.repeat(service.get("/health"), { until: ({ headers }) => headers["connection"] === "close" })
      assert.strictEqual(next.status, 200)
      const cached = yield* service.validate("ATU12345678", { key })
      assert.containSubset(cached, { status: 200, headers: { connection: "close" }, body: { cache: true } })
      assert.containSubset(yield* Fiber.join(finished), { status: 200, headers: { connection: "close" } })

      yield* Fiber.join(stopping)
      const { body, headers, status } = yield* Fiber.join(interrupted)
      assert.strictEqual(status, 503)
      assert.deepInclude(body, {
        error: {
          code: "SERVICE_UNAVAILABLE",
          message: "The service is stopping; retry after 2 seconds",
          request_id: headers["x-request-id"]
        }
      })
      assert.containSubset(headers, { "retry-after": "2", "x-service-usage": "2/100000", connection: "close" })
      assert.isTrue(Exit.isFailure(yield* Effect.exit(service.get("/health"))))
    }
  )
})
