import { connect } from "node:net"
import { Clock, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import * as Sandbox from "#test/support/Sandbox.ts"
import { assert, describe, it } from "#test/support/Test.ts"

const options = { host: "127.0.0.1", port: 0 }

/** Opens a connection, sends the text and waits until the server closes the connection. */
const connection = (port: number, text: string) =>
  Effect.callback<void>((resume) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(text))
    socket.on("error", () => {})
    socket.on("close", () => resume(Effect.void))
    socket.resume()
    return Effect.sync(() => socket.destroy())
  })

const hanging = (() => {
  const body = '{"countryCode":"DE","vatNumber":"100999703"}'
  return `POST /taxation_customs/vies/rest-api/check-vat-number HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`
})()

describe("the sandbox", () => {
  it.live("picks a free port and reports the address of each source", function* () {
    const sandbox = yield* Sandbox.make(options)
    assert.isAbove(sandbox.port, 0)
    const base = `http://127.0.0.1:${sandbox.port}`
    assert.strictEqual(sandbox.viesBaseUrl, `${base}/taxation_customs/vies/rest-api`)
    assert.strictEqual(sandbox.bzstBaseUrl, `${base}/app`)
    assert.strictEqual(sandbox.controlBaseUrl, `${base}/sandbox`)
  })

  it.live("reports a reachable address when it listens on all interfaces", function* () {
    const sandbox = yield* Sandbox.make({ host: "0.0.0.0", port: 0 })
    assert.strictEqual(sandbox.bzstBaseUrl, `http://localhost:${sandbox.port}/app`)
  })

  it.live("reports that its port is in use", function* () {
    const { port } = yield* Sandbox.make(options)
    const failure = yield* Effect.flip(Sandbox.make({ ...options, port }))
    assert.deepInclude(failure, { _tag: "SandboxNotStarted", host: "127.0.0.1", port })
    assert.include(failure.message, `cannot listen on 127.0.0.1:${port}`)
  })

  it.live("stops at once despite hanging requests, idle connections and a half-sent request", function* () {
    const scope = yield* Scope.make()
    const sandbox = yield* Scope.provide(Sandbox.make(options), scope)
    const clients = yield* Effect.forEach(
      [hanging, hanging, hanging, "GET /sandbox/settings HTTP/1.1\r\nHost: x\r\n\r\n", "POST /app/v1/abfrage HTTP/1.1\r\nConte"],
      (text) => Effect.forkScoped(connection(sandbox.port, text), { startImmediately: true })
    )
    yield* sandbox.until(({ vies }) => vies.in_flight === 3)
    const begun = yield* Clock.currentTimeMillis
    yield* Scope.close(scope, Exit.void)
    assert.isBelow((yield* Clock.currentTimeMillis) - begun, 5_000)
    yield* Fiber.joinAll(clients)
  })

  it.effect("measures the delay of an answer with the simulated clock of a test", function* () {
    const sandbox = yield* Sandbox.make(options)
    yield* sandbox.script([{ kind: "slow", latency_ms: 600_000 }])
    const body = '{"anfragendeUstid":"DE123456789","angefragteUstid":"ATU12345678"}'
    const request = `POST /app/v1/abfrage HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    const client = yield* Effect.forkScoped(connection(sandbox.port, request), { startImmediately: true })
    yield* sandbox.until(({ bzst }) => bzst.in_flight === 1)
    yield* TestClock.adjust("10 minutes")
    yield* Fiber.join(client)
    const [entry] = (yield* sandbox.journal()).entries
    assert.deepInclude(entry, { outcome: "evatr-0000", http_status: 200, duration_ms: 600_000, abandoned: false })
  })
})
