/**
 * Tells V8 to allocate new objects in the young generation, whatever survived before. `main.ts` imports it first, for its effect.
 *
 * Objects that the start allocates live as long as the process. Because they survive, V8 allocates later objects of the same code in
 * the old generation, including those of requests. Scavenges then promote everything that these objects refer to. BENCHMARKS.md has
 * the cost without this setting: 8 to 15 % of the CPU time of a cached validation.
 */
import { setFlagsFromString } from "node:v8"

setFlagsFromString("--no-allocation-site-pretenuring")
