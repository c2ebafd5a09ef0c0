/** The listener with an answerer of the test's own in front of what stands for the router, and Node's own server before the same. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Deferred, Duration, Effect, Exit, Layer, Schedule, Scope } from "effect"
import { HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { createServer } from "node:http"
import { Draining } from "#infra/Draining.ts"
import type { Exchange } from "#infra/HttpConnection.ts"
import * as HttpListener from "#infra/HttpListener.ts"
import * as RawHttp from "#test/support/RawHttp.ts"

export const get = (url: string, ...headers: ReadonlyArray<string>) =>
  `GET ${url} HTTP/1.1\r\n${["Host: x", ...headers].map((line) => `${line}\r\n`).join("")}\r\n`
export const post = (url: string, body: string) =>
  `POST ${url} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`

export const said = (method: string, url: string, body = "") => `<${method} ${url} ${body}>`

/** What stands for the router. It takes its time with `/slow`, and has more for `/huge` than the system keeps of what nobody reads. */
const routerOf = (slow: Effect.Effect<void>) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    if (request.url === "/slow") yield* slow
    if (request.url === "/huge") return HttpServerResponse.text(hugeBody)
    return HttpServerResponse.text(said(request.method, request.url, yield* request.text))
  })

export const answer = (exchange: Exchange, body = said(exchange.method, exchange.url)) =>
  exchange.answer({ status: 200, headers: { "content-type": "text/plain", "content-length": String(body.length) }, body })

export const longBody = "x".repeat(1_000_000)
export const hugeBody = "x".repeat(40_000_000)

const portOf = (services: Context.Context<HttpServer.HttpServer>) => {
  const { address } = Context.get(services, HttpServer.HttpServer)
  return "port" in address ? address.port : 0
}

/** Answers `/quick` and `/long` at once, if they have no body, and leaves `/later` to the test; notes all that it is offered. */
export const listen = Effect.suspend(() => listenWith({}))

/** The same, where no response may stand still for longer than `stalled`. */
export const listenWith = Effect.fnUntraced(function* (options: Pick<HttpListener.HttpListenerOptions, "stalled">) {
  const offered: Array<string> = []
  const later: Array<Exchange> = []
  const begun = yield* Deferred.make<void>()
  const slowly = yield* Deferred.make<void>()
  const takeFirst = (exchange: Exchange) => {
    const { headers, method, url } = exchange
    offered.push(url)
    if (method !== "GET" || headers["content-length"] !== undefined) return false
    if (url === "/later") return later.push(exchange) > 0
    return url === "/long" ? answer(exchange, longBody) : url === "/quick" && answer(exchange)
  }
  const listener = HttpListener.layer({ host: "127.0.0.1", port: 0, takeFirst, grace: Duration.seconds(5), ...options })
  const scope = yield* Scope.fork(yield* Effect.scope)
  const services = yield* Layer.buildWithScope(
    HttpServer.serve(routerOf(Deferred.await(slowly))).pipe(
      Layer.provideMerge(listener),
      Layer.provide(Layer.succeed(Draining, { begun }))
    ),
    scope
  )
  return {
    connect: RawHttp.open(portOf(services)),
    offered,
    /** Waits for the first ones that are left to the test. */
    later: (count: number) =>
      Effect.sync(() => later).pipe(
        Effect.repeat({ until: ({ length }) => length >= count, schedule: Schedule.spaced("2 millis") }),
        Effect.timeout("10 seconds")
      ),
    /** Lets the router answer what it takes its time with. */
    letGo: Deferred.succeed(slowly, undefined),
    drain: Deferred.succeed(begun, undefined),
    stop: Scope.close(scope, Exit.void)
  }
})

/** When another client has got an answer, the server has read what came before. */
export const served = Effect.fnUntraced(function* (client: RawHttp.Client) {
  yield* client.send(get("/quick"))
  yield* client.until(has(said("GET", "/quick")))
})

/** Whether a text has these parts, one behind the other. */
export const has =
  (...parts: ReadonlyArray<string>) =>
  (text: string) => {
    const places = parts.map((part) => text.indexOf(part))
    return places.every((place, index) => place > (places[index - 1] ?? -1))
  }

/** Node's own server before the same router. */
export const listenAlone = Effect.gen(function* () {
  const listener = NodeHttpServer.layer(() => createServer({ requireHostHeader: false }), { port: 0, host: "127.0.0.1" })
  return RawHttp.open(portOf(yield* Layer.build(HttpServer.serve(routerOf(Effect.void)).pipe(Layer.provideMerge(listener)))))
})
