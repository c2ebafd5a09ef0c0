/**
 * Responses to requests that Node's HTTP server cannot parse or does not support. They are written to the socket, because these
 * requests reach no route.
 */
import { ServerResponse, STATUS_CODES } from "node:http"
import type { Socket } from "node:net"
import { Predicate } from "effect"

export type RefusalReason = "BadRequest" | "Connect" | "HeadersTooLarge" | "TimedOut"

export interface Refusal {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/**
 * Maximum number of bytes of a refused request that are read and discarded. Unread bytes would reset the connection, and the
 * client could lose the response.
 */
const maxDrainBytes = 16 * 1024 * 1024
/** A refused connection is closed if it is idle for this long. */
const drainTimeoutMs = 1_000

const reasons = new Map<unknown, RefusalReason>([
  ["HPE_HEADER_OVERFLOW", "HeadersTooLarge"],
  ["ERR_HTTP_REQUEST_TIMEOUT", "TimedOut"]
])

/** Returns the reason behind a `clientError`; undefined if the client has reset the connection. */
export const reasonOf = (error: Error): RefusalReason | undefined => {
  const code = Predicate.hasProperty(error, "code") ? error.code : undefined
  return code === "ECONNRESET" ? undefined : (reasons.get(code) ?? "BadRequest")
}

/** Sends the refusal after the responses to all complete requests before it, and closes the connection. */
export const send = (socket: Socket, refusal: () => Refusal): void => {
  // Ignores repeated reports of a refused request: Node reports the error again for each further chunk of data.
  if (refused.has(socket)) return
  refused.add(socket)
  sendInOrder(socket, refusal)
}

const refused = new WeakSet<Socket>()

const sendInOrder = (socket: Socket, refusal: () => Refusal): void => {
  if (!socket.writable) return
  const inFlight = responseInFlight(socket)
  if (inFlight?.req.complete === true) inFlight.once("close", () => sendInOrder(socket, refusal))
  // Closes the connection, because the response to the refused request has already begun.
  else if (inFlight?.headersSent === true) socket.destroy()
  else write(socket, refusal())
}

/** Returns the response in flight on a connection, from the property that Node itself reads at a `clientError`. */
const responseInFlight = (socket: Socket) =>
  "_httpMessage" in socket && socket._httpMessage instanceof ServerResponse ? socket._httpMessage : undefined

const write = (socket: Socket, { body, headers, status }: Refusal) => {
  const lines = Object.entries({ ...headers, "content-length": Buffer.byteLength(body), connection: "close" })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}\r\n${body}`)
  let drained = 0
  socket.on("data", (chunk: Uint8Array) => {
    drained += chunk.length
    if (drained > maxDrainBytes) socket.destroy()
  })
  socket.setTimeout(drainTimeoutMs, () => socket.destroy())
}
