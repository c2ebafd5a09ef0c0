/** What operators read of the log by commands, personal data included. */
import { Schema } from "effect"
import * as DomainEvent from "#domain/kernel/DomainEvent.ts"

/** The stream of what concerns the log as a whole. */
export const logStream = "log"

/**
 * An operator began to export the positions `from` up to, but not including, `to`, out of `size` signed ones. The times are those that were
 * asked for; null has no bound.
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

/** An operator verified the log as far as `events`, of which `signed` are under a checkpoint; `findings` are what was wrong. */
export const LogVerified = DomainEvent.define(
  "LogVerified",
  1,
  Schema.Struct({ events: Schema.Int, signed: Schema.Int, findings: Schema.Int })
)
