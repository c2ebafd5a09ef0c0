import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { MockAgent } from "@effect/platform-node/Undici"
import { Cause, Effect, Exit, Fiber, Layer, Queue } from "effect"
import { TestClock } from "effect/testing"
import { gzipSync } from "node:zlib"
import type { SourceFailure } from "#domain/vat/Verdict.ts"
import * as SourceHttp from "#infra/sources/SourceHttp.ts"
import * as StandIn from "#test/support/StandIn.ts"
import { assert, describe, fresh, it } from "#test/support/Test.ts"

const parts = Layer.mergeAll(StandIn.layer, SourceHttp.layerClient)

const connect = Effect.gen(function* () {
  const standIn = yield* StandIn.StandIn
  const http = yield* SourceHttp.make("vies", { baseUrl: `${standIn.baseUrl}/api/`, timeout: "20 seconds" })
  return { standIn, http, ask: http.post("/question", { a: "ü" }) }
})

/** Returns the failure that a scripted answer causes. The test fails if the call succeeds. */
const failureOf = (script: StandIn.Script) =>
  Effect.gen(function* () {
    const { standIn, ask } = yield* connect
    yield* standIn.next(script)
    const failure = yield* Effect.flip(ask)
    return plain(failure)
  }).pipe(Effect.provide(parts))

const plain = ({ source, reason, scope, retry }: SourceFailure) => ({ source, reason, scope, retry })

const malformed = { source: "vies", reason: "malformed", scope: "source", retry: "soon" } as const
const unreachable = { ...malformed, reason: "unreachable" } as const
const timeout = { ...malformed, reason: "timeout", scope: "member_state", retry: "later" } as const
const noConnection = { ...timeout, scope: "source" } as const

const own = fresh(parts)

