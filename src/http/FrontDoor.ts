/**
 * Answers the plainest and commonest request, a keyed validation without parameters of what this process remembers, or refuses it for a full
 * minute, before the router, the schemas and the first effect: together they cost more than the database (docs/decisions/0003). It is plain
 * code for that reason. Whatever is not that plain, not remembered, or neither recorded nor refused for that reason, is passed on to the
 * router; Envelope goes on where this stopped.
 */
import { Clock, Context, DateTime, Effect, Exit, Layer, MutableRef, Option, Queue } from "effect"
import { type Remembered, RepeatAnswer, type RepeatedAnswer, type Repetition } from "#domain/RepeatAnswer.ts"
import type { RateLimitExceeded } from "#domain/RateLimits.ts"
import { TraceLinks } from "#domain/TraceLinks.ts"
import * as ValidationMetrics from "#domain/ValidationMetrics.ts"
import type { VatId } from "#domain/VatId.ts"
import type { AskedRequest } from "#http/RequestTelemetry.ts"
import * as Errors from "#http/Errors.ts"
import * as RequestStart from "#http/RequestStart.ts"
import * as ResponseHeaders from "#http/ResponseHeaders.ts"

/** What is sent, as it is sent. */
interface PlainResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A request and its response, as a server has them. Of `answer` and `pass` one is called, once, if the exchange is taken. */
export interface Exchange extends AskedRequest {
  /** Sends a response; `content-length` is among its headers. False if nobody is there to receive it. */
  readonly answer: (response: PlainResponse) => boolean
  /** Gives the request to the router, and tells `known` by which object it is known there; null if its client has left before. */
  readonly pass: (known: (source: object | null) => void) => void
}

/** A request that was begun here and could not be answered here. */
export interface PassedRequest {
  readonly started: RequestStart.StartedRequest
  readonly repetition: Exclude<Repetition, { readonly _tag: "Recorded" }>
}

/** A request that is being answered here. `requestedAt` is in ISO 8601. */
interface Begun {
  readonly requestedAt: string
  readonly started: RequestStart.StartedRequest
}

/** A path that means itself: no query, nothing percent-encoded. */
const plainPath = /^\/v1\/validate\/([A-Za-z0-9.+*-]{1,32})$/u

/** What a request asks, if it is of the kind that is answered here. */
const plainQuestion = ({ headers, method, url }: AskedRequest) => {
  const key = headers["x-api-key"]
  const hasBody = headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined
  const input = method === "GET" && !hasBody ? plainPath.exec(url)?.[1] : undefined
  return typeof key === "string" && input !== undefined ? { key, input } : undefined
}

const make = Effect.gen(function* () {
  const repetitions = yield* RepeatAnswer
  const start = yield* RequestStart.make
  const headersOf = yield* ResponseHeaders.make
  const beginningOf = makeBeginnings()
  const clock = yield* Clock.Clock
  const traced = yield* makeTraced
  const write = yield* makeWriter
  const isoNow = makeIsoNow(clock)
  const passed = new WeakMap<object, PassedRequest>()

  const answerWith = ({ stored, vatId }: Remembered["answer"], { requestedAt, started }: Begun): PlainResponse => {
    const { bytes, text } = beginningOf(vatId, stored)
    const rest = `"request_id":"${started.served.requestId}","requested_at":"${requestedAt}"}`
    return jsonResponseOf(200, headersOf(jsonResponse, started), text + rest, bytes + rest.length)
  }

  const refuseWith = (refusal: RateLimitExceeded, started: RequestStart.StartedRequest): PlainResponse => {
    const { headers, json, status } = Errors.tooManyCalls(refusal, started.served.requestId)
    const body = JSON.stringify(json)
    return jsonResponseOf(status, { ...headers, ...headersOf(jsonResponse, started) }, body, utf8.encode(body).length)
  }

  /** Undefined if it is the router's to answer. */
  const answerTo = (repetition: Repetition, answer: Remembered["answer"], begun: Begun) => {
    if (repetition._tag === "Recorded") return answerWith(answer, begun)
    const isTooMany = repetition._tag === "Refused" && repetition.refusal._tag === "RateLimitExceeded"
    return isTooMany ? refuseWith(repetition.refusal, begun.started) : undefined
  }

  return {
    /** Whether the exchange is answered here, or passed on later. */
    take: (exchange: Exchange): boolean => {
      const question = plainQuestion(exchange)
      const remembered = question === undefined ? undefined : repetitions.recall(question.key, question.input)
      if (remembered === undefined) return false
      const requestedAt = isoNow()
      const started = start(exchange)
      const conclude = (repetition: Repetition) => {
        if (repetition._tag === "Recorded" || repetition._tag === "Refused") {
          MutableRef.set(started.scope.usage, repetition.usage)
          MutableRef.set(started.scope.window, repetition.window)
        }
        const answer = answerTo(repetition, remembered.answer, { requestedAt, started })
        if (answer !== undefined) {
          const received = exchange.answer(answer)
          write(started, started.end(received ? Exit.succeed(answer) : Exit.interrupt()))
        } else if (repetition._tag !== "Recorded") {
          exchange.pass((source) => {
            if (source === null) write(started, started.end(Exit.interrupt()))
            else passed.set(source, { started, repetition })
          })
        }
      }
      const refused = repetitions.refusedAlready(remembered)
      if (refused === undefined) {
        const recorded = traced(started)
        repetitions.record(remembered, started.served, (repetition) => {
          recorded(repetition, remembered)
          conclude(repetition)
        })
      } else conclude(refused)
      return true
    },
    /** What is known of a request that was passed on after it had been begun. */
    passed: (source: object) => passed.get(source)
  }
})

