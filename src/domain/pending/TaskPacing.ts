/**
 * Decides how many tasks of each member state run at once on a replica. This limit is 0 while the state's register is
 * unavailable, 1 while the register is degraded, and 2 after its recovery. When as many tasks as the limit have been answered,
 * the limit doubles, up to a maximum per register. Times are milliseconds of the monotonic clock.
 */
import { memberStates } from "#domain/vat/MemberStates.ts"
import type { ClaimedTask, TaskSlots } from "#domain/pending/TaskQueue.ts"
import type { MemberStateStatus } from "#domain/vat/Sources.ts"

/** The limits of one member state. Together, the member states limit the concurrent tasks of a replica to less than 300. */
const slots = { first: 2, max: 10 }
/**
 * While the circuit breaker of a register is half open, a waiting task can be tried before it is due, once this time has passed
 * since its last attempt.
 */
const probeEveryMs = 5_000
/** Interval at which the state of the registers is read. */
const observeEveryMs = 250

interface Pace {
  readonly memberState: string
  running: number
  limit: number
  /** Number of answers since `limit` was set. */
  answered: number
  state: MemberStateStatus["state"]
  isHalfOpen: boolean
  /**
   * Time of the register's recovery. Null before a recovery, and again once all tasks that waited for the recovery are claimed.
   */
  recoveredMs: number | null
}

export const make = () => {
  const paces = new Map<string, Pace>()
  for (const memberState of memberStates.keys()) {
    const operational = { state: "operational", isHalfOpen: false, recoveredMs: null } as const
    paces.set(memberState, { memberState, running: 0, limit: slots.first, answered: 0, ...operational })
  }
  let observedMs = -observeEveryMs
  /** The numbers of tasks that the last claim requested. */
  let requested: ReadonlyArray<TaskSlots> = []

  const limitOf = ({ limit, state }: Pace) => (state === "operational" ? limit : state === "degraded" ? 1 : 0)

  return {
    /** Returns true if the state of the registers must be read again. */
    isStale: (nowMs: number) => nowMs - observedMs >= observeEveryMs,
    /** Sets the state of the registers. */
    observe: (statuses: ReadonlyArray<MemberStateStatus>, nowMs: number) => {
      observedMs = nowMs
      for (const { isHalfOpen, prefix, state } of statuses) {
        const pace = paces.get(prefix)
        if (pace === undefined) continue
        if (state !== "operational") Object.assign(pace, { limit: slots.first, answered: 0, recoveredMs: null })
        else if (pace.state !== "operational") pace.recoveredMs = nowMs
        pace.state = state
        pace.isHalfOpen = isHalfOpen
      }
    },
    /** Returns the number of tasks to claim now, for each member state. */
    slots: (nowMs: number): ReadonlyArray<TaskSlots> => {
      requested = [...paces.values()].flatMap((pace) => {
        const free = limitOf(pace) - pace.running
        if (free <= 0) return []
        const sinceRecoveryMs = pace.recoveredMs === null ? null : nowMs - pace.recoveredMs
        const wakeMs = pace.isHalfOpen ? probeEveryMs : sinceRecoveryMs
        return [{ memberState: pace.memberState, slots: free, wakeMs }]
      })
      return requested
    },
    /**
     * Records the claimed tasks. If fewer tasks than requested were claimed for a recovered register, no more tasks wait for the
     * register.
     */
    claimed: (tasks: ReadonlyArray<ClaimedTask>) => {
      for (const { memberState, slots } of requested) {
        const pace = paces.get(memberState)
        if (pace === undefined) continue
        const count = tasks.filter((task) => task.memberState === memberState && !task.isExpired).length
        if (count < slots) pace.recoveredMs = null
      }
      for (const { memberState } of tasks) {
        const pace = paces.get(memberState)
        if (pace !== undefined) pace.running += 1
      }
    },
    /** Records the end of an attempt. */
    ended: (memberState: string, isAnswered: boolean) => {
      const pace = paces.get(memberState)
      if (pace === undefined) return
      pace.running -= 1
      // The attempt may have opened or closed the circuit breaker, so the state of the registers must be read again.
      if (pace.isHalfOpen) observedMs = -observeEveryMs
      if (!isAnswered) return
      pace.answered += 1
      if (pace.answered < pace.limit) return
      pace.limit = Math.min(slots.max, pace.limit * 2)
      pace.answered = 0
    }
  }
}
