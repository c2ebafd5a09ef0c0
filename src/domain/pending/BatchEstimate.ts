/** Estimates when the last item of a batch is answered, from the progress of the batch itself. */
import { Duration } from "effect"
import type { TaskCounts } from "#domain/pending/Batch.ts"

/** Minimum number of answers and minimum time on which an estimate is based, because the engine asks a register slowly at first. */
const basis = { answers: 20, time: Duration.seconds(3) }

/**
 * Returns the time until the last pending item is answered, after the time `elapsed` since the acceptance; null if it is unknown. The
 * member state with the slowest progress decides. Pending items that are not in the log yet are assumed to be like the others.
 */
export const remaining = (
  { open, pending, slowest }: Pick<TaskCounts, "open" | "slowest"> & { readonly pending: number },
  elapsed: Duration.Duration
) => {
  if (open === 0 || slowest.final < basis.answers || Duration.isLessThan(elapsed, basis.time)) return null
  return Duration.times(elapsed, (slowest.open / slowest.final) * (pending / open))
}
