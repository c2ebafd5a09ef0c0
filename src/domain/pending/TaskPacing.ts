/**
 * How many tasks of each member state a replica works on. None while its register is not asked; one at a time while the next call is to show
 * whether it answers; two when it answers again, then twice as many after each round, up to what a register is asked at once.
 */
import { memberStates } from "#domain/vat/MemberStates.ts"
import type { ClaimedTask, TaskPlaces } from "#domain/pending/TaskQueue.ts"
import type { MemberStateStatus } from "#domain/vat/Sources.ts"

const places = { first: 2, most: 10 }
/** Tasks of all member states that a replica works on. */
const maxRunning = 200
/** A task shows at most this often whether its register answers again. */
const scoutEveryMs = 5_000
/** The state of the registers is looked up this often. */
const observeEveryMs = 250

interface Pace {
  readonly memberState: string
  running: number
  limit: number
  /** Answers since the limit was set. */
  answered: number
  state: MemberStateStatus["state"]
  /** When the register answered again, while tasks that wait for it are still to be woken; null otherwise. */
  recoveredMs: number | null
}

export const make = () => {
  const paces = new Map<string, Pace>()
  for (const memberState of memberStates.keys()) {
    paces.set(memberState, { memberState, running: 0, limit: places.first, answered: 0, state: "operational", recoveredMs: null })
  }
  let observedMs = -observeEveryMs
  /** Places that the last claim was for. */
  let asked: ReadonlyArray<TaskPlaces> = []

  const limitOf = ({ limit, state }: Pace) => (state === "operational" ? limit : state === "degraded" ? 1 : 0)

  return {
    isStale: (nowMs: number) => nowMs - observedMs >= observeEveryMs,
    /** Takes in how the registers are. */
    observe: (statuses: ReadonlyArray<MemberStateStatus>, nowMs: number) => {
      observedMs = nowMs
      for (const { prefix, state } of statuses) {
        const pace = paces.get(prefix)
        if (pace === undefined) continue
        if (state !== "operational") Object.assign(pace, { limit: places.first, answered: 0, recoveredMs: null })
        else if (pace.state !== "operational") pace.recoveredMs = nowMs
        pace.state = state
      }
    },
    /** What to claim now. */
    places: (nowMs: number): ReadonlyArray<TaskPlaces> => {
      const all = [...paces.values()]
      let left = maxRunning - all.reduce((sum, { running }) => sum + running, 0)
      asked = all.flatMap((pace) => {
        const free = Math.min(limitOf(pace) - pace.running, left)
        if (free <= 0) return []
        left -= free
        const sinceRecoveryMs = pace.recoveredMs === null ? null : nowMs - pace.recoveredMs
        const wakeMs = pace.state === "degraded" ? scoutEveryMs : sinceRecoveryMs
        return [{ memberState: pace.memberState, places: free, wakeMs }]
      })
      return asked
    },
    /** Takes in what was claimed. A register that answers, and has fewer tasks than places, has no more to wake. */
    claimed: (tasks: ReadonlyArray<ClaimedTask>) => {
      for (const { memberState, places } of asked) {
        const pace = paces.get(memberState)
        if (pace === undefined) continue
        const found = tasks.filter((task) => task.memberState === memberState && !task.isExpired).length
        if (found < places) pace.recoveredMs = null
      }
      for (const { memberState } of tasks) {
        const pace = paces.get(memberState)
        if (pace !== undefined) pace.running += 1
      }
    },
    /** Takes in the end of an attempt. */
    ended: (memberState: string, isAnswered: boolean) => {
      const pace = paces.get(memberState)
      if (pace === undefined) return
      pace.running -= 1
      if (!isAnswered) return
      pace.answered += 1
      if (pace.answered < pace.limit) return
      pace.limit = Math.min(places.most, pace.limit * 2)
      pace.answered = 0
    }
  }
}
