/** What a load measures: all answers, those of each kind, and those of each second. */
import * as Latencies from "#test/benchmarks/load/Latencies.ts"
import type { Summary } from "#test/benchmarks/load/Load.ts"
import type * as RequestKinds from "#test/benchmarks/load/RequestKinds.ts"

export const make = (kinds: ReadonlyArray<RequestKinds.Name>) => {
  const all = Latencies.make()
  const byKind = new Map(kinds.map((kind) => [kind, Latencies.make()]))
  const ofSecond = Latencies.make()
  const seconds: Array<Summary> = []

  return {
    /** `second` counts from the end of the warm-up, and is the one in which the answer came. */
    add: (kind: RequestKinds.Name, ms: number, second: number) => {
      while (seconds.length < second) {
        seconds.push(ofSecond.summary())
        ofSecond.clear()
      }
      all.add(ms)
      byKind.get(kind)?.add(ms)
      ofSecond.add(ms)
    },
    /** The last second is left out: it is not a whole one. */
    summary: () => ({
      all: all.summary(),
      byKind: Object.fromEntries([...byKind].map(([kind, latencies]) => [kind, latencies.summary()])),
      seconds
    })
  }
}
