/** The listening socket. What Node's parser refuses before any route sees it still gets the service's error body (DECISIONS 7). */
import { NodeHttpServer } from "@effect/platform-node"
import { randomUUID } from "node:crypto"
import { createServer, type Server, type ServerResponse, STATUS_CODES } from "node:http"
import type { Socket } from "node:net"
import { Deferred, type Duration, Effect, Layer, Predicate } from "effect"
import { Draining } from "#infra/Draining.ts"

export interface HttpListenerOptions {
  readonly host: string
  readonly port: number
  /** How long requests may go on once it has stopped listening; what takes longer is cut off. */
  readonly grace: Duration.Duration
}

/** Longest request line and headers together. Longer ones are answered, not read. */
const maxHeaderBytes = 32 * 1024
/** A client that sends a request slower than this is cut off. */
const requestTimeoutMs = 30_000
/** The rest of a refused request is read and thrown away, so that the answer is not lost in a reset: this much, with pauses this long. */
const drainBytes = 16 * 1024 * 1024
const drainMs = 1_000

export const layer = ({ grace, host, port }: HttpListenerOptions) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { begun } = yield* Draining
      const server = makeServer()
      yield* Effect.forkScoped(Effect.andThen(Deferred.await(begun), Effect.sync(closingEach(server))))
      // A connection whose request never ends would keep the server open for as long as its client likes.
      const cut = Layer.effectDiscard(Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections())))
      return cut.pipe(Layer.provideMerge(NodeHttpServer.layer(() => server, { host, port, gracefulShutdownTimeout: grace })))
    })
  )

const makeServer = (): Server => {
  const server = createServer({
    maxHeaderSize: maxHeaderBytes,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: 65_000,
    // Node would answer a request without Host by itself, with an empty 400. Nothing here depends on Host.
    requireHostHeader: false
  })
  server.on("clientError", (error, socket) => refuse(error, socket))
  return server
}

/** Gives back what makes every response from then on, also to a request under way, the last one on its connection. */
const closingEach = (server: Server) => {
  const open = new Set<ServerResponse>()
  let closing = false
  const close = (response: ServerResponse) => response.setHeader("connection", "close")
  const track = (_: unknown, response: ServerResponse) => {
    if (closing) return close(response)
    open.add(response)
    return response.once("close", () => open.delete(response))
  }
  server.on("request", track)
  server.on("checkContinue", track)
  return () => {
    closing = true
    for (const response of open) if (!response.headersSent) close(response)
  }
}

const refusals = new Map<string, readonly [status: number, code: string, message: string]>([
  ["HPE_HEADER_OVERFLOW", [431, "REQUEST_HEADER_FIELDS_TOO_LARGE", "The request line and headers have at most 32 KiB together"]],
  ["ERR_HTTP_REQUEST_TIMEOUT", [408, "REQUEST_TIMEOUT", "The request did not arrive in time"]]
])

const refuse = (error: Error, socket: NodeJS.WritableStream & { readonly destroyed?: boolean }) => {
  const code = Predicate.hasProperty(error, "code") && Predicate.isString(error.code) ? error.code : ""
  if (code === "ECONNRESET" || !isSocket(socket) || !socket.writable) return
  const [status, name, message] = refusals.get(code) ?? [400, "VALIDATION_ERROR", "This is no HTTP request that can be read"]
  const requestId = randomUUID()
  const body = JSON.stringify({ error: { code: name, message, request_id: requestId } })
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n` +
      `x-request-id: ${requestId}\r\nconnection: close\r\n\r\n${body}`
  )
  let drained = 0
  socket.on("data", (chunk: Uint8Array) => {
    drained += chunk.length
    if (drained > drainBytes) socket.destroy()
  })
  socket.setTimeout(drainMs, () => socket.destroy())
}

const isSocket = (stream: object): stream is Socket => "destroy" in stream && "resume" in stream
