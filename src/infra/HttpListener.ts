/** The listening socket. What Node's parser refuses before any route sees it still gets the service's error body (DECISIONS 7). */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { randomUUIDv7 } from "node:crypto"
import { createServer, IncomingMessage, type Server, ServerResponse, STATUS_CODES } from "node:http"
import { Socket } from "node:net"
import { Deferred, Duration, Effect, Layer, Predicate, Schema } from "effect"
import { Draining } from "#infra/Draining.ts"
import { type Exchange, HttpConnection } from "#infra/HttpConnection.ts"
import { readableTarget } from "#infra/ReadableTarget.ts"

export interface HttpListenerOptions {
  readonly host: string
  readonly port: number
  /** Is offered each request before the router is, a plain one perhaps twice; true if it takes it. */
  readonly takeFirst: (exchange: Exchange) => boolean
  /** How long requests may go on once it has stopped listening; what takes longer is cut off. */
  readonly grace: Duration.Duration
  /** How long nothing may move on a connection while a response is under way (default: 66 s). */
  readonly stalled?: Duration.Duration
}

/** Most often another program uses the port. */
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

/** Longest request line and headers together. Longer ones are answered, not read. */
const maxHeaderBytes = 32 * 1024
/** A client that sends a request slower than this is cut off. */
const requestTimeoutMs = 30_000
/** How often Node looks for such clients. */
const checkEveryMs = 2_000
/** Clients are told that a connection stays this long when nothing is asked on it. It does a little longer, for who asks in the last moment. */
const keepAliveMs = 65_000
const keepAliveBufferMs = 1_000
/** Nothing moves for so long only where a client reads nothing of what it asked for: no request takes the service so long. */
const longestStall = Duration.millis(keepAliveMs + keepAliveBufferMs)
/** A proxy's connections stay for days, and each has something else than plain requests on it some time. */
const maxRequestsOfNode = 1_000
/** The rest of a refused request is read and thrown away, so that the answer is not lost in a reset: this much, with pauses this long. */
const drainBytes = 16 * 1024 * 1024
const drainMs = 1_000

export const layer = ({ grace, host, port, stalled = longestStall, takeFirst }: HttpListenerOptions) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { begun } = yield* Draining
      const server = makeServer(stalled)
      const closing = closingEach(server)
      offerFirst(server, takeFirst, closing.isClosing)
      yield* Effect.forkScoped(Effect.andThen(Deferred.await(begun), Effect.sync(closing.close)))
      // A connection whose request never ends would keep the server open for as long as its client likes.
      const cut = Layer.effectDiscard(Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections())))
      const listening = NodeHttpServer.layer(() => server, { host, port, gracefulShutdownTimeout: grace })
      const refused = (cause: unknown): Layer.Layer<Layer.Success<typeof listening>, CannotListen> =>
        Layer.effectContext(Effect.fail(new CannotListen({ host, port, cause })))
      return cut.pipe(Layer.provideMerge(Layer.catchTag(listening, "ServeError", ({ cause }) => refused(cause))))
    })
  )

const makeServer = (stalled: Duration.Duration): Server => {
  const server = createServer({
    maxHeaderSize: maxHeaderBytes,
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: checkEveryMs,
    keepAliveTimeout: keepAliveMs,
    keepAliveTimeoutBuffer: keepAliveBufferMs,
    // Nobody asks for the body of a request that has none: its stream begins at its end, which is a tenth of what a request costs.
    optimizeEmptyRequests: true,
    // Node would answer a request without Host by itself, with an empty 400. Nothing here depends on Host.
    requireHostHeader: false
  })
  server.timeout = Duration.toMillis(stalled)
  server.on("clientError", (error, socket) => refuse(error, socket))
  // Without a listener Node drops the connection.
  server.on("connect", (_, socket) =>
    answer(socket, [405, "METHOD_NOT_ALLOWED", "This is no proxy"], "allow: GET, HEAD, POST, DELETE\r\n")
  )
  // An expectation that nobody knows may be ignored (RFC 9110, 10.1.1); Node would answer it by itself, with an empty 417.
  server.on("checkExpectation", (request, response) => server.emit("request", request, response))
  return server
}

