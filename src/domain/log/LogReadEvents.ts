/** The events of the commands by which operators read the log or correct projections. */
import { Schema } from "effect"
import * as DomainEvent from "#domain/log/DomainEvent.ts"

/** The name of the stream for events about the log as a whole. */
export const logStream = "log"

/**
 * An operator began to export the events at positions `from` (inclusive) to `to` (exclusive) of a signed log with `size` events.
 * `recorded_from` and `recorded_before` are the requested times; null means unbounded.
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
 * An operator verified the log. `events` is the number of verified events, `signed` how many of them a checkpoint covers, and
 * `findings` the number of defects found.
 */
export const LogVerified = DomainEvent.define(
  "LogVerified",
  1,
  Schema.Struct({ events: Schema.Int, signed: Schema.Int, findings: Schema.Int })
)

/** An operator rebuilt a projection, whose rows differed from the events. */
export const ProjectionCorrected = DomainEvent.define(
  "ProjectionCorrected",
  1,
  Schema.Struct({ projection: Schema.String, missing: Schema.Int, surplus: Schema.Int, different: Schema.Int })
)
