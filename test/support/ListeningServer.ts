/** Starts a small app behind the service's HTTP listener (`listen`), or behind Node's own server (`listenAlone`). */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { ByteSize, Context, Deferred, Duration, Effect, Exit, Layer, Schedule, Scope } from "effect"
import { HttpIncomingMessage, HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { createServer } from "node:http"
import type { Socket } from "node:net"
import { unroutableResponse } from "#http/pipeline/Errors.ts"
import * as Draining from "#infra/server/Draining.ts"
import * as HttpListener from "#infra/server/HttpListener.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import * as RawHttp from "#test/support/RawHttp.ts"

export const get = (url: string, ...headers: ReadonlyArray<string>) =>
  `GET ${url} HTTP/1.1\r\n${["Host: x", ...headers].map((line) => `${line}\r\n`).join("")}\r\n`
export const post = (url: string, body: string, ...headers: ReadonlyArray<string>) =>
  `POST ${url} HTTP/1.1\r\n${["Host: x", `Content-Length: ${body.length}`, ...headers].join("\r\n")}\r\n\r\n${body}`

/** Returns the body of the app's response to a request. */
export const said = (method: string, url: string, body = "") => `<${method} ${url} ${body}>`

/** A response body with more bytes than the kernel buffers for a client that does not read. */
export const hugeBody = "x".repeat(40_000_000)

const limit = ByteSize.kibibytes(16)

/**
 * The app adds each URL to `started`, and the connection to `sockets`. Its `/slow` waits for `slow`, `/unread` responds without reading
 * the request body, and `/limited` refuses a body of more than 16 KiB.
 */
const makeApp = Effect.fnUntraced(function* (slow: Effect.Effect<void>, started: Array<string>, sockets: Array<Socket>) {
  const request = yield* HttpServerRequest.HttpServerRequest
  started.push(request.url)
  sockets.push(NodeHttpServerRequest.toIncomingMessage(request).socket)
  if (request.url === "/slow") yield* slow
  if (request.url === "/huge") return HttpServerResponse.text(hugeBody)
  if (request.url === "/limited") {
    const isRefused = yield* Effect.isFailure(Effect.provideService(request.text, HttpIncomingMessage.MaxBodySize, limit))
    return HttpServerResponse.text("", { status: isRefused ? 413 : 200 })
  }
  const body = request.url === "/unread" ? "" : yield* request.text
  return HttpServerResponse.text(said(request.method, request.url, body))
})

const portOf = (services: Context.Context<HttpServer.HttpServer>) => {
  const { address } = Context.get(services, HttpServer.HttpServer)
  return "port" in address ? address.port : 0
}

export const listen = Effect.suspend(() => listenWith({}))

export const listenWith = Effect.fnUntraced(function* (
  options: Pick<HttpListener.HttpListenerOptions, "bodyRate" | "maxConnections" | "maxPerAddress" | "stalled">
) {
  const started: Array<string> = []
  const sockets: Array<Socket> = []
  const draining = yield* Draining.make
  const slow = yield* Deferred.make<void>()
  const listener = HttpListener.layer({
    host: "127.0.0.1",
    port: 0,
    refusal: unroutableResponse,
    grace: Duration.seconds(5),
    ...options
  })
  const scope = yield* Scope.fork(yield* Effect.scope)
  const services = yield* Layer.buildWithScope(
    HttpServer.serve(makeApp(Deferred.await(slow), started, sockets)).pipe(
      Layer.provideMerge(listener),
      Layer.provide([Layer.succeed(Draining.Draining, draining), NodeCrypto.layer])
    ),
    scope
  )
  return {
    connect: RawHttp.open(portOf(services)),
    /** The URLs of the requests that the app has received. */
    started,
    /** Number of bytes that the server has read on the connection of each request. */
    bytesRead: Effect.sync(() => sockets.map((socket) => socket.bytesRead)),
    /** Waits until the app has received `count` requests. */
    untilStarted: (count: number) =>
      Effect.sync(() => started.length).pipe(
        Effect.repeat({ until: (length) => length >= count, schedule: Schedule.spaced("2 millis") }),
        Effect.timeout("10 seconds")
      ),
    /** Lets the app respond to `/slow`. */
    letGo: Deferred.succeed(slow, undefined),
    drain: Deferred.succeed(draining.begun, undefined),
    stop: Scope.close(scope, Exit.void),
    /** Waits until new connections are refused. */
    refused: Effect.flip(Effect.forever(RawHttp.exchange(portOf(services), get("/quick", "Connection: close"))))
  }
})

/** Sends a request on another connection and waits for the response. The server has then read all data that was sent before. */
export const served = Effect.fnUntraced(function* (client: RawHttp.Client) {
  yield* client.send(get("/quick"))
  yield* client.until(has(said("GET", "/quick")))
})

/** Returns a predicate: whether a text contains these parts in this order. */
export const has =
  (...parts: ReadonlyArray<string>) =>
  (text: string) => {
    let from = 0
    return parts.every((part) => {
      const at = text.indexOf(part, from)
      from = at + part.length
      return at >= 0
    })
  }

/** Starts the same app behind Node's own server. */
export const listenAlone = Effect.gen(function* () {
  const listener = NodeHttpServer.layer(() => createServer({ requireHostHeader: false }), { port: 0, host: "127.0.0.1" })
  return RawHttp.open(
    portOf(yield* Layer.build(HttpServer.serve(makeApp(Effect.void, [], [])).pipe(Layer.provideMerge(listener))))
  )
})
