/**
 * Runs compared loads in rounds of changing order. The preceding load affects the speed of a load, so each load follows each of its
 * neighbours equally often.
 */
import { Array as Arr, Effect } from "effect"
import type { LoadResult } from "#test/benchmarks/load/Load.ts"

/** A load with its results. */
export interface Series<E, R> {
  readonly load: Effect.Effect<LoadResult, E, R>
  /** One result per finished round. */
  readonly results: Array<LoadResult>
}

export const series = <E, R>(load: Effect.Effect<LoadResult, E, R>): Series<E, R> => ({ load, results: [] })

/** Returns the order of a round. Rounds 0 and 1 begin with load 0, rounds 2 and 3 with load 1, …; odd rounds are reversed. */
const orderOf = <A>(number: number, comparison: ReadonlyArray<A>) => {
  const rotated = Arr.rotate(comparison, -Math.floor(number / 2))
  return number % 2 === 0 ? rotated : Arr.reverse(rotated)
}

/** Runs one round of each comparison, one comparison after the other. */
export const round = Effect.fnUntraced(function* <E, R>(number: number, comparisons: ReadonlyArray<ReadonlyArray<Series<E, R>>>) {
  for (const comparison of comparisons) {
    for (const { load, results } of orderOf(number, comparison)) results.push(yield* load)
  }
})

export const run = <E, R>(rounds: number, comparisons: ReadonlyArray<ReadonlyArray<Series<E, R>>>) =>
  Effect.forEach(Arr.range(0, rounds - 1), (number) => round(number, comparisons), { discard: true })
