/** The listening HTTP server. Node reads all requests; Effect's handler gets one request of a connection at a time. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { createServer, type ServerResponse } from "node:http"
import { Server, Socket } from "node:net"
import { Context, Deferred, Duration, Effect, Layer, Predicate, Queue, Result, Schema, Scheduler, Scope } from "effect"
import { HttpServer } from "effect/http"
import { NetAddress } from "effect/net"
import { Crypto } from "#domain/kernel/Crypto.ts"
import * as BodyRate from "#infra/server/BodyRate.ts"
import { Draining } from "#infra/server/Draining.ts"
import { closingResponse, HttpRequest } from "#infra/server/HttpMessages.ts"
import * as HttpRefusal from "#infra/server/HttpRefusal.ts"
import { PipelineQueue } from "#infra/server/PipelineQueue.ts"
import { requestTarget } from "#infra/server/RequestTarget.ts"

export interface HttpListenerOptions {
  readonly host: string
  readonly port: number
  /** Makes the response to a request that does not reach the router. */
  readonly refusal: (reason: HttpRefusal.RefusalReason, requestId: string) => HttpRefusal.Refusal
  /** How long requests may continue after the server has stopped listening. After this time they are interrupted. */
  readonly grace: Duration.Duration
  /** A connection without traffic for this long is closed (default: 66 s). */
  readonly stalled?: Duration.Duration
  /** The least rate at which bodies must arrive (default: 20 KiB in 5 s). */
  readonly bodyRate?: BodyRate.LeastRate
  /** Limit of open connections (default: 8,192). */
  readonly maxConnections?: number
  /** Limit of open connections of one client address (IPv6: of one /64). By default there is none, because a proxy has one address. */
  readonly maxPerAddress?: number
}

/** The server cannot listen on its address, most often because another program uses the port. */
export class CannotListen extends Schema.TaggedError<CannotListen>()("CannotListen", {
  host: Schema.String,
  port: Schema.Int,
  cause: Schema.Defect()
}) {
  override get message() {
    const why = Predicate.isError(this.cause) ? `: ${this.cause.message}` : ""
    return `Cannot listen on ${this.host}:${this.port}${why}`
  }
}

/** Limit of the request line and headers together. Larger requests are refused. */
const maxHeaderBytes = 32 * 1024
/** Timeout of receiving a whole request. */
const requestTimeoutMs = 30_000
/** How often Node checks `requestTimeoutMs`. */
const checkIntervalMs = 2_000
/** The idle timeout that responses announce. The actual timeout is longer, for requests that clients send at the last moment. */
const keepAliveMs = 65_000
const keepAliveBufferMs = 1_000
/**
 * How long an idle connection stays open after the server has stopped listening. The client can still send a request in this
 * time, and the response has `Connection: close`. If this process is a worker with a successor, idle connections stay open for
 * the announced idle timeout.
 */
const idleGrace = Duration.millis(300)
const replacedGrace = Duration.millis(keepAliveMs + keepAliveBufferMs)
/**
 * The default of `stalled`. No request takes so long. A connection therefore stalls for so long only if its client does not read
 * the responses.
 */
const longestStall = Duration.millis(keepAliveMs + keepAliveBufferMs)
/**
 * Default limit of open connections. Each connection can hold an incomplete request head of 32 kB in memory. A reverse proxy
 * needs only a few hundred connections.
 */
const mostConnections = 8_192
/**
 * Limit of the pipelined requests that wait, on all connections together. One connection adds at most the requests in 64 kB of
 * data.
 */
const maxPipelined = 16_384
/** Minimum time between two warnings about refused connections. */
const warnEvery = Duration.seconds(10)

export const layer = (options: HttpListenerOptions) =>
  Layer.effect(HttpServer.HttpServer, make(options)).pipe(Layer.merge(NodeHttpServer.layerHttpServices))

