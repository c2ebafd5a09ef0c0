/** The settings of both simulated sources, which `/sandbox/settings` returns and changes. */
import { Schema } from "effect"
import { memberStates } from "#domain/vat/MemberStates.ts"

const MemberStates = Schema.Array(Schema.Literals([...memberStates.keys()]))
const Concurrency = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100_000 }))

/** The settings of both simulated sources. A member state is written as its VAT prefix. */
export const Settings = Schema.Struct({
  /** True if requesters may query BZSt for German VAT IDs. The real BZSt answers most of these queries with evatr-0006. */
  german_targets_admitted: Schema.Boolean,
  /** Additional delay of every check, in milliseconds. */
  latency_ms: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 600_000 })),
  vies_available: Schema.Boolean,
  vies_unavailable_member_states: MemberStates,
  /** Member states for which VIES reports `Monitoring Disabled` in place of the availability. */
  vies_unmonitored_member_states: MemberStates,
  /** Maximum number of concurrent checks at VIES, which answers any further check with `GLOBAL_MAX_CONCURRENT_REQ`. */
  vies_concurrent_max: Concurrency,
  /** Maximum number of concurrent checks of one member state at VIES, which answers further checks with `MS_MAX_CONCURRENT_REQ`. */
  vies_member_state_concurrent_max: Concurrency,
  bzst_available: Schema.Boolean,
  bzst_unavailable_member_states: MemberStates,
  /**
   * Maximum number of qualified queries in one session of a requester; null means unlimited. BZSt answers further qualified queries
   * with evatr-0008, until the requester starts a new session with a plain query.
   */
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
