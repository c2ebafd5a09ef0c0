/** What is recorded when an operator vouches for a log that the notary does not know. */
import { Schema } from "effect"
import * as DomainEvent from "#domain/kernel/DomainEvent.ts"

/** A checkpoint: so many events, and the root over them in hex. */
const History = Schema.Struct({ events: Schema.Int, root: Schema.String })

/**
 * An operator has verified that the log is the right one although the notary refused to sign it, as far as `adopted`. `newest` is the newest
 * checkpoint that the database had; `remembered` are those that the operator's machine had seen. What the log was before is proven only
 * by checkpoints that somebody kept.
 */
export const LogAdopted = DomainEvent.define(
  "LogAdopted",
  1,
  Schema.Struct({ adopted: History, newest: Schema.NullOr(History), remembered: Schema.Array(History) })
)
