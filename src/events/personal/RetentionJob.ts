/** Erases personal documents whose retention period is over, now and then, on every replica and harmless when repeated. */
import { Effect, Layer, Schedule } from "effect"
import { logDefects } from "#domain/kernel/LogDefects.ts"
import { PersonalErasure } from "#events/personal/PersonalErasure.ts"

const every = "1 hour"

export const layer = Layer.effectDiscard(
  Effect.flatMap(PersonalErasure, ({ eraseExpired }) =>
    eraseExpired.pipe(
      Effect.tap((erased) =>
        erased === 0 ? Effect.void : Effect.logInfo(`${erased} personal documents expired and were erased`)
      ),
      Effect.catchTag("StoreUnavailable", (error) =>
        Effect.logWarning("Expired personal data was not erased; it is tried again in an hour", error)
      ),
      logDefects("The expiry of personal data failed; it is tried again in an hour"),
      Effect.repeat(Schedule.spaced(every)),
      Effect.forkScoped
    )
  )
)
