import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { createServer as createHttpServer, type ServerResponse } from "node:http"
import { createServer } from "node:net"
import { HttpConnection } from "#infra/HttpConnection.ts"
import * as RawHttp from "#test/support/RawHttp.ts"

/** Connections that may be idle for a twentieth of a second, in front of a server that answers when it is told to. */
const listen = Effect.gen(function* () {
  const unanswered: Array<ServerResponse> = []
  const nodes = createHttpServer({ keepAliveTimeout: 50 }, (_, response) => void unanswered.push(response))
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const options = {
      take: () => false,
      isClosing: () => false,
      idleTimeoutMs: 50,
      keepAliveSeconds: 0,
      giveToNode: (own: object) => nodes.emit("connection", own)
    }
    return new HttpConnection(socket, options)
  })
  const port = yield* Effect.callback<number>((resume) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
    })
  })
  yield* Effect.addFinalizer(() => Effect.sync(() => server.close()))
  return { connect: RawHttp.open(port), answer: Effect.sync(() => unanswered.map((response) => response.end("answered"))) }
})

layer(Layer.empty, { excludeTestServices: true })("a connection", (it) => {
  it.effect("is closed when nothing is asked on it for some time, unless a request is under way", () =>
    Effect.gen(function* () {
      const { answer, connect } = yield* listen
      const asking = yield* connect
      yield* asking.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      // By the time that these two are closed, one after the other, it has taken longer than a connection may be idle.
      for (const _ of [1, 2]) yield* (yield* connect).closed
      yield* answer
      assert.include(yield* asking.until((text) => text.includes("answered")), "200 OK")
      assert.include(yield* asking.closed, "answered")
    })
  )
})
