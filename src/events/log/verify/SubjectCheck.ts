/** Checks that a product adds to the verification of its log. */
import { Context, Effect } from "effect"
import type { PureCrypto } from "#domain/kernel/Crypto.ts"
import type { Findings } from "#events/log/verify/Findings.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"

/**
 * What a check works with. `begins` is true if the first compared event has position 0. Otherwise events before it can belong to its
 * subject.
 */
export interface SubjectCheckOptions {
  readonly crypto: Pick<PureCrypto, "sha256Hex">
  readonly findings: Findings
  readonly begins: boolean
}

/**
 * A check of the product's events. `make` creates a function that receives the events in the order of their positions. A fast verification
 * passes only the events of `types`, and the events with personal documents.
 */
export interface SubjectCheck {
  readonly types: ReadonlyArray<string>
  readonly make: (options: SubjectCheckOptions) => (event: StoredEvent) => void
}

/** All checks of a product. */
export class SubjectChecks extends Context.Service<SubjectChecks, ReadonlyArray<SubjectCheck>>()(
  "vatproof/events/log/verify/SubjectChecks"
) {}

/** All checks as one. */
export const all = Effect.map(SubjectChecks, (checks): SubjectCheck => ({
  types: checks.flatMap(({ types }) => types),
  make: (options) => {
    const compare = checks.map(({ make }) => make(options))
    return (event) => compare.forEach((one) => one(event))
  }
}))
