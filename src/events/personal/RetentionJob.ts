/** Erases personal documents whose retention period is over, at intervals on every replica. Idempotent. */
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
        Effect.logWarning("Expired personal data could not be erased; retrying in an hour", error)
      ),
      logDefects("Erasure of expired personal data failed; retrying in an hour"),
      Effect.repeat(Schedule.spaced(every)),
      Effect.forkScoped
    )
  )
)
