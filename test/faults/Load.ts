/** A load of validations over HTTP at a fixed rate. Each request has an id of its own. */
import { Clock, Effect, FiberSet, MutableRef, Option, Schedule, Schema } from "effect"
import * as ServiceClient from "#test/support/ServiceClient.ts"

/** Outcome of a request. `status` is null if the connection was refused or reset, or the response timed out. */
export interface Outcome {
  readonly id: string
  readonly phase: string
  /** The phase in which the request ended. */
  readonly endedIn: string
  readonly status: number | null
  readonly startedMs: number
  readonly durationMs: number
  /** Error code of the response; null without one. */
  readonly code: string | null
  /** Whether the response has a Retry-After. */
  readonly hasRetryAfter: boolean
}

export interface Load {
  /** Sets the phase of the requests that start from now on. */
  readonly phase: (name: string) => Effect.Effect<void>
  /** Stops the load, waits for the requests in flight, and returns all outcomes. */
  readonly stop: Effect.Effect<ReadonlyArray<Outcome>>
  /** Waits until a request that starts from now on returns 200. Returns the duration of the wait in milliseconds. */
  readonly recovered: Effect.Effect<number>
}

export interface LoadOptions {
  readonly baseUrl: string
  readonly key: string
  /** Prefix of the request ids. Each load on a database needs a different one. */
  readonly name: string
  readonly perSecond?: number
  readonly connections?: number
}

const decodeProblem = Schema.decodeUnknownOption(Schema.Struct({ error: Schema.Struct({ code: Schema.String }) }))

/** Timeout of a response. */
const responseTimeout = "30 seconds"

/** The VAT IDs of the requests. They repeat, so that some answers are cached. */
const vatIds = Array.from({ length: 40 }, (_, index) => `ATU1234${String(5_000 + index * 7)}`)

/** Starts a load, which stops with the scope. */
export const make = Effect.fnUntraced(function* (options: LoadOptions) {
  const { baseUrl, connections = 16, key, name, perSecond = 80 } = options
  const { ask } = yield* ServiceClient.make(baseUrl)
  const outcomes: Array<Outcome> = []
  const phase = MutableRef.make("before")
  const ended = MutableRef.make(false)
  let sent = 0

  const one = Effect.gen(function* () {
    sent += 1
    const id = `${name}-${sent}`
    const vatId = vatIds[sent % vatIds.length] ?? ""
    const request = { id, phase: phase.current, startedMs: yield* Clock.currentTimeMillis }
    const reply = yield* ask(`/v1/validate/${vatId}`, { key, headers: { "x-request-id": id } }).pipe(
      Effect.timeout(responseTimeout),
      Effect.map(({ body, headers, status }) => ({
        status,
        code: Option.getOrNull(Option.map(decodeProblem(body), ({ error }) => error.code)),
        hasRetryAfter: Number(headers["retry-after"]) >= 1
      })),
      Effect.catchTag(["HttpClientError", "TimeoutError"], () =>
        Effect.succeed({ status: null, code: null, hasRetryAfter: false })
      )
    )
    const outcome: Outcome = {
      ...request,
      ...reply,
      endedIn: phase.current,
      durationMs: (yield* Clock.currentTimeMillis) - request.startedMs
    }
    outcomes.push(outcome)
  })

  const pace = Schedule.fixed((1000 * connections) / perSecond)
  const fibers = yield* FiberSet.make()
  for (let connection = 0; connection < connections; connection += 1) {
    const requests = Effect.suspend(() => (ended.current ? Effect.succeed(false) : Effect.as(one, true))).pipe(
      Effect.repeat({ schedule: pace, while: (continues) => continues })
    )
    yield* FiberSet.run(fibers, Effect.delay(requests, (1000 / perSecond) * connection))
  }

  const load: Load = {
    phase: (next) => Effect.sync(() => MutableRef.set(phase, next)),
    stop: Effect.suspend(() => {
      MutableRef.set(ended, true)
      return FiberSet.awaitEmpty(fibers)
    }).pipe(Effect.map(() => outcomes)),
    recovered: Effect.gen(function* () {
      const from = yield* Clock.currentTimeMillis
      const firstSuccess = Effect.sync(() => outcomes.find(({ startedMs, status }) => startedMs >= from && status === 200))
      const first = yield* Effect.repeat(firstSuccess, {
        schedule: Schedule.spaced("20 millis"),
        until: (outcome) => outcome !== undefined
      })
      return first === undefined ? 0 : first.startedMs + first.durationMs - from
    })
  }
  return load
})
