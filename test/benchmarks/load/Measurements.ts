/** Latencies of a load: of all responses, by kind, and by second. */
import * as Latencies from "#test/benchmarks/load/Latencies.ts"
import type { Summary } from "#test/benchmarks/load/Load.ts"
import type * as RequestKinds from "#test/benchmarks/load/RequestKinds.ts"

export const make = (kinds: ReadonlyArray<RequestKinds.Name>) => {
  const all = Latencies.make()
  const byKind = new Map(kinds.map((kind) => [kind, Latencies.make()]))
  const ofSecond = Latencies.make()
  const seconds: Array<Summary> = []

  return {
    /** Adds a response. `second` is the second in which it arrived, counted from the end of the warm-up. */
    add: (kind: RequestKinds.Name, ms: number, second: number) => {
      while (seconds.length < second) {
        seconds.push(ofSecond.summary())
        ofSecond.clear()
      }
      all.add(ms)
      byKind.get(kind)?.add(ms)
      ofSecond.add(ms)
    },
    /** Omits the last second, which is incomplete. */
    summary: () => ({
      all: all.summary(),
      byKind: Object.fromEntries([...byKind].map(([kind, latencies]) => [kind, latencies.summary()])),
      seconds
    })
  }
}
