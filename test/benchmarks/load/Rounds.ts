/** Loads that are compared take turns: round by round, in another order each time, so that none always follows the same one. */
import { Array as Arr, Effect } from "effect"
import type { LoadResult } from "#test/benchmarks/load/Load.ts"

export interface Turn<E, R> {
  readonly load: Effect.Effect<LoadResult, E, R>
  /** One of each round that is over. */
  readonly results: Array<LoadResult>
}

export const turn = <E, R>(load: Effect.Effect<LoadResult, E, R>): Turn<E, R> => ({ load, results: [] })

/** Runs one round of several comparisons, one after the other. */
export const round = Effect.fnUntraced(function* <E, R>(number: number, comparisons: ReadonlyArray<ReadonlyArray<Turn<E, R>>>) {
  for (const turns of comparisons) {
    for (const { load, results } of Arr.rotate(turns, -number)) results.push(yield* load)
  }
})

export const run = <E, R>(rounds: number, comparisons: ReadonlyArray<ReadonlyArray<Turn<E, R>>>) =>
  Effect.forEach(Arr.range(0, rounds - 1), (number) => round(number, comparisons), { discard: true })
