/** Which traces are kept from their start, as OpenTelemetry's samplers of the same names decide it. */
import type { SamplerSettings } from "#infra/telemetry/TelemetrySettings.ts"

/** `sampled` is the decision of the remote parent, null where there is none. */
export type Sampler = (traceId: string, sampled: boolean | null) => boolean

/**
 * The ratio looks at the last 52 of the 56 bits of the trace id that W3C's Trace Context Level 2 asks to be random
 * (https://www.w3.org/TR/trace-context-2/#randomness-of-trace-id, read 2026-11): every service with the same ratio decides alike.
 */
export const make = ({ name, ratio }: SamplerSettings): Sampler => {
  const bound = Math.round(ratio * 2 ** 52)
  const byRatio = (traceId: string) => Number.parseInt(traceId.slice(-13), 16) < bound
  switch (name) {
    case "always_on":
      return () => true
    case "always_off":
      return () => false
    case "traceidratio":
      return byRatio
    case "parentbased_always_on":
      return (_, sampled) => sampled ?? true
    case "parentbased_always_off":
      return (_, sampled) => sampled ?? false
    case "parentbased_traceidratio":
      return (traceId, sampled) => sampled ?? byRatio(traceId)
  }
}
