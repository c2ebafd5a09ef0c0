/** The faults that the sandbox's user has scripted. Selects the fault for each call. */
import { Effect, Option, Random, Result } from "effect"
import { parse } from "#domain/vat/VatId.ts"
import type { SourceName } from "#domain/vat/Verdict.ts"
import { concerns, behaviourOf, sourceOf, type Behaviour, type Fault } from "#infra/sandbox/Fault.ts"

/** Maximum number of scripted faults. */
export const faultsMax = 1_000

/** A scripted fault and the number of calls it has matched. */
export type ScriptedFault = Fault & { readonly matched: number }

/** The properties of a call that select a fault. A probe has neither a member state nor a VAT ID. */
export interface Target {
  readonly source: SourceName
  readonly probe: boolean
  readonly memberState: string | undefined
  readonly vatId: string | undefined
}

interface Rule {
  readonly fault: Fault
  readonly behaviour: Behaviour
  readonly matches: (target: Target) => boolean
  matched: number
}

const ruleOf = (fault: Fault): Rule => {
  const source = Option.getOrUndefined(sourceOf(fault))
  const on = concerns(fault)
  const vatId = fault.vat_id === undefined ? undefined : Option.getOrUndefined(Result.getSuccess(parse(fault.vat_id)))?.value
  return {
    fault,
    behaviour: behaviourOf(fault),
    matches: (target) =>
      (source === undefined || source === target.source) &&
      (on === "all" || (on === "probes") === target.probe) &&
      (fault.member_state === undefined || fault.member_state === target.memberState) &&
      (vatId === undefined || vatId === target.vatId),
    matched: 0
  }
}

const randomFrom = (seed: number) => Random.Random.pipe(Random.withSeed(seed))

/**
 * Creates an empty list of faults. A call gets the first fault that matches the call, has not reached its `count`, and is
 * selected by its `probability`.
 */
export const make = Effect.gen(function* () {
  let rules: ReadonlyArray<Rule> = []
  let random = yield* randomFrom(1)

  const meets = (rule: Rule, target: Target): boolean =>
    rule.matches(target) &&
    (rule.fault.count === undefined || rule.matched < rule.fault.count) &&
    (rule.fault.probability === undefined || random.nextDoubleUnsafe() < rule.fault.probability)

  return {
    /** Replaces all faults. The same `seed` makes `probability` select the same calls again. */
    replace: Effect.fnUntraced(function* (faults: ReadonlyArray<Fault>, seed: number) {
      random = yield* randomFrom(seed)
      rules = faults.map(ruleOf)
    }),
    list: Effect.sync((): ReadonlyArray<ScriptedFault> => rules.map(({ fault, matched }) => ({ ...fault, matched }))),
    next: (target: Target): Behaviour | undefined => {
      const rule = rules.find((candidate) => meets(candidate, target))
      if (rule !== undefined) rule.matched += 1
      return rule?.behaviour
    }
  }
})
export type FaultScript = Effect.Success<typeof make>
