/**
 * Decides how many tasks of each member state run at once on a replica. This limit is 0 while the state's register is
 * unavailable, 1 while the register is degraded, and 2 at first. When as many tasks as the limit have been answered, the limit
 * doubles, up to a maximum per register. It is 2 again once no task runs. Times are milliseconds of the monotonic clock.
 */
import { memberStates } from "#domain/vat/MemberStates.ts"
import type { ClaimedTask, TaskSlots } from "#domain/pending/TaskQueue.ts"
import type { MemberStateStatus } from "#domain/vat/Sources.ts"

/** The limits of one member state. Together, the member states limit the concurrent tasks of a replica to less than 300. */
const slots = { first: 2, max: 10 }
/** Interval at which the state of the registers is read. */
const observeEveryMs = 250

interface Pace {
  readonly memberState: string
  running: number
  limit: number
  /** Number of answers since `limit` was set. */
  answered: number
  state: MemberStateStatus["state"]
  answeredMs: number | null
}

export const make = () => {
  const paces = new Map<string, Pace>()
  for (const memberState of memberStates.keys()) {
    paces.set(memberState, { memberState, running: 0, limit: slots.first, answered: 0, state: "operational", answeredMs: null })
  }
  let observedMs = -observeEveryMs

  const limitOf = ({ limit, state }: Pace) => (state === "operational" ? limit : state === "degraded" ? 1 : 0)

  return {
    /** Returns true if the state of the registers must be read again. */
    isStale: (nowMs: number) => nowMs - observedMs >= observeEveryMs,
    /** Sets the state of the registers. */
    observe: (statuses: ReadonlyArray<MemberStateStatus>, nowMs: number) => {
      observedMs = nowMs
      for (const { answeredMs, prefix, state } of statuses) {
        const pace = paces.get(prefix)
        if (pace !== undefined) Object.assign(pace, { answeredMs, state })
      }
    },
    /** Returns the number of tasks to claim now, for each member state. */
    slots: (nowMs: number): ReadonlyArray<TaskSlots> =>
      [...paces.values()].flatMap((pace) => {
        const free = limitOf(pace) - pace.running
        if (free <= 0) return []
        const answerMs = pace.answeredMs === null ? null : Math.round(nowMs - pace.answeredMs)
        return [{ memberState: pace.memberState, slots: free, answerMs }]
      }),
    /** Records the claimed tasks. */
    claimed: (tasks: ReadonlyArray<ClaimedTask>) => {
      for (const { memberState } of tasks) {
        const pace = paces.get(memberState)
        if (pace !== undefined) pace.running += 1
      }
      for (const pace of paces.values()) if (pace.running === 0) Object.assign(pace, { limit: slots.first, answered: 0 })
    },
    /** Records the end of an attempt. */
    ended: (memberState: string, isAnswered: boolean) => {
      const pace = paces.get(memberState)
      if (pace === undefined) return
      pace.running -= 1
      // The attempt may have opened or closed the circuit breaker, so the state of the registers must be read again.
      if (pace.state !== "operational") observedMs = -observeEveryMs
      if (!isAnswered) return
      pace.answered += 1
      if (pace.answered < pace.limit) return
      pace.limit = Math.min(slots.max, pace.limit * 2)
      pace.answered = 0
    }
  }
}
