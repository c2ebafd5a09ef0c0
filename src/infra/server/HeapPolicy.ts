/**
 * Turns off pretenuring in V8: new objects are always allocated in the young generation, even if earlier objects from the same line of code
 * lived long. `main.ts` imports this file first, for its effect.
 *
 * Objects that the start allocates live as long as the process. V8 concludes that later objects from the same lines of code, including
 * those of requests, will live long too, and allocates them in the old generation. Every minor garbage collection then keeps everything
 * that they refer to. BENCHMARKS.md has the cost without this setting: 8 to 15 % of the CPU time of a cached validation.
 */
import { setFlagsFromString } from "node:v8"

setFlagsFromString("--no-allocation-site-pretenuring")