const jsonResponseOf = (status: number, headers: Record<string, string>, body: string, bytes: number): PlainResponse => {
  headers["content-type"] = "application/json"
  headers["content-length"] = String(bytes)
  return { status, headers, body }
}

const utf8 = new TextEncoder()
const jsonResponse = { headers: { "content-type": "application/json" } }

/** The time as text; of the requests of a busy second several come within a millisecond. */
const makeIsoNow = (clock: Clock.Clock) => {
  let lastMs = Number.NaN
  let text = ""
  return () => {
    const now = clock.currentTimeMillisUnsafe()
    if (now !== lastMs) text = DateTime.formatIso(DateTime.makeUnsafe(now))
    lastMs = now
    return text
  }
}

/** The append of a request whose trace is kept is a span of its own, as everywhere, and what follows the log links to it. */
const makeTraced = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const tracer = yield* Effect.tracer
  const links = yield* TraceLinks

  return ({ span }: RequestStart.StartedRequest) => {
    if (!span.sampled) return () => undefined
    const append = tracer.span({
      name: "EventStore.append",
      kind: "internal",
      parent: Option.some(span),
      root: false,
      annotations: Context.empty(),
      links: [],
      startTime: clock.currentTimeNanosUnsafe(),
      sampled: true
    })
    return (repetition: Repetition, { answer }: Remembered) => {
      append.end(clock.currentTimeNanosUnsafe(), Exit.void)
      if (repetition._tag !== "Recorded") return
      links.noteUnsafe(repetition.position, append)
      for (const [name, value] of Object.entries(ValidationMetrics.labelsOfRepeated(answer.stored.answer)))
        span.attribute(name, value)
    }
  }
})

/** Lines that may wait to be written. They are rare, unless ACCESS_LOG asks for all of them. */
const maxLines = 10_000

/** Writes log lines for code that cannot wait for it; those of the last moment are written before the end. */
const makeWriter = Effect.gen(function* () {
  const lines = yield* Queue.dropping<Effect.Effect<void>>(maxLines)
  yield* Effect.addFinalizer(() =>
    Effect.flatMap(
      Queue.clear(lines),
      Effect.forEach((line) => line, { discard: true })
    )
  )
  yield* Effect.forkScoped(Effect.forever(Effect.flatten(Queue.take(lines))))
  return (started: RequestStart.StartedRequest, line: Effect.Effect<void> | undefined) => {
    if (line !== undefined) Queue.offerUnsafe(lines, RequestStart.within(started, line))
  }
})

/** What responses begin with, kept for as long as the answer is remembered. */
const makeBeginnings = () => {
  const known = new WeakMap<RepeatedAnswer, { readonly text: string; readonly bytes: number }>()
  return (vatId: VatId, stored: RepeatedAnswer) => {
    const before = known.get(stored)
    if (before !== undefined) return before
    const text = beginningOfBody(vatId, stored)
    const beginning = { text, bytes: utf8.encode(text).length }
    known.set(stored, beginning)
    return beginning
  }
}

/** The same bytes as ValidationResult's encoder makes, up to what differs from request to request; a test compares them. */
const beginningOfBody = ({ memberState, number, value }: VatId, { answer }: RepeatedAnswer) =>
  `{"valid":${answer.valid},"vat_id":"${value}","country_code":"${memberState.alpha2}","vat_number":"${number}",` +
  `"company_name":${JSON.stringify(answer.company_name)},"company_address":${JSON.stringify(answer.company_address)},"source":"cache",` +
  `"source_timestamp":"${DateTime.formatIso(answer.answered_at)}","cache":true,"qualified_confirmation":null,"consultation_number":null,`

export class FrontDoor extends Context.Service<FrontDoor, Effect.Success<typeof make>>()("vatproof/http/FrontDoor") {
  static readonly layer = Layer.effect(FrontDoor, make)
}
