/**
 * Decides how a simulated source behaves for a call. Precedence: scripted fault, invalid request, settings, magic number, register. A
 * probe, which asks for the state of the source, depends on faults and settings alone.
 */
import { Effect } from "effect"
import type { SourceName } from "#domain/vat/Verdict.ts"
import type { Behaviour } from "#infra/sandbox/Fault.ts"
import type { FaultScript } from "#infra/sandbox/FaultScript.ts"
import type { DecidedBy } from "#infra/sandbox/Observer.ts"
import { magicOf } from "#infra/sandbox/MagicNumbers.ts"
import type { Settings } from "#infra/sandbox/Settings.ts"
import type { Question } from "#infra/sandbox/Simulator.ts"

/** The behaviour for a call, and the rule that decided it. */
export interface Decision {
  readonly by: DecidedBy
  readonly behaviour: Behaviour
}

/**
 * Maximum number of VAT IDs whose calls are counted, for magic numbers that fail n times and then answer. Beyond the maximum, the
 * oldest VAT ID is evicted.
 */
const flakyMax = 10_000

/** Creates the decider, which counts the calls for magic numbers that fail n times and then answer. */
export const make = (script: FaultScript) =>
  Effect.sync(() => {
    const failed = new Map<string, number>()

    const stillFails = (key: string, firstCalls: number): boolean => {
      const calls = failed.get(key) ?? 0
      failed.set(key, calls + 1)
      const oldest = failed.size > flakyMax ? failed.keys().next().value : undefined
      if (oldest !== undefined) failed.delete(oldest)
      return calls < firstCalls
    }

    const ofMagicNumber = (source: SourceName, question: Question): Decision => {
      const behaviour = question.vatId === undefined ? {} : magicOf(question.vatId)[source]
      const { firstCalls } = behaviour
      const spent = firstCalls !== undefined && !stillFails(`${source} ${question.target}`, firstCalls)
      return spent || Object.keys(behaviour).length === 0 ? { by: "register", behaviour: {} } : { by: "magic number", behaviour }
    }

    return {
      decide: (source: SourceName, probe: boolean, question: Question, settings: Settings): Decision => {
        const memberState = question.vatId?.memberState.prefix
        const scripted = script.next({ source, probe, memberState, vatId: question.vatId?.value })
        if (scripted !== undefined) return { by: "script", behaviour: scripted }
        if (probe) return { by: "settings", behaviour: source === "bzst" ? { code: bzstSetting(settings, undefined) } : {} }
        if (!question.isAccepted) return { by: "request", behaviour: {} }
        const code = source === "vies" ? viesSetting(settings, memberState) : bzstSetting(settings, memberState)
        return code === undefined ? ofMagicNumber(source, question) : { by: "settings", behaviour: { code } }
      },
      clear: Effect.sync(() => failed.clear())
    }
  })
export type Decider = Effect.Success<ReturnType<typeof make>>

const viesSetting = (settings: Settings, memberState: string | undefined): string | undefined => {
  if (!settings.vies_available) return "SERVICE_UNAVAILABLE"
  return settings.vies_unavailable_member_states.some((prefix) => prefix === memberState) ? "MS_UNAVAILABLE" : undefined
}

/**
 * The BZSt has no separate status for an unavailable member state. That it answers evatr-0011 is inferred from the text of this
 * status.
 */
const bzstSetting = (settings: Settings, memberState: string | undefined): string | undefined =>
  !settings.bzst_available || settings.bzst_unavailable_member_states.some((prefix) => prefix === memberState)
    ? "evatr-0011"
    : undefined