/** Gives back what makes every response from then on, also to a request under way, the last one on its connection. */
const closingEach = (server: Server) => {
  const open = new Set<ServerResponse>()
  let isClosing = false
  const close = (response: ServerResponse) => response.setHeader("connection", "close")
  const track = (_: unknown, response: ServerResponse) => {
    if (isClosing) return close(response)
    open.add(response)
    return response.once("close", () => open.delete(response))
  }
  server.on("request", track)
  server.on("checkContinue", track)
  return {
    isClosing: () => isClosing,
    close: () => {
      isClosing = true
      for (const response of open) if (!response.headersSent) close(response)
    }
  }
}

/**
 * Offers each request to `take` before the listeners of the server hear of it, and the plain ones before Node does. A plain one that is not
 * taken is offered again when Node has read it.
 */
const offerFirst = (server: Server, take: HttpListenerOptions["takeFirst"], isClosing: () => boolean) => {
  const emit = server.emit.bind(server)
  const connections = new Set<HttpConnection>()
  const ofNode = new WeakMap<object, HttpConnection>()

  const connect = (socket: Socket) => {
    const connection = new HttpConnection(socket, {
      take,
      isClosing,
      idleTimeoutMs: keepAliveMs + keepAliveBufferMs,
      keepAliveSeconds: keepAliveMs / 1_000,
      maxRequestsOfNode,
      giveToNode: (own) => {
        ofNode.set(own, connection)
        emit("connection", own)
      }
    })
    connections.add(connection)
    socket.once("close", () => connections.delete(connection))
    return true
  }

  /** Whether the server's listeners need not hear of it. */
  const offer = (request: IncomingMessage, response: ServerResponse) => {
    const begun = ofNode.get(request.socket)?.begun(request, response)
    if (begun === "passed" || begun === "too late") return begun === "too late"
    return take({
      method: request.method ?? "",
      url: request.url ?? "",
      headers: request.headers,
      answer: ({ body, headers, status }) => {
        if (response.destroyed || response.headersSent) return false
        response.writeHead(status, isClosing() ? { ...headers, connection: "close" } : headers).end(body)
        return true
      },
      pass: (known) => {
        known(request)
        emit("request", request, response)
      }
    })
  }

  server.emit = (event: string, ...args: ReadonlyArray<unknown>) => {
    const [first, response] = args
    if (event === "connection" && first instanceof Socket) return connect(first)
    if (first instanceof IncomingMessage) first.url = readableTarget(first.url ?? "")
    const isOffered = event === "request" && first instanceof IncomingMessage && response instanceof ServerResponse
    return (isOffered && offer(first, response)) || emit(event, ...args)
  }

  const closeIdle = server.closeIdleConnections.bind(server)
  server.closeIdleConnections = () => {
    for (const connection of connections) connection.closeIfIdle()
    closeIdle()
  }
  const closeAll = server.closeAllConnections.bind(server)
  server.closeAllConnections = () => {
    for (const connection of connections) connection.close()
    closeAll()
  }
}

type Refusal = readonly [status: number, code: string, message: string]

const refusals = new Map<string, Refusal>([
  ["HPE_HEADER_OVERFLOW", [431, "REQUEST_HEADER_FIELDS_TOO_LARGE", "The request line and headers have at most 32 KiB together"]],
  ["ERR_HTTP_REQUEST_TIMEOUT", [408, "REQUEST_TIMEOUT", "The request did not arrive in time"]]
])

const refuse = (error: Error, socket: Writable) => {
  const code = Predicate.hasProperty(error, "code") && Predicate.isString(error.code) ? error.code : ""
  if (code === "ECONNRESET") return
  answer(socket, refusals.get(code) ?? [400, "VALIDATION_ERROR", "This is no HTTP request that can be read"])
}

/** Writes the error body by hand and closes; `headers` are whole lines. */
const answer = (socket: Writable, [status, code, message]: Refusal, headers = "") => {
  if (!isSocket(socket) || !socket.writable) return
  const requestId = randomUUIDv7()
  const body = JSON.stringify({ error: { code, message, request_id: requestId } })
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n` +
      `x-request-id: ${requestId}\r\n${headers}connection: close\r\n\r\n${body}`
  )
  let drained = 0
  socket.on("data", (chunk: Uint8Array) => {
    drained += chunk.length
    if (drained > drainBytes) socket.destroy()
  })
  socket.setTimeout(drainMs, () => socket.destroy())
}

type Writable = NodeJS.WritableStream & { readonly destroyed?: boolean }

const isSocket = (stream: object): stream is Socket => "destroy" in stream && "resume" in stream
