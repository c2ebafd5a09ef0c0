/** The settings of both simulated sources, which `/sandbox/settings` returns and changes. */
import { Schema } from "effect"
import { memberStates } from "#domain/vat/MemberStates.ts"

const MemberStates = Schema.Array(Schema.Literals([...memberStates.keys()]))
const Concurrency = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100_000 }))

/**
 * `german_targets_admitted`: whether requesters may query BZSt for German VAT IDs (the real BZSt answers most with evatr-0006).
 * `latency_ms`: added to every check. `…_concurrent_max`: maximum concurrent checks of VIES, beyond which it answers
 * `GLOBAL_MAX_CONCURRENT_REQ` or `MS_MAX_CONCURRENT_REQ`. `bzst_qualified_max`: qualified queries of a requester until a plain
 * one starts a new session (evatr-0008); null means unlimited. Member states are VAT prefixes.
 */
export const Settings = Schema.Struct({
  german_targets_admitted: Schema.Boolean,
  latency_ms: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 600_000 })),
  vies_available: Schema.Boolean,
  vies_unavailable_member_states: MemberStates,
  vies_unmonitored_member_states: MemberStates,
  vies_concurrent_max: Concurrency,
  vies_member_state_concurrent_max: Concurrency,
  bzst_available: Schema.Boolean,
  bzst_unavailable_member_states: MemberStates,
  bzst_qualified_max: Schema.NullOr(Concurrency)
})
export type Settings = typeof Settings.Type

/** The initial settings. The concurrency limits only stop a runaway client. */
export const initialSettings: Settings = {
  german_targets_admitted: true,
  latency_ms: 0,
  vies_available: true,
  vies_unavailable_member_states: [],
  vies_unmonitored_member_states: [],
  vies_concurrent_max: 1_000,
  vies_member_state_concurrent_max: 500,
  bzst_available: true,
  bzst_unavailable_member_states: [],
  bzst_qualified_max: null
}
