/** Options of a benchmark run, shared by all sections. */
import { Context } from "effect"
import type { Checkout } from "#test/benchmarks/Checkout.ts"

export interface Settings {
  /** Runs the slow sections too, with a large database and longer runs. */
  readonly full: boolean
  /** Number of runs per figure. The figure is their median. */
  readonly rounds: number
  /** Duration of one run. */
  readonly seconds: number
  readonly connections: number
  readonly mixConnections: number
  /** Duration of the load on a new database. */
  readonly freshSeconds: number
  /** Events in each generated log. */
  readonly events: number
  /** Duration of the memory sampling. */
  readonly minutes: number
  /** Another build of the service to compare with this checkout; null for none. */
  readonly other: Checkout | null
}

export class BenchOptions extends Context.Service<BenchOptions, Settings>()("vatproof/benchmarks/BenchOptions") {}
