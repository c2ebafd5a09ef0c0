/** The call of vatproof.append: a batch of prepared commands in, an outcome for each out (migrations/0001_event_log.sql). */
import { Effect, Exit, Schema } from "effect"
import type { Array as Arr } from "effect"
import { SqlClient } from "effect/sql"
import type { DomainEvent } from "#domain/DomainEvent.ts"
import type { StoreUnavailable } from "#domain/StoreUnavailable.ts"
import { elementType, sqlColumns } from "#events/SqlArray.ts"

/** The only log so far. */
export const logId = 0

/** Events that are stored together or not at all, in one stream. */
export interface AppendCommand {
  readonly stream: string
  /** The version the stream must have; null if any will do. */
  readonly expectedVersion: number | null
  readonly events: Arr.NonEmptyReadonlyArray<DomainEvent>
  /** Units charged to a meter, which may not pass `cap` by it. */
  readonly charge: { readonly meter: string; readonly units: number; readonly cap: number } | null
  /** Key under which the last of `events` is the newest from now on. */
  readonly latestOf: string | null
  /** Lists in which the last of `events` stands; a name has no line break. */
  readonly lists?: ReadonlyArray<string>
}

/** `position` of the first event, `version` of the stream after the last, `used` units of the meter after the charge. */
export interface Appended {
  readonly position: number
  readonly version: number
  readonly used: number
}

/** Another event came first: the stream is at `actual`. */
export class StreamMoved extends Schema.TaggedError<StreamMoved>()("StreamMoved", {
  stream: Schema.String,
  actual: Schema.Int
}) {}

/** The charge would pass the meter's cap; nothing was stored. */
export class MeterFull extends Schema.TaggedError<MeterFull>()("MeterFull", { meter: Schema.String, used: Schema.Int }) {}

export type AppendError = StreamMoved | MeterFull | StoreUnavailable

/** Another command of the same batch on the same stream went first; the next batch decides. */
export const sendAgain = "send again"

/** A command with all that makes it the same command when it is sent again: one row of cells an event, ids, times and bytes fixed. */
export interface Prepared {
  readonly command: AppendCommand
  readonly rows: ReadonlyArray<ReadonlyArray<unknown>>
}

/** The parameters of vatproof.append after the log: the number of the command, then the cells of a prepared row. */
const { bytea, int2, int4, int8, text, timestamptz, uuid } = elementType
const columnTypes = [int4, text, int8, uuid, text, int2, timestamptz, uuid, uuid, bytea, text, text, text, int2, int8, text, text]
const parameters = columnTypes.map((_, index) => `$${index + 2}`).join(", ")
const statement = `SELECT cmd, outcome, first_position, version, used FROM vatproof.append($1::smallint, ${parameters})`

const Verdict = Schema.Struct({
  cmd: Schema.Int,
  outcome: Schema.Literals(["appended", "duplicate", "conflict", "retry", "quota"]),
  first_position: Schema.NullOr(Schema.BigInt),
  version: Schema.NullOr(Schema.BigInt),
  used: Schema.BigInt
})
const decodeVerdicts = Schema.decodeUnknownEffect(Schema.Array(Verdict))

/** One round trip. An exit for each command, in their order. */
export const make = Effect.map(SqlClient.SqlClient, (sql) =>
  Effect.fnUntraced(function* (batch: ReadonlyArray<Prepared>) {
    const rows = batch.flatMap((prepared, index) => prepared.rows.map((row) => [index, ...row]))
    const verdicts = yield* decodeVerdicts(yield* sql.unsafe(statement, [logId, ...sqlColumns(rows, columnTypes)]))
    const byCommand = new Map(verdicts.map((verdict) => [verdict.cmd, verdict]))
    return batch.map(({ command }, index) => exitOf(command, byCommand.get(index)))
  })
)

const exitOf = (
  command: AppendCommand,
  verdict: typeof Verdict.Type | undefined
): Exit.Exit<Appended | typeof sendAgain, AppendError> => {
  switch (verdict?.outcome) {
    case "appended":
    case "duplicate":
      return Exit.succeed({
        position: Number(verdict.first_position),
        version: Number(verdict.version),
        used: Number(verdict.used)
      })
    case "quota":
      return Exit.fail(new MeterFull({ meter: command.charge?.meter ?? "", used: Number(verdict.used) }))
    case "conflict":
      return Exit.fail(new StreamMoved({ stream: command.stream, actual: Number(verdict.version) }))
    case "retry":
      return Exit.succeed(sendAgain)
    case undefined:
      return Exit.die("vatproof.append gave no outcome for a command")
  }
}
