/** Unpredictable bytes and ids. */
import { Context, type Effect } from "effect"

export class Randomness extends Context.Service<
  Randomness,
  {
    /** From a cryptographically secure source. */
    readonly bytes: (count: number) => Effect.Effect<Uint8Array>
    /** The same at once. */
    readonly bytesUnsafe: (count: number) => Uint8Array
    /** Ordered by time, within this process even inside a millisecond. */
    readonly uuidV7: Effect.Effect<string>
    /** The next `uuidV7` at once, for where an effect an id would be too many. */
    readonly uuidV7Unsafe: () => string
  }
>()("vatproof/domain/kernel/Randomness") {}
