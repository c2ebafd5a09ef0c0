/**
 * Logs slow, rejected and failed requests, with a rate limit per kind of line. With ACCESS_LOG it logs every request; this is off by
 * default, because a line costs as much CPU as a response. A line has the route's template instead of the path, because a path may
 * contain a VAT ID.
 */
import { Cause, Context, Effect } from "effect"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** True if every request is logged (ACCESS_LOG). */
export const AccessLog = Context.Reference<boolean>("vatproof/http/pipeline/AccessLog", { defaultValue: () => false })

/** A completed request. `status` is null if the client disconnected before the response. */
export interface ServedLine {
  readonly method: string
  readonly route: string | null
  readonly status: number | null
  readonly durationMs: number
  /** The database failure that caused the response; null if there was none. */
  readonly refusal: StoreUnavailable | null
}

const slowMs = 1_000
/** At most one line of each kind is logged in this time. The next line has the number of omitted lines as `suppressed`. */
const windowMs = 10_000

export const make = Effect.map(AccessLog, (logsAll) => {
  const kinds = new Map<string, { until: number; suppressed: number }>()

  /** Returns the number of lines of this kind that were omitted since the last logged line; null if this line is omitted too. */
  const admit = (kind: string, now: number): number | null => {
    const entry = kinds.get(kind) ?? { until: 0, suppressed: 0 }
    kinds.set(kind, entry)
    if (now < entry.until) {
      entry.suppressed += 1
      return null
    }
    const { suppressed } = entry
    entry.until = now + windowMs
    entry.suppressed = 0
    return suppressed
  }

  const write = (line: ServedLine, what: string, suppressed: number) => {
    const { durationMs, method, refusal, route, status } = line
    const fields = { method, route: route ?? "none", status: status ?? "none", duration_ms: Math.round(durationMs) }
    const message = `${what}: ${method} ${route ?? "on an unknown path"}`
    const written =
      refusal === null && (status ?? 0) < 500 ? Effect.logInfo(message) : Effect.logWarning(message, ...causeOf(refusal))
    return Effect.annotateLogs(written, suppressed === 0 ? fields : { ...fields, suppressed })
  }

  return (line: ServedLine, now: number): Effect.Effect<void> | undefined => {
    const what = kindOf(line)
    if (logsAll) {
      const end =
        line.status === null ? "The client disconnected before the response" : `A request was answered with status ${line.status}`
      return write(line, what ?? end, 0)
    }
    const suppressed = what === undefined ? null : admit(what, now)
    return what === undefined || suppressed === null ? undefined : write(line, what, suppressed)
  }
})

const causeOf = (refusal: StoreUnavailable | null): ReadonlyArray<unknown> =>
  refusal === null || refusal.cause === undefined ? [] : [Cause.fail(refusal.cause)]

/** Returns the kind of line for a slow, rejected or failed request; undefined for all other requests. */
const kindOf = ({ durationMs, status }: ServedLine): string | undefined => {
  if (status !== null && status >= 500) return `A request failed with status ${status}`
  if (durationMs >= slowMs) return "A request was slow"
  if (status !== null && status >= 400) return `A request was refused with status ${status}`
  return undefined
}
