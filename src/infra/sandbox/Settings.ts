/** The settings of both simulated sources, which `/sandbox/settings` returns and changes. */
import { Schema } from "effect"
import { memberStates } from "#domain/vat/MemberStates.ts"

const MemberStates = Schema.Array(Schema.Literals([...memberStates.keys()]))

/** The settings of both simulated sources. A member state is written as its VAT prefix. */
export const Settings = Schema.Struct({
  /** True if requesters may query BZSt for German VAT IDs. The real BZSt answers most of these queries with evatr-0006. */
  german_targets_admitted: Schema.Boolean,
  /** Additional delay of every check, in milliseconds. */
  latency_ms: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 600_000 })),
  vies_available: Schema.Boolean,
  vies_unavailable_member_states: MemberStates,
  bzst_available: Schema.Boolean,
  bzst_unavailable_member_states: MemberStates
})
export type Settings = typeof Settings.Type

/** The initial settings. */
export const initialSettings: Settings = {
  german_targets_admitted: true,
  latency_ms: 0,
  vies_available: true,
  vies_unavailable_member_states: [],
  bzst_available: true,
  bzst_unavailable_member_states: []
}
