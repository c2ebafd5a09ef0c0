/** The simulated BZSt's sessions: how many qualified queries a requester has made since its last plain one. */
import { Effect } from "effect"

/** Requesters remembered; beyond that the oldest is forgotten. */
const requestersMax = 10_000

/** Makes the count. What a session really is, BZSt does not publish: that it belongs to the requester's VAT ID is inferred. */
export const make = Effect.sync(() => {
  const qualified = new Map<string, number>()
  return {
    /** Counts a query and says whether it may be answered. A plain query starts a new session. */
    admit: (requester: string, isQualified: boolean, max: number | null): boolean => {
      const count = isQualified ? (qualified.get(requester) ?? 0) + 1 : 0
      qualified.set(requester, count)
      const oldest = qualified.size > requestersMax ? qualified.keys().next().value : undefined
      if (oldest !== undefined) qualified.delete(oldest)
      return max === null || count <= max
    },
    forget: Effect.sync(() => qualified.clear())
  }
})
export type Sessions = Effect.Success<typeof make>
