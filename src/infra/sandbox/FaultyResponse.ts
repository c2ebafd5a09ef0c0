/** Sends answers and breaks connections. Everything here may be interrupted at any byte, when the client goes or the sandbox stops. */
import type { IncomingMessage, ServerResponse } from "node:http"
import { Effect, Option } from "effect"
import type { Breakage, Conduct } from "#infra/sandbox/Fault.ts"
import type { Reply } from "#infra/sandbox/Simulator.ts"

/** Requests to a source have a few hundred bytes and a script of faults fits as well; anything larger is refused with 413. */
export const bodyBytesMax = 256 * 1024

const padding = Buffer.alloc(64 * 1024, "x")
const paddings = 1_600
const hugeStart = Buffer.from('{"padding":"')
const hugeEnd = Buffer.from('"}')

/** The size of the `huge` answer: 100 MiB of padding, written piece by piece, so that neither side has to hold it in memory. */
export const hugeBytes = hugeStart.length + paddings * padding.length + hugeEnd.length

/** Time between the bytes of a `drip` answer. */
const dripMs = 200

/** Lets the first half of a body arrive before the reset: a reset discards what is still on its way. */
const settleMs = 50

/** Reads a request's body as UTF-8; none when it is larger than the bound. */
export const readBody = (request: IncomingMessage): Effect.Effect<Option.Option<string>> =>
  Effect.callback((resume) => {
    const pieces: Array<Buffer> = []
    let bytes = 0
    const onData = (piece: Buffer) => {
      bytes += piece.length
      if (bytes <= bodyBytesMax) pieces.push(piece)
    }
    const onEnd = () =>
      resume(Effect.succeed(bytes > bodyBytesMax ? Option.none() : Option.some(Buffer.concat(pieces).toString("utf8"))))
    request.on("data", onData)
    request.on("end", onEnd)
    return Effect.sync(() => {
      request.off("data", onData)
      request.off("end", onEnd)
    })
  })

/** Ends when the client has gone away. */
export const clientGone = (response: ServerResponse): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const onClose = () => resume(Effect.void)
    response.on("close", onClose)
    return Effect.sync(() => {
      response.off("close", onClose)
    })
  })

/** Sends a complete answer. */
export const send = (response: ServerResponse, reply: Reply): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const body = Buffer.from(reply.body)
    response.writeHead(reply.status, { ...reply.headers, "content-length": body.length })
    response.end(body, () => resume(Effect.void))
  })

/** Resets the connection: the client sees ECONNRESET, not an orderly end. */
export const reset = (response: ServerResponse): Effect.Effect<void> =>
  Effect.sync(() => {
    response.socket?.resetAndDestroy()
  })

/** Breaks the exchange, starting from the answer that would have been right. */
export const sendBroken = (response: ServerResponse, breakage: Breakage, right: Reply): Effect.Effect<void> => {
  const body = Buffer.from(right.body)
  const half = body.subarray(0, Math.floor(body.length / 2))
  switch (breakage) {
    case "hang":
      return Effect.never
    case "reset":
      return reset(response)
    case "reset_mid_body":
      return inOrder(head(response, body.length), write(response, half), Effect.delay(reset(response), settleMs))
    case "short_body":
      return inOrder(head(response, body.length), write(response, half), hangUp(response))
    case "truncated_json":
      return send(response, { ...right, status: 200, body: half.toString("utf8") })
    case "html":
      return send(response, page(200, "Maintenance"))
    case "empty":
      return send(response, { ...right, status: 200, body: "" })
    case "wrong_types":
      return send(response, { ...right, status: 200, body: JSON.stringify(right.json, otherType) })
    case "huge":
      return inOrder(
        head(response, hugeBytes),
        write(response, hugeStart),
        Effect.repeat(write(response, padding), { times: paddings - 1 }),
        write(response, hugeEnd),
        finish(response)
      )
    case "drip":
      return inOrder(
        head(response, body.length),
        Effect.forEach(body, (byte) => Effect.delay(write(response, Buffer.from([byte])), dripMs), { discard: true }),
        finish(response)
      )
  }
}

/** What a proxy sends when the server behind it fails. */
export const httpError = (status: number, retryAfterSeconds: number | undefined): Reply => {
  const reply = page(status, `Error ${status}`)
  return retryAfterSeconds === undefined
    ? reply
    : { ...reply, headers: { ...reply.headers, "retry-after": String(retryAfterSeconds) } }
}

/** The journal's word for a conduct that breaks the exchange; undefined for one that answers. */
export const brokenOutcome = (conduct: Conduct): string | undefined =>
  conduct.breakage ?? (conduct.httpStatus === undefined ? undefined : `HTTP ${conduct.httpStatus}`)

const inOrder = (...steps: ReadonlyArray<Effect.Effect<unknown>>): Effect.Effect<void> => Effect.all(steps, { discard: true })

const head = (response: ServerResponse, contentLength: number): Effect.Effect<void> =>
  Effect.sync(() => {
    response.writeHead(200, { "content-type": "application/json", "content-length": contentLength })
    response.flushHeaders()
  })

/** Writes a piece and waits until the system has taken it, so that a slow reader slows the writer. */
const write = (response: ServerResponse, piece: Buffer): Effect.Effect<void> =>
  Effect.callback((resume) => {
    response.write(piece, () => resume(Effect.void))
  })

const finish = (response: ServerResponse): Effect.Effect<void> =>
  Effect.callback((resume) => {
    response.end(() => resume(Effect.void))
  })

const hangUp = (response: ServerResponse): Effect.Effect<void> =>
  Effect.sync(() => {
    response.socket?.end()
  })

const page = (status: number, title: string): Reply => ({
  status,
  outcome: title,
  body: `<!DOCTYPE html>\n<html><head><title>${title}</title></head><body><h1>${title}</h1></body></html>\n`,
  json: undefined,
  headers: { "content-type": "text/html; charset=utf-8" }
})

/** Strings become numbers; numbers and booleans become strings; objects and arrays keep their shape. */
const otherType = (_: string, value: unknown): unknown => {
  if (typeof value === "string") return value.length
  return typeof value === "boolean" || typeof value === "number" ? String(value) : value
}
