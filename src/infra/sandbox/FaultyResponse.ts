/**
 * Sends the sandbox's answers, complete or broken on purpose. Sending can be interrupted at any byte, when the client disconnects
 * or the sandbox stops.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { Effect, Option } from "effect"
import type { Breakage, Behaviour } from "#infra/sandbox/Fault.ts"
import type { Reply } from "#infra/sandbox/Simulator.ts"

/**
 * Limit of a request body; a larger body gets 413. A query to a source has a few hundred bytes. A list of scripted faults can be
 * much larger.
 */
export const bodyBytesMax = 256 * 1024

const padding = Buffer.alloc(64 * 1024, "x")
const paddings = 1_600
const hugeStart = Buffer.from('{"padding":"')
const hugeEnd = Buffer.from('"}')

/**
 * The size of the `huge` answer: 100 MiB of padding. It is written in chunks, so that neither the sandbox nor the client must
 * hold the whole answer in memory.
 */
export const hugeBytes = hugeStart.length + paddings * padding.length + hugeEnd.length

/** Interval between the bytes of a `drip` answer. */
const dripMs = 200

/**
 * Delay before the reset of `reset_mid_body`. A reset discards data in flight, but the client must receive the first half of the
 * body.
 */
const settleMs = 50

/** Reads a request body as UTF-8; none if it exceeds the limit. */
export const readBody = (request: IncomingMessage): Effect.Effect<Option.Option<string>> =>
  Effect.callback((resume) => {
    const chunks: Array<Buffer> = []
    let bytes = 0
    const onData = (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes <= bodyBytesMax) chunks.push(chunk)
    }
    const onEnd = () =>
      resume(Effect.succeed(bytes > bodyBytesMax ? Option.none() : Option.some(Buffer.concat(chunks).toString("utf8"))))
    request.on("data", onData)
    request.on("end", onEnd)
    return Effect.sync(() => {
      request.off("data", onData)
      request.off("end", onEnd)
    })
  })

/** Ends when the client disconnects. */
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

/** Resets the connection: the client sees ECONNRESET instead of a normal end. */
export const reset = (response: ServerResponse): Effect.Effect<void> =>
  Effect.sync(() => {
    response.socket?.resetAndDestroy()
  })

/** Breaks the exchange with the client in the way that `breakage` names. `right` is the intact answer. */
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

/** Returns the HTML error page that a proxy sends if its server fails. */
export const httpError = (status: number, retryAfterSeconds: number | undefined): Reply => {
  const reply = page(status, `Error ${status}`)
  return retryAfterSeconds === undefined
    ? reply
    : { ...reply, headers: { ...reply.headers, "retry-after": String(retryAfterSeconds) } }
}

/** Returns the outcome that an observer gets for a broken exchange; undefined if the source answers. */
export const brokenOutcome = (behaviour: Behaviour): string | undefined =>
  behaviour.breakage ?? (behaviour.httpStatus === undefined ? undefined : `HTTP ${behaviour.httpStatus}`)

const inOrder = (...steps: ReadonlyArray<Effect.Effect<unknown>>): Effect.Effect<void> => Effect.all(steps, { discard: true })

const head = (response: ServerResponse, contentLength: number): Effect.Effect<void> =>
  Effect.sync(() => {
    response.writeHead(200, { "content-type": "application/json", "content-length": contentLength })
    response.flushHeaders()
  })

/** Writes a chunk and waits until the operating system has accepted it (backpressure). */
const write = (response: ServerResponse, chunk: Buffer): Effect.Effect<void> =>
  Effect.callback((resume) => {
    response.write(chunk, () => resume(Effect.void))
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

/** Gives each value another JSON type: strings become numbers, numbers and booleans become strings. Keeps objects and arrays. */
const otherType = (_: string, value: unknown): unknown => {
  if (typeof value === "string") return value.length
  return typeof value === "boolean" || typeof value === "number" ? String(value) : value
}
