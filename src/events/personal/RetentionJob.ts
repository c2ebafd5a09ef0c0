/** Erases personal documents whose retention period is over, each hour on every replica. */
import { Effect, Layer, Schedule } from "effect"
import { logDefects } from "#domain/kernel/LogDefects.ts"
import { PersonalErasure } from "#events/personal/PersonalErasure.ts"

const every = "1 hour"

export const layer = Layer.effectDiscard(
  Effect.flatMap(PersonalErasure, ({ eraseExpired }) =>
    eraseExpired.pipe(
      Effect.tap((erased) =>
        erased === 0 ? Effect.void : Effect.logInfo(`Erased ${erased} personal documents whose retention period is over`)
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