describe("a call to a source", () => {
  const head = (...lines: ReadonlyArray<string>) => `HTTP/1.1 200 OK\r\n${lines.join("\r\n")}\r\n\r\n`
  const withReset =
    (bytes: string): StandIn.Script =>
    (call) =>
      Effect.andThen(call.write(bytes), call.reset)
  const withEnd =
    (bytes: string): StandIn.Script =>
    (call) =>
      Effect.andThen(call.write(bytes), call.end)

  const shapes: ReadonlyArray<readonly [string, StandIn.Script, object]> = [
    ["a connection reset before the response", (call) => call.reset, unreachable],
    ["the end of the connection before the response", (call) => call.end, unreachable],
    ["a connection reset inside the headers", withReset("HTTP/1.1 200 OK\r\ncontent-"), unreachable],
    ["a connection reset inside the body", withReset(`${head("content-length: 100")}{"valid":true`), unreachable],
    ["the end of the connection inside the body", withEnd(`${head("content-length: 100")}{"valid":true}`), unreachable],
    [
      "the end of the connection inside a chunk",
      withEnd(`${head("transfer-encoding: chunked")}40\r\n{"valid":true}`),
      unreachable
    ],
    ["a response that is not HTTP", StandIn.raw("SSH-2.0-OpenSSH_9.2\r\n\r\n"), malformed],
    ["chunks without a length", StandIn.raw(`${head("transfer-encoding: chunked")}zz\r\n{}\r\n`), malformed],
    ["two content lengths", StandIn.raw(`${head("content-length: 2", "content-length: 3")}{}`), malformed],
    ["endless headers", StandIn.raw(`HTTP/1.1 200 OK\r\nx: ${"y".repeat(100_000)}`), malformed],
    ["text that is not UTF-8", StandIn.answer(200, Buffer.from(`{"name":"Müller"}`, "latin1")), malformed],
    ["an unrequested compressed body", StandIn.answer(200, gzipSync("{}"), { "content-encoding": "gzip" }), malformed],
    ["a body of 256 KiB and one byte", StandIn.answer(200, " ".repeat(256 * 1024 + 1)), malformed],
    [
      "a huge body with status 429",
      StandIn.answer(429, " ".repeat(300 * 1024)),
      { ...malformed, reason: "throttled", retry: "later" }
    ],
    [
      "text in Latin-1 with status 503",
      StandIn.answer(503, Buffer.from([0xfc])),
      { ...malformed, reason: "unavailable", retry: "later" }
    ]
  ]
  for (const [name, script, expected] of shapes) {
    it.effect(`fails because of ${name}`, function* () {
      assert.deepStrictEqual(yield* failureOf(script), expected)
    })
  }

  it.effect("fails as unreachable with the code ECONNREFUSED if the connection is refused", () =>
    Effect.gen(function* () {
      const { baseUrl } = yield* Effect.provide(StandIn.StandIn, StandIn.layer)
      const http = yield* SourceHttp.make("bzst", { baseUrl, timeout: "15 seconds" })
      const failure = yield* Effect.flip(http.get("/"))
      assert.deepStrictEqual(plain(failure), { ...unreachable, source: "bzst" })
      assert.strictEqual(failure.code, "ECONNREFUSED")
    }).pipe(Effect.provide(SourceHttp.layerClient))
  )

  it.effect("fails as unreachable if the URL of the source is malformed", () =>
    Effect.gen(function* () {
      const http = yield* SourceHttp.make("bzst", { baseUrl: "nowhere", timeout: "15 seconds" })
      assert.deepStrictEqual(plain(yield* Effect.flip(http.get("/"))), { ...unreachable, source: "bzst" })
    }).pipe(Effect.provide(SourceHttp.layerClient))
  )

  const waits: ReadonlyArray<readonly [string, StandIn.Script]> = [
    ["a source that sends nothing", StandIn.silence],
    ["a source that stops inside the headers", StandIn.raw("HTTP/1.1 200 OK\r\ncontent-")],
    ["a source that stops inside the body", StandIn.raw(`${head("content-length: 15")}{"valid":true`)],
    ["a source that stops before the last chunk", StandIn.raw(`${head("transfer-encoding: chunked")}e\r\n{"valid":true}\r\n`)]
  ]
  for (const [name, script] of waits) {
    own.effect(`times out and closes its connection because of ${name}`, function* () {
      const { standIn, ask } = yield* connect
      yield* standIn.next(script)
      const fiber = yield* Effect.forkChild(Effect.flip(ask))
      const call = yield* Queue.take(standIn.calls)
      yield* TestClock.adjust("19999 millis")
      assert.strictEqual(fiber.pollUnsafe(), undefined)
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(plain(yield* Fiber.join(fiber)), timeout)
      yield* call.closed
    })
  }

  own.effect("times out if the body arrives byte by byte", function* () {
    const { standIn, ask } = yield* connect
    const drops = yield* Queue.unbounded<number>()
    yield* standIn.next((call) =>
      Effect.andThen(
        call.write(head("transfer-encoding: chunked")),
        Effect.forever(Effect.andThen(Queue.take(drops), call.write("1\r\n \r\n")))
      )
    )
    const fiber = yield* Effect.forkChild(Effect.flip(ask))
    const call = yield* Queue.take(standIn.calls)
    yield* Effect.forEach(
      Array.from({ length: 20 }, (_, second) => second),
      (second) => Effect.andThen(Queue.offer(drops, second), TestClock.adjust("1 seconds")),
      { discard: true }
    )
    assert.deepStrictEqual(plain(yield* Fiber.join(fiber)), timeout)
    yield* call.closed
  })

  own.effect("fails without reading a body of 100 MB", function* () {
    const { standIn, ask } = yield* connect
    const chunk = Buffer.alloc(64 * 1024, 0x20)
    let sent = 0
    yield* standIn.next((call) =>
      Effect.gen(function* () {
        yield* call.write(head("content-length: 104857600"))
        while (sent < 100 * 1024 * 1024 && (yield* call.write(chunk))) sent += chunk.byteLength
      })
    )
    assert.deepStrictEqual(plain(yield* Effect.flip(ask)), malformed)
    yield* (yield* Queue.take(standIn.calls)).closed
    assert.isBelow(sent, 16 * 1024 * 1024)
  })

  own.effect("is cancelled when its caller disconnects", function* () {
    const { standIn, ask } = yield* connect
    yield* standIn.next(StandIn.silence)
    const fiber = yield* Effect.forkChild(ask)
    const call = yield* Queue.take(standIn.calls)
    yield* Fiber.interrupt(fiber)
    yield* call.closed
    const exit = yield* Fiber.await(fiber)
    assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
  })

  it.effect("times out if connecting takes too long", function* () {
    for (const code of ["UND_ERR_CONNECT_TIMEOUT", "ETIMEDOUT"]) {
      const dispatcher = new MockAgent()
      dispatcher.disableNetConnect()
      const error = Object.assign(new Error("No connection"), { code })
      dispatcher.get("http://192.0.2.1").intercept({ path: "/" }).replyWithError(error)
      const http = yield* SourceHttp.make("vies", { baseUrl: "http://192.0.2.1", timeout: "20 seconds" }).pipe(
        Effect.provideService(NodeHttpClient.Dispatcher, dispatcher)
      )
      assert.deepStrictEqual(plain(yield* Effect.flip(http.get("/"))), noConnection)
    }
  })
})