const make = Effect.fnUntraced(function* (options: HttpListenerOptions) {
  const { grace, maxConnections = mostConnections } = options
  const { begun, replaced } = yield* Draining
  const { uuidV7 } = yield* Crypto
  const dispatcher = (yield* Scheduler.Scheduler).makeDispatcher()
  const ofOneAddress = options.maxPerAddress === undefined ? "" : `, or of ${options.maxPerAddress} of one client address,`
  const warnOfDropped = yield* makeWarning(
    (count) => `Refused ${count} connections: the maximum of ${maxConnections} open connections${ofOneAddress} is reached`
  )
  const warnOfPipelines = yield* makeWarning(
    (count) => `Closed ${count} connections: the maximum of ${maxPipelined} waiting pipelined requests is reached`
  )
  const { close, server } = makeServer(options)
  server.on("drop", warnOfDropped)
  if (options.maxPerAddress !== undefined) boundPerAddress(server, options.maxPerAddress, warnOfDropped)
  const refusal = (reason: HttpRefusal.RefusalReason) => options.refusal(reason, uuidV7())
  refuseUnreadable(server, refusal)
  const watchBody = yield* BodyRate.make(options.bodyRate ?? BodyRate.leastRate, (socket) =>
    HttpRefusal.send(socket, () => refusal("TimedOut"))
  )
  yield* Effect.forkScoped(Effect.andThen(Deferred.await(begun), Effect.sync(close)))
  const closeIdle = trackIdle(server)

  // Closes all connections at the end, because a request that never ends would keep the server open.
  const address = yield* Effect.acquireRelease(listen(server, options), () =>
    Effect.sync(() => {
      server.close()
      server.closeAllConnections()
    })
  )
  const ended = yield* Deferred.make<void>()
  /** Stops listening. Does not use `close` of the HTTP server, which would reset connections on which a request is about to arrive. */
  const stopListening = Effect.sync(() => {
    close()
    Server.prototype.close.call(server, () => Deferred.doneUnsafe(ended, Effect.void))
  })
  /** Waits for the requests in flight. Closes idle connections after the duration `idle`. */
  const stop = (idle: Duration.Duration) =>
    Effect.andThen(
      stopListening,
      Effect.raceFirst(Deferred.await(ended), Effect.andThen(Effect.delay(closeIdle, idle), Deferred.await(ended)))
    )
  // A replaced worker serves its open connections, closes idle ones after `replacedGrace`, and ends after the last connection.
  const retire = Effect.andThen(
    stop(replacedGrace),
    Effect.sync(() => process.kill(process.pid, "SIGTERM"))
  )
  yield* Effect.forkScoped(Effect.andThen(Deferred.await(replaced), retire))

  return HttpServer.make({
    address,
    serve: Effect.fnUntraced(function* (app, middleware) {
      const scope = yield* Scope.fork(yield* Effect.scope, "parallel")
      yield* Effect.addFinalizer(() => Effect.timeoutOption(stop(idleGrace), grace))
      const handle = yield* Effect.updateContext(NodeHttpServer.makeHandler(app, { scope, middleware }), deeper)
      const queue = new PipelineQueue({
        handle: (request, response) => {
          request.url = requestTarget(request.url ?? "")
          // Closes the connection after a request with `Upgrade`, because Node has discarded all data after that request.
          if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false
          handle(request, response)
        },
        schedule: (task) => dispatcher.scheduleTask(task, 0),
        capacity: maxPipelined,
        onRejected: warnOfPipelines
      })
      serveBy(server, (request, response) => {
        watchBody(request)
        queue.accept(request, response)
      })
    })
  })
})

/** Returns the server, and the function `close`. After `close`, every response closes its connection. */
const makeServer = ({ maxConnections = mostConnections, stalled = longestStall }: HttpListenerOptions) => {
  let isClosing = false
  const server = createServer({
    IncomingMessage: HttpRequest,
    ServerResponse: closingResponse(() => isClosing),
    maxHeaderSize: maxHeaderBytes,
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: checkIntervalMs,
    keepAliveTimeout: keepAliveMs,
    keepAliveTimeoutBuffer: keepAliveBufferMs,
    // Ends the stream of a request without a body at once, which saves a tenth of the cost of a request.
    optimizeEmptyRequests: true,
    // Node would respond to a request without Host with an empty 400. The service does not need Host.
    requireHostHeader: false
  })
  // Allows half-open connections, so that a client that sends FIN after its request still gets the response.
  Object.assign(server, { maxConnections, timeout: Duration.toMillis(stalled), httpAllowHalfOpen: true })
  return { server, close: () => (isClosing = true) }
}

type HttpServerOfNode = ReturnType<typeof makeServer>["server"]

