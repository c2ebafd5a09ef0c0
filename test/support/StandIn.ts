/** A raw TCP server on a free port of 127.0.0.1 with scripted HTTP responses, byte by byte. */
import { Context, Deferred, Effect, FiberSet, Layer, Queue } from "effect"
import type { Socket } from "node:net"
import * as TcpServer from "#test/support/TcpServer.ts"

/** One received request, and functions to answer it. `write` returns false once the client has disconnected. */
export interface Call {
  readonly head: string
  readonly body: string
  readonly write: (bytes: string | Uint8Array) => Effect.Effect<boolean>
  readonly end: Effect.Effect<void>
  readonly reset: Effect.Effect<void>
  /** Completes when the client has closed the connection. */
  readonly closed: Effect.Effect<void>
}

export type Script = (call: Call) => Effect.Effect<unknown>

/** A stand-in for another server. `next` queues scripts, each of which answers one request; `calls` lists the requests in order. */
export class StandIn extends Context.Service<
  StandIn,
  {
    readonly baseUrl: string
    readonly next: (...scripts: ReadonlyArray<Script>) => Effect.Effect<void>
    readonly calls: Queue.Dequeue<Call>
    readonly connections: Effect.Effect<number>
  }
>()("vatproof/test/StandIn") {}

/** A script that never answers. */
export const silence: Script = () => Effect.never

/** Returns a script that sends the bytes and keeps the connection open. */
export const raw =
  (bytes: string | Uint8Array): Script =>
  (call) =>
    call.write(bytes)

/** Returns a script that sends a complete response. `body` is sent unchanged if it is bytes or text, otherwise as JSON. */
export const answer =
  (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Script =>
  (call) => {
    const bytes = typeof body === "string" || body instanceof Uint8Array ? Buffer.from(body) : Buffer.from(JSON.stringify(body))
    const lines = Object.entries({ "content-length": String(bytes.byteLength), ...headers })
    const head = [`HTTP/1.1 ${status} x`, ...lines.map(([name, value]) => `${name}: ${value}`)].join("\r\n")
    return call.write(Buffer.concat([Buffer.from(`${head}\r\n\r\n`), bytes]))
  }

const make = Effect.gen(function* () {
  const run = yield* FiberSet.makeRuntime()
  const scripts = yield* Queue.unbounded<Script>()
  const calls = yield* Queue.unbounded<Call>()
  let connections = 0

  const serve = (socket: Socket) => {
    connections += 1
    const closed = Deferred.makeUnsafe<void>()
    let pending = Buffer.alloc(0)
    socket.on("error", () => undefined)
    socket.on("close", () => Deferred.doneUnsafe(closed, Effect.void))
    socket.on("data", (chunk) => {
      pending = Buffer.concat([pending, chunk])
      const request = readRequest(pending)
      if (request === undefined) return
      pending = pending.subarray(request.length)
      const call = makeCall(socket, request, Deferred.await(closed))
      run(
        Queue.offer(calls, call).pipe(
          Effect.andThen(Queue.take(scripts)),
          Effect.flatMap((script) => script(call))
        )
      )
    })
  }

  const { port } = yield* TcpServer.make(serve)
  return StandIn.of({
    baseUrl: `http://127.0.0.1:${port}`,
    next: (...answers) => Queue.offerAll(scripts, answers),
    calls,
    connections: Effect.sync(() => connections)
  })
})

export const layer = Layer.effect(StandIn, make)

const readRequest = (bytes: Buffer) => {
  const text = bytes.toString("latin1")
  const headEnd = text.indexOf("\r\n\r\n")
  if (headEnd === -1) return undefined
  const head = text.slice(0, headEnd)
  const bodyStart = headEnd + 4
  const length = bodyStart + Number(/^content-length: *(\d+)$/imu.exec(head)?.[1] ?? 0)
  if (bytes.byteLength < length) return undefined
  return { head, body: bytes.subarray(bodyStart, length).toString("utf8"), length }
}

const makeCall = (
  socket: Socket,
  request: { readonly head: string; readonly body: string },
  closed: Effect.Effect<void>
): Call => ({
  head: request.head,
  body: request.body,
  write: (bytes) =>
    Effect.race(
      Effect.callback<boolean>((resume) => {
        socket.write(bytes, (error) => resume(Effect.succeed(error === undefined || error === null)))
      }),
      Effect.as(closed, false)
    ),
  end: Effect.callback<void>((resume) => {
    socket.end(() => resume(Effect.void))
  }),
  reset: Effect.sync(() => {
    socket.resetAndDestroy()
  }),
  closed
})
