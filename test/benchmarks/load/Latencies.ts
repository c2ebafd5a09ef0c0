/**
 * Latency histogram that allocates nothing while a load runs. Its steps are 10 µs up to two seconds, and 10 ms up to 100 s.
 * The fine steps reach two seconds, because the section `lookups` measures differences of milliseconds at latencies above one second.
 */

const finePerMs = 100
const fineMax = 2_000 * finePerMs
const coarseMs = 10
const coarseMax = 100_000 / coarseMs

const stepOf = (ms: number) => {
  const fine = Math.floor(ms * finePerMs)
  return fine < fineMax ? fine : fineMax + Math.min(coarseMax - 1, Math.floor(ms / coarseMs))
}

const msOf = (step: number) => (step < fineMax ? step / finePerMs : (step - fineMax) * coarseMs)

export const make = () => {
  const counts = new Uint32Array(fineMax + coarseMax)
  let count = 0
  let max = 0

  const quantile = (share: number) => {
    let seen = 0
    const wanted = Math.ceil(count * share)
    return count === 0 ? 0 : msOf(counts.findIndex((some) => (seen += some) >= wanted))
  }

  return {
    add: (ms: number) => {
      const step = stepOf(ms)
      counts[step] = (counts[step] ?? 0) + 1
      count += 1
      if (ms > max) max = ms
    },
    summary: () => ({ answered: count, p50: quantile(0.5), p99: quantile(0.99), max }),
    clear: () => {
      counts.fill(0)
      count = 0
      max = 0
    }
  }
}
