/** Durations counted in steps of 10 µs up to 100 s: exact enough for a quantile, and nothing is allocated while a load runs. */

const stepsPerMs = 100
const stepsMax = 10_000_000

export const make = () => {
  const counts = new Uint32Array(stepsMax)
  let count = 0
  let max = 0

  const quantile = (share: number) => {
    let seen = 0
    const wanted = Math.ceil(count * share)
    const step = counts.findIndex((some) => (seen += some) >= wanted)
    return count === 0 ? 0 : step / stepsPerMs
  }

  return {
    add: (ms: number) => {
      const step = Math.min(stepsMax - 1, Math.floor(ms * stepsPerMs))
      counts[step] = (counts[step] ?? 0) + 1
      count += 1
      if (ms > max) max = ms
    },
    summary: () => ({ p50: quantile(0.5), p99: quantile(0.99), max })
  }
}
