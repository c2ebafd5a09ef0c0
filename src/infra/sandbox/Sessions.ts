/** The simulated BZSt's sessions: the number of qualified queries of a requester since its last plain query. */
import { Effect } from "effect"

/** Maximum number of requesters that are counted. Beyond the maximum, the oldest requester is evicted. */
const requestersMax = 10_000

/** Creates the counter. BZSt does not publish its definition of a session; one session per requester VAT ID is inferred. */
export const make = Effect.sync(() => {
  const qualified = new Map<string, number>()
  return {
    /**
     * Counts a query. Returns false if the requester has sent more than `max` qualified queries in the session. A plain query
     * starts a new session.
     */
    admit: (requester: string, isQualified: boolean, max: number | null): boolean => {
      const count = isQualified ? (qualified.get(requester) ?? 0) + 1 : 0
      qualified.set(requester, count)
      const oldest = qualified.size > requestersMax ? qualified.keys().next().value : undefined
      if (oldest !== undefined) qualified.delete(oldest)
      return max === null || count <= max
    },
    clear: Effect.sync(() => qualified.clear())
  }
})
export type Sessions = Effect.Success<typeof make>
