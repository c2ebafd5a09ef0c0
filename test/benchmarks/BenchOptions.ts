/** The extent of a run: the same for all sections. */
import { Context } from "effect"
import type { Checkout } from "#test/benchmarks/Checkout.ts"

export interface Settings {
  /** The owner's figures need a large database and long runs; without it everything is small. */
  readonly full: boolean
  /** Number of runs of which every figure is the median. */
  readonly rounds: number
  readonly seconds: number
  /** Duration of plain loads. */
  readonly connections: number
  readonly mixConnections: number
  /** How long a new database is watched. */
  readonly freshSeconds: number
  /** Number of events of the logs that are followed, signed and filled. */
  readonly events: number
  /** How long memory is watched. */
  readonly minutes: number
  /** Another service that is measured beside the present one. */
  readonly other: Checkout | null
}

export class BenchOptions extends Context.Service<BenchOptions, Settings>()("vatproof/benchmarks/BenchOptions") {}
