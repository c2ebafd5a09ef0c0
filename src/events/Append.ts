/**
 * The call of vatproof.append: a batch of prepared commands in, an outcome for each out (migrations/functions/append.sql).
 * It decides one command after the other; AppendAll.ts stores a batch of which nothing is refused for less.
 */
import { Effect, Exit, Schema } from "effect"
import type { Array as Arr } from "effect"
import { SqlClient } from "effect/sql"
import type { DomainEvent } from "#domain/DomainEvent.ts"
import type { StoreUnavailable } from "#domain/StoreUnavailable.ts"
import { elementType, sqlArray, type SqlColumn, sqlColumns } from "#events/SqlArray.ts"

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

/** A command that takes something for granted: if it is no longer so, nothing is stored. */
export interface PresumingCommand extends AppendCommand {
  readonly presumed: Presumption
}

/** `epoch` of what is known of callers; the newest position under a key; the minute that the command counts in, which may be full. */
export interface Presumption {
  readonly epoch: number | null
  readonly newest: { readonly key: string; readonly position: number } | null
  readonly minute: { readonly bucket: string; readonly limit: number } | null
}

/** `position` of the first event, `version` of the stream after the last, `used` units of the meter after the charge. */
export interface Appended {
  readonly position: number
  readonly version: number
  readonly used: number
  /** The command's minute; null also where it was stored already, as nobody has counted since then. */
  readonly minute: typeof Minute.Type | null
}

/** Another event came first: the stream is at `actual`. */
export class StreamMoved extends Schema.TaggedError<StreamMoved>()("StreamMoved", {
  stream: Schema.String,
  actual: Schema.Int
}) {}

/** A minute that a command counts in: the calls in it, with this one, and when it ends. */
const Minute = Schema.Struct({ taken: Schema.Int, endsInMs: Schema.Int })

/** The charge would pass the meter's cap; nothing was stored but, where the command counts in a minute, that call. */
export class MeterFull extends Schema.TaggedError<MeterFull>()("MeterFull", {
  meter: Schema.String,
  used: Schema.Int,
  minute: Schema.NullOr(Minute)
}) {}

/** What the command presumed is no longer so; nothing was stored and nothing counted. */
export class PresumptionMoved extends Schema.TaggedError<PresumptionMoved>()("PresumptionMoved", { stream: Schema.String }) {}

/** The command's minute is full; nothing was stored. */
export class MinuteFull extends Schema.TaggedError<MinuteFull>()("MinuteFull", {
  taken: Schema.Int,
  endsInMs: Schema.Int,
  used: Schema.Int
}) {}

export type AppendError = StreamMoved | MeterFull | StoreUnavailable
export type PresumingError = AppendError | PresumptionMoved | MinuteFull

/** What every call of the log is made of: a command, with or without presumptions. */
export type PreparableCommand = AppendCommand & Partial<PresumingCommand>

/** What the functions that append are told of one event and of its command. */
export interface Cells {
  readonly stream: string
  readonly expected: bigint | null
  readonly eventId: string
  readonly type: string
  readonly schemaVersion: number
  readonly occurredAt: number
  readonly correlationId: string
  readonly causationId: null
  readonly traceId: Uint8Array | null
  readonly data: string
  readonly metadata: string
  readonly meter: string | null
  readonly units: number
  readonly cap: bigint | null
  readonly latest: string | null
  readonly lists: string | null
  readonly epoch: bigint | null
  readonly answerKey: string | null
  readonly answerPosition: bigint | null
  readonly bucket: string | null
  readonly bucketLimit: number | null
}

/** A command with all that makes it the same command when it is sent again: ids, times and bytes are fixed. One row an event. */
export interface Prepared {
  readonly command: PreparableCommand
  readonly rows: ReadonlyArray<Cells>
}

const { bytea, int2, int4, int8, text, timestamptz, uuid } = elementType

/** The parameters of vatproof.append after the log and the number of the command. */
export const appendColumns: ReadonlyArray<SqlColumn<Cells>> = [
  ["stream", text],
  ["expected", int8],
  ["eventId", uuid],
  ["type", text],
  ["schemaVersion", int2],
  ["occurredAt", timestamptz],
  ["correlationId", uuid],
  ["causationId", uuid],
  ["traceId", bytea],
  ["data", text],
  ["metadata", text],
  ["meter", text],
  ["units", int2],
  ["cap", int8],
  ["latest", text],
  ["lists", text],
  ["epoch", int8],
  ["answerKey", text],
  ["answerPosition", int8],
  ["bucket", text],
  ["bucketLimit", int4]
]
const parameters = ["commands", ...appendColumns].map((_, index) => `$${index + 2}`).join(", ")
const statement = `SELECT cmd, outcome, first_position, version, used, taken, ends_in_ms FROM vatproof.append($1::smallint, ${parameters})`

/** A row of its result. It is not decoded by a schema: that would cost more than the call, and the function is our own. */
interface Verdict {
  readonly cmd: number
  readonly outcome: "appended" | "duplicate" | "conflict" | "quota" | "moved" | "rate"
  readonly first_position: bigint | null
  readonly version: bigint
  readonly used: bigint
  readonly taken: bigint | null
  readonly ends_in_ms: bigint | null
}

/**
 * A call that says itself how it is compiled. The client remembers statements with their parameters in a WeakMap, whose values the engine
 * keeps until it looks at old objects: too dear for whole batches.
 */
export const makeCall = <Row extends object>(text: string) =>
  Effect.map(
    SqlClient.SqlClient,
    (sql) => (parameterValues: ReadonlyArray<unknown>) =>
      Object.assign(sql.unsafe<Row>(text, parameterValues), { compile: () => [text, parameterValues] as const })
  )

/** One round trip. An exit for each command, in their order. */
export const make = Effect.map(makeCall<Verdict>(statement), (call) =>
  Effect.fnUntraced(function* (batch: ReadonlyArray<Prepared>) {
    const rows = batch.flatMap((prepared) => prepared.rows)
    const commands = batch.flatMap((prepared, index) => prepared.rows.map(() => index))
    const verdicts = yield* call([logId, sqlArray(commands, int4), ...sqlColumns(rows, appendColumns)])
    const byCommand = new Map(verdicts.map((verdict) => [verdict.cmd, verdict]))
    return batch.map(({ command }, index) => exitOf(command, byCommand.get(index)))
  })
)

const minuteOf = ({ ends_in_ms, taken }: Verdict) =>
  taken === null ? null : { taken: Number(taken), endsInMs: Number(ends_in_ms) }

const exitOf = (command: AppendCommand, verdict: Verdict | undefined): Exit.Exit<Appended, PresumingError> => {
  switch (verdict?.outcome) {
    case "appended":
    case "duplicate":
      return Exit.succeed({
        position: Number(verdict.first_position),
        version: Number(verdict.version),
        used: Number(verdict.used),
        minute: minuteOf(verdict)
      })
    case "moved":
      return Exit.fail(new PresumptionMoved({ stream: command.stream }))
    case "rate":
      return Exit.fail(
        new MinuteFull({ taken: Number(verdict.taken), endsInMs: Number(verdict.ends_in_ms), used: Number(verdict.used) })
      )
    case "quota":
      return Exit.fail(
        new MeterFull({ meter: command.charge?.meter ?? "", used: Number(verdict.used), minute: minuteOf(verdict) })
      )
    case "conflict":
      return Exit.fail(new StreamMoved({ stream: command.stream, actual: Number(verdict.version) }))
    case undefined:
      return Exit.die("vatproof.append gave no outcome for a command")
  }
}
