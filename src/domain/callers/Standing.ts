/** The caller's standing after a call: the used quota, and the remaining calls of the minute. */
import { Schema } from "effect"

/** Units on a meter: `used` so far, `limit` at most. */
export const Usage = Schema.Struct({ used: Schema.Int, limit: Schema.Int })
export type Usage = typeof Usage.Type

/**
 * The state of a limit per minute. The caller has `remaining` calls until the window ends in `resetSeconds`. A negative
 * `remaining` means that the limit was exceeded.
 */
export const RateWindow = Schema.Struct({ limit: Schema.Int, remaining: Schema.Int, resetSeconds: Schema.Int })
export type RateWindow = typeof RateWindow.Type

/** `window` is the state of the limit per minute; null if the call was not counted towards it. */
export const Standing = Schema.Struct({ usage: Usage, window: Schema.NullOr(RateWindow) })
export type Standing = typeof Standing.Type

/** Returns true above 80 % of the quota. Only then a response suggests an upgrade. */
export const nearLimit = (usage: Usage): boolean => usage.used > usage.limit * 0.8