const refuseUnreadable = (server: HttpServerOfNode, refusal: (reason: HttpRefusal.RefusalReason) => HttpRefusal.Refusal) => {
  server.on("clientError", (error, socket) => {
    const reason = HttpRefusal.reasonOf(error)
    if (reason !== undefined && socket instanceof Socket) HttpRefusal.send(socket, () => refusal(reason))
  })
  // Without this listener, Node would close the connection of a CONNECT request without a response. With it, Node no longer
  // handles errors and timeouts of the socket, so the listener does.
  server.on("connect", (_, socket) => {
    if (!(socket instanceof Socket)) return
    socket.on("error", () => socket.destroy())
    socket.on("timeout", () => socket.destroy())
    HttpRefusal.send(socket, () => refusal("Connect"))
  })
}

/**
 * Returns the effect that closes idle connections. It also closes connections on which the client never sent data, because Node
 * counts them as active.
 */
const trackIdle = (server: HttpServerOfNode) => {
  const connections = new Set<Socket>()
  server.on("connection", (socket) => {
    connections.add(socket)
    socket.once("close", () => connections.delete(socket))
  })
  const close = Effect.sync(() => {
    server.closeIdleConnections()
    for (const socket of connections) if (socket.bytesRead === 0) socket.destroy()
  })
  // The yield lets the event loop read all received data before the connections are closed.
  return Effect.andThen(Effect.yieldNow, close)
}

/** Returns the address of a connection's client, or the /64 network of an IPv6 client, who owns a whole one. */
const networkOf = ({ remoteAddress = "" }: Socket) =>
  Result.match(NetAddress.ipFromString(remoteAddress), {
    onFailure: () => remoteAddress,
    onSuccess: (ip) => {
      const address = NetAddress.toCanonical(ip)
      return NetAddress.isIpv4Address(address)
        ? NetAddress.formatIp(address)
        : NetAddress.ipv6ToSegments(address).slice(0, 4).join(":")
    }
  })

/** Closes the connections of a client address beyond the limit, so that one client cannot take all connections. */
const boundPerAddress = (server: HttpServerOfNode, limit: number, onRefused: () => void) => {
  const open = new Map<string, number>()
  server.on("connection", (socket) => {
    const network = networkOf(socket)
    const count = (open.get(network) ?? 0) + 1
    if (count > limit) {
      onRefused()
      socket.destroy()
      return
    }
    open.set(network, count)
    socket.once("close", () => {
      const left = (open.get(network) ?? 0) - 1
      if (left > 0) open.set(network, left)
      else open.delete(network)
    })
  })
}

const listen = (server: HttpServerOfNode, { host, port }: HttpListenerOptions) =>
  Effect.callback<NetAddress.SocketAddress, CannotListen>((resume) => {
    const fail = (cause: unknown) => resume(Effect.fail(new CannotListen({ host, port, cause })))
    server.once("error", fail)
    server.listen({ host, port }, () => {
      server.off("error", fail)
      const bound = server.address()
      if (typeof bound !== "object" || bound === null) return fail(bound)
      return resume(
        Effect.mapError(
          Effect.fromResult(NetAddress.inetAddressFromIpString(bound.address, bound.port)),
          (cause) => new CannotListen({ host, port, cause })
        )
      )
    })
  })

/**
 * Returns a context to which 24 services can be added before Effect copies all of them. The default is eight, and a request adds
 * some ten services. The copy, which includes the application's services, would cost as much as the rest of a request.
 */
const deeper = (context: Context.Context<never>) => Context.makeUnsafe<unknown>(context.mapUnsafe, { maxDepth: 24 })

type Handle = (request: HttpRequest, response: ServerResponse) => void

const serveBy = (server: HttpServerOfNode, accept: Handle) => {
  server.on("request", accept)
  server.on("checkContinue", (request, response) => {
    request.expectContinue(response)
    accept(request, response)
  })
  // Ignores an unknown `Expect` header, as RFC 9110, 10.1.1 allows. Node would respond with an empty 417.
  server.on("checkExpectation", accept)
}

/** Returns a function to call at each event. It logs at most one warning in `warnEvery`, with the number of new events. */
const makeWarning = Effect.fnUntraced(function* (message: (count: number) => string) {
  const events = yield* Queue.sliding<void>(1)
  let count = 0
  const warn = Effect.suspend(() => {
    const sentence = message(count)
    count = 0
    return Effect.logWarning(sentence)
  })
  yield* Queue.take(events).pipe(Effect.andThen(warn), Effect.andThen(Effect.sleep(warnEvery)), Effect.forever, Effect.forkScoped)
  return () => {
    count += 1
    Queue.offerUnsafe(events, undefined)
  }
})
