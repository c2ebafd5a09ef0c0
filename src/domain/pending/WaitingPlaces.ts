/** Places for clients that wait for an answer (long polls). One API key cannot take all of them. */
import { Effect } from "effect"

/** Maximum number of waiting clients per replica, and of these per API key. Further clients get a response at once. */
const maxWaiting = { inAll: 2_000, perKey: 100 }

/** Returns a function that runs `wait` if a place is free for the key, and otherwise does nothing. */
export const make = ({ inAll, perKey } = maxWaiting) => {
  const byKey = new Map<string, number>()
  let all = 0
  const change = (keyId: string, by: 1 | -1) => {
    const count = (byKey.get(keyId) ?? 0) + by
    all += by
    if (count === 0) byKey.delete(keyId)
    else byKey.set(keyId, count)
  }
  return <A, E>(keyId: string, wait: Effect.Effect<A, E>): Effect.Effect<void, E> =>
    Effect.suspend(() => {
      if (all >= inAll || (byKey.get(keyId) ?? 0) >= perKey) return Effect.void
      change(keyId, 1)
      return Effect.ensuring(
        Effect.asVoid(wait),
        Effect.sync(() => change(keyId, -1))
      )
    })
}
