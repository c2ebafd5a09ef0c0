/** A load of validations and transactions over HTTP at a fixed rate. Each request has an id of its own. */
import { Clock, Effect, FiberSet, MutableRef, Option, Schedule, Schema } from "effect"
import * as Transactions from "#test/faults/Transactions.ts"
import * as ServiceClient from "#test/support/ServiceClient.ts"

/** Outcome of a request. `status` is null if the connection was refused or reset, or the response timed out. */
export interface Outcome {
  readonly id: string
  readonly kind: string
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

/** Returns true for 200, 201 and 202. */
export const isSuccess = ({ status }: Pick<Outcome, "status">) => status !== null && status < 300

export interface Load {
  /** Sets the phase of the requests that start from now on. */
  readonly phase: (name: string) => Effect.Effect<void>
  /** Stops the load, waits for the requests in flight, and returns all outcomes. */
  readonly stop: Effect.Effect<ReadonlyArray<Outcome>>
  /** Waits until a validation that starts from now on returns 200. Returns the duration of the wait in milliseconds. */
  readonly recovered: Effect.Effect<number>
}

export interface LoadOptions {
  readonly baseUrl: string
  readonly key: string
  /** Prefix of the request ids. Each load on a database needs a different one. */
  readonly name: string
  /** Validations per second. A sixteenth as many transactions are added, and at most 5 per second. */
  readonly perSecond?: number
}

const decodeProblem = Schema.decodeUnknownOption(Schema.Struct({ error: Schema.Struct({ code: Schema.String }) }))

/** Timeout of a response. */
const responseTimeout = "30 seconds"

/** Number of callers that validate, and as many that run transactions. */
const callers = 16

/** The VAT IDs of the requests. They repeat, so that some answers are cached. */
const vatIds = Array.from({ length: 40 }, (_, index) => `ATU1234${String(5_000 + index * 7)}`)

const validation = (key: string) => {
  let made = 0
  return (): Transactions.Request => {
    made += 1
    const path = `/v1/validate/${vatIds[made % vatIds.length] ?? ""}`
    return { kind: "validation", path, ask: { key }, succeeded: () => {} }
  }
}

/** Starts a load, which stops with the scope. */
export const make = Effect.fnUntraced(function* ({ baseUrl, key, name, perSecond = 80 }: LoadOptions) {
  const { ask } = yield* ServiceClient.make(baseUrl)
  const outcomes: Array<Outcome> = []
  const phase = MutableRef.make("before")
  const ended = MutableRef.make(false)
  let sent = 0

  const one = Effect.fnUntraced(function* (next: (id: string) => Transactions.Request) {
    sent += 1
    const id = `${name}-${sent}`
    const { ask: options, kind, path, succeeded } = next(id)
    const request = { id, kind, phase: phase.current, startedMs: yield* Clock.currentTimeMillis }
    const reply = yield* ask(path, { ...options, headers: { ...options.headers, "x-request-id": id } }).pipe(
      Effect.timeout(responseTimeout),
      Effect.tap((response) => Effect.sync(() => isSuccess(response) && succeeded(response.body))),
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

  const fibers = yield* FiberSet.make()
  const begin = Effect.fnUntraced(function* (next: (id: string) => Transactions.Request, rate: number) {
    const pace = Schedule.fixed((1000 * callers) / rate)
    const requests = Effect.suspend(() => (ended.current ? Effect.succeed(false) : Effect.as(one(next), true))).pipe(
      Effect.repeat({ schedule: pace, while: (continues) => continues })
    )
    for (let caller = 0; caller < callers; caller += 1) {
      yield* FiberSet.run(fibers, Effect.delay(requests, (1000 / rate) * caller))
    }
  })
  yield* begin(validation(key), perSecond)
  yield* begin(Transactions.make(key, vatIds), Math.min(5, perSecond / 16))

  const load: Load = {
    phase: (next) => Effect.sync(() => MutableRef.set(phase, next)),
    stop: Effect.suspend(() => {
      MutableRef.set(ended, true)
      return FiberSet.awaitEmpty(fibers)
    }).pipe(Effect.map(() => outcomes)),
    recovered: Effect.gen(function* () {
      const from = yield* Clock.currentTimeMillis
      const firstSuccess = Effect.sync(() =>
        outcomes.find(({ kind, startedMs, status }) => kind === "validation" && startedMs >= from && status === 200)
      )
      const first = yield* Effect.repeat(firstSuccess, {
        schedule: Schedule.spaced("20 millis"),
        until: (outcome) => outcome !== undefined
      })
      return first === undefined ? 0 : first.startedMs + first.durationMs - from
    })
  }
  return load
})
