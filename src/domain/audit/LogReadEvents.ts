/** The events of operators who read the log by commands, personal data included. */
import { Schema } from "effect"
import * as DomainEvent from "#domain/kernel/DomainEvent.ts"

/** The stream of events about the log as a whole. */
export const logStream = "log"

/**
 * An operator began to export the positions `from` (inclusive) to `to` (exclusive), out of `size` signed ones. The times are the
 * requested ones; null means unbounded.
 */
export const LogExported = DomainEvent.define(
  "LogExported",
  1,
  Schema.Struct({
    from: Schema.Int,
    to: Schema.Int,
    size: Schema.Int,
    recorded_from: Schema.NullOr(Schema.DateTimeUtcFromString),
    recorded_before: Schema.NullOr(Schema.DateTimeUtcFromString)
  })
)

/**
 * An operator verified the first `events` of the log, of which `signed` are covered by a checkpoint; `findings` counts the
 * problems.
 */
export const LogVerified = DomainEvent.define(
  "LogVerified",
  1,
  Schema.Struct({ events: Schema.Int, signed: Schema.Int, findings: Schema.Int })
)
