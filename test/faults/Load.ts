/** A bounded load of validations over HTTP, each with its own id, and the outcome of each. */
import { Clock, Effect, FiberSet, MutableRef, Option, Schedule, Schema } from "effect"
import * as ServiceClient from "#test/support/ServiceClient.ts"

/** One request that ended. `status` is null where there was no response: the connection was refused, reset, or silent for too long. */
export interface Outcome {
  readonly id: string
  readonly phase: string
  /** The phase in which it ended. */
  readonly endedIn: string
  readonly status: number | null
  readonly startedMs: number
  readonly durationMs: number
  /** The error's code, and whether the response has a Retry-After. */
  readonly code: string | null
  readonly saysWhen: boolean
}

export interface Load {
  /** Requests that start from now on belong to this phase. */
  readonly phase: (name: string) => Effect.Effect<void>
  /** Stops the load, waits for the requests in flight, and returns all of them. */
  readonly stop: Effect.Effect<ReadonlyArray<Outcome>>
  /** Waits until a request that starts after this moment is answered with 200, and returns the milliseconds that took. */
  readonly recovered: Effect.Effect<number>
}

export interface LoadOptions {
  readonly baseUrl: string
  readonly key: string
  /** Makes the ids of this load unique. */
  readonly name: string
  readonly perSecond?: number
  readonly connections?: number
}

const decodeProblem = Schema.decodeUnknownOption(Schema.Struct({ error: Schema.Struct({ code: Schema.String }) }))

/** A response that takes longer counts as missing. */
const patience = "30 seconds"

/** Some VAT IDs are repeated, so there are cached and live answers. */
const vatIds = Array.from({ length: 40 }, (_, index) => `ATU1234${String(5_000 + index * 7)}`)

/** Starts it; it ends with the scope. */
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
    const began = { id, phase: phase.current, startedMs: yield* Clock.currentTimeMillis }
    const reply = yield* ask(`/v1/validate/${vatId}`, { key, headers: { "x-request-id": id } }).pipe(
      Effect.timeout(patience),
      Effect.map(({ body, headers, status }) => ({
        status,
        code: Option.getOrNull(Option.map(decodeProblem(body), ({ error }) => error.code)),
        saysWhen: Number(headers["retry-after"]) >= 1
      })),
      Effect.catchTag(["HttpClientError", "TimeoutError"], () => Effect.succeed({ status: null, code: null, saysWhen: false }))
    )
    const outcome: Outcome = {
      ...began,
      ...reply,
      endedIn: phase.current,
      durationMs: (yield* Clock.currentTimeMillis) - began.startedMs
    }
    outcomes.push(outcome)
  })

  const pace = Schedule.fixed((1000 * connections) / perSecond)
  const fibers = yield* FiberSet.make()
  for (let connection = 0; connection < connections; connection += 1) {
    const turns = Effect.suspend(() => (ended.current ? Effect.succeed(false) : Effect.as(one, true))).pipe(
      Effect.repeat({ schedule: pace, while: (goesOn) => goesOn })
    )
    yield* FiberSet.run(fibers, Effect.delay(turns, (1000 / perSecond) * connection))
  }

  const load: Load = {
    phase: (next) => Effect.sync(() => MutableRef.set(phase, next)),
    stop: Effect.suspend(() => {
      MutableRef.set(ended, true)
      return FiberSet.awaitEmpty(fibers)
    }).pipe(Effect.map(() => outcomes)),
    recovered: Effect.gen(function* () {
      const from = yield* Clock.currentTimeMillis
      const found = Effect.sync(() => outcomes.find(({ startedMs, status }) => startedMs >= from && status === 200))
      const first = yield* Effect.repeat(found, {
        schedule: Schedule.spaced("20 millis"),
        until: (outcome) => outcome !== undefined
      })
      return first === undefined ? 0 : first.startedMs + first.durationMs - from
    })
  }
  return load
})
