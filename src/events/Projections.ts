/**
 * Read models that follow the log (ARCHITECTURE, "Projections"). Each is one table, brought up to date by whichever replica comes first:
 * the background does so several times a second, and a reader that must see what was just written does so itself.
 */
import { Context, Effect, Layer, MutableHashMap, Option, Schedule, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { StoreUnavailable } from "#domain/StoreUnavailable.ts"
import { logId } from "#events/Append.ts"
import * as Batcher from "#events/Batcher.ts"
import { elementType, sqlArray } from "#events/SqlArray.ts"
import * as StoreAccess from "#events/StoreAccess.ts"
import { StoredEvent } from "#events/StoredEvent.ts"

/** The events at positions `from` up to, but not including, `to`, for one projection. */
export interface ProjectionBatch {
  /** The table to write, without its schema: `sql("vatproof." + table)`. It is another one than usual during a rebuild. */
  readonly table: string
  readonly from: number
  readonly to: number
  /** Those of the batch's events that are of these types, in their order. */
  readonly eventsOf: (types: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<StoredEvent>, SqlError>
}

/**
 * One read model. Its table `vatproof.<name>` comes from a migration, with SELECT, INSERT and UPDATE for the service. `version` rises when
 * the rules of `apply` change: what is in the table then follows old rules until `projections rebuild`.
 */
export interface Projection {
  readonly name: string
  readonly version: number
  /** Writes what the events mean, in the transaction that moves the checkpoint: once for each event, in order. */
  readonly apply: (batch: ProjectionBatch) => Effect.Effect<unknown, SqlError>
}

export const define = (projection: Projection): Projection => projection

/** The log does not have all the events it counts: nothing may be concluded from the rest. */
export class LogGap extends Schema.TaggedError<LogGap>()("LogGap", {
  projection: Schema.String,
  from: Schema.Int,
  to: Schema.Int,
  found: Schema.Int
}) {
  override get message() {
    return `The projection ${this.projection} stops: of the events at positions ${this.from} to ${this.to - 1}, ${this.found} are there`
  }
}

/** How far a projection is. `lag` counts the events it has not seen; `outdated` ones follow older rules than this program's. */
export interface ProjectionState {
  readonly name: string
  readonly version: number
  readonly position: number
  readonly lag: number
  readonly outdated: boolean
}
