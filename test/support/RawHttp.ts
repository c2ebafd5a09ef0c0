/** HTTP without a client library, which would correct malformed requests before it sends them. */
import { Effect, Schedule, Schema } from "effect"
import { createConnection } from "node:net"
import type { Reply } from "#test/support/ServiceClient.ts"

const parseJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))

/** Sends the bytes and collects the response until the server closes the connection. Times out after 10 seconds. */
export const exchange = (port: number, bytes: string | Uint8Array) =>
  Effect.callback<string, Error>((resume) => {
    const chunks: Array<Uint8Array> = []
    const received = () => resume(Effect.succeed(Buffer.concat(chunks).toString("utf8")))
    const socket = createConnection({ port, host: "127.0.0.1" }, () => socket.write(bytes))
    socket.on("data", (chunk) => {
      chunks.push(chunk)
    })
    socket.on("end", received)
    // A reset before any response is a failure.
    socket.on("error", (error) => (chunks.length === 0 ? resume(Effect.fail(error)) : received()))
    return Effect.sync(() => socket.destroy())
  }).pipe(Effect.timeout("10 seconds"))

/** Parses the first response in the text. */
export const readReply = (text: string): Reply => {
  const [head = "", ...rest] = text.split("\r\n\r\n")
  const [statusLine = "", ...lines] = head.split("\r\n")
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()])
  )
  const content = rest.join("\r\n\r\n")
  const json = parseJson(content)
  const body = json._tag === "Some" ? json.value : content
  return { status: Number(statusLine.split(" ", 2)[1]), headers, text: content, body }
}

/** Sends a request line, headers and body unchanged, with `connection: close` added. Returns the reply. */
export const send = (
  port: number,
  requestLine: string | Uint8Array,
  headers: ReadonlyArray<string> = [],
  body: string | Uint8Array = ""
) =>
  Effect.map(
    exchange(
      port,
      Buffer.concat([
        Buffer.from(requestLine),
        Buffer.from(`\r\n${["host: x", "connection: close", ...headers].join("\r\n")}\r\n\r\n`),
        Buffer.from(body)
      ])
    ),
    readReply
  )

/** Opens a connection that lasts until its scope ends. */
export const open = Effect.fnUntraced(function* (port: number) {
  const socket = createConnection({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true })
  const state = { text: "", isClosed: false }
  socket.on("data", (chunk) => {
    state.text += chunk.toString("latin1")
  })
  socket.on("end", () => (state.isClosed = true))
  socket.on("close", () => (state.isClosed = true))
  socket.on("error", () => undefined)
  yield* Effect.addFinalizer(() => Effect.sync(() => socket.destroy()))
  return {
    send: (bytes: string) => Effect.sync(() => void socket.write(bytes)),
    /** Sends FIN, and keeps reading. */
    end: Effect.sync(() => void socket.end()),
    /** Resets the connection. */
    leave: Effect.callback<void>((resume) => {
      socket.once("close", () => resume(Effect.void))
      socket.resetAndDestroy()
    }),
    /** Number of bytes that the kernel has not accepted yet, because the server does not read. */
    unsent: Effect.sync(() => socket.writableLength),
    pause: Effect.sync(() => void socket.pause()),
    resume: Effect.sync(() => void socket.resume()),
    /** Waits until all text received so far satisfies the predicate. */
    until: (isIt: (text: string) => boolean) =>
      Effect.sync(() => state.text).pipe(
        Effect.repeat({ until: isIt, schedule: Schedule.spaced("2 millis") }),
        Effect.timeout("10 seconds")
      ),
    /** Waits until the server closes, and returns all text received. */
    closed: Effect.sync(() => state).pipe(
      Effect.repeat({ until: ({ isClosed }) => isClosed, schedule: Schedule.spaced("2 millis") }),
      Effect.timeout("10 seconds"),
      Effect.map(({ text }) => text)
    )
  }
})

export type Client = Effect.Success<ReturnType<typeof open>>
