/** The event that records the adoption of a log that does not continue its signed history. */
import { Schema } from "effect"
import * as DomainEvent from "#domain/log/DomainEvent.ts"

/** A checkpoint: the number of events, and their root in hex. */
const History = Schema.Struct({ events: Schema.Int, root: Schema.String })

/**
 * An operator verified the log up to `adopted` and ordered the notary to continue it, although the notary had refused to sign it.
 * `newest` is the newest checkpoint in the database; `remembered` lists the checkpoints that the operator's machine had stored.
 * Only checkpoints stored outside the database prove that the earlier history is unchanged.
 */
export const LogAdopted = DomainEvent.define(
  "LogAdopted",
  1,
  Schema.Struct({ adopted: History, newest: Schema.NullOr(History), remembered: Schema.Array(History) })
)
