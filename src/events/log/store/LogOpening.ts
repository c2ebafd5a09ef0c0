/** Opens the log with the event that states its purpose, and refuses a log of another purpose (rule 89). */
import { Effect, Layer, Schema } from "effect"
import { LogOpened, type LogPurpose } from "#domain/log/LogPurpose.ts"
import { logStream } from "#domain/log/LogReadEvents.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { computedId } from "#domain/log/ComputedId.ts"
import * as EventTypes from "#events/log/store/EventTypes.ts"
import { EventStore } from "#events/log/store/EventStore.ts"

/** The log is empty, has another purpose, or does not state its purpose. The message says what to do. */
export class LogRefused extends Schema.TaggedError<LogRefused>()("LogRefused", { message: Schema.String }) {}

const decode = EventTypes.decoder(LogOpened)

/** Returns the purpose of the log; `empty` for a log without events, `unknown` if its first event is not `LogOpened`. */
export const purposeOf = Effect.gen(function* () {
  const [first] = yield* (yield* EventStore).read(0, 1)
  if (first === undefined) return "empty" as const
  return first.type === LogOpened.type ? (yield* decode(first.data)).purpose : ("unknown" as const)
})

const otherData = "set DATABASE_URL or DATA_DIR to other data"
/** What to do with a log of this purpose in a program of another purpose. */
export const advice = {
  live: `The log is a live one: run "vatproof serve" on it, or ${otherData} for the sandbox`,
  sandbox: `The log is that of a sandbox, whose answers are simulated: run "vatproof sandbox" on it, or ${otherData} for the service`,
  unknown: `The log does not state whether it is live or a sandbox, because an earlier build created it: ${otherData}`,
  empty: 'The log is empty: start the service first ("vatproof serve")'
}

/**
 * Opens an empty log for a service. Fails if the log has another purpose. The id of the event is computed, so that one event opens the
 * log, whichever replicas start at the same time.
 */
export const layer = (purpose: LogPurpose) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { appendFact } = yield* EventStore
      const identity = { eventId: computedId(yield* Crypto, "log opened"), causationId: null }
      if ((yield* purposeOf) === "empty") yield* appendFact(logStream, LogOpened.make({ purpose }), identity)
      const found = yield* purposeOf
      if (found !== purpose) return yield* new LogRefused({ message: advice[found] })
    })
  )

/** Fails if the log is empty. A command does not know the purpose of the log, so it must not append the first event. */
export const layerExisting = Layer.effectDiscard(
  Effect.flatMap(purposeOf, (found) => (found === "empty" ? Effect.fail(new LogRefused({ message: advice.empty })) : Effect.void))
)
