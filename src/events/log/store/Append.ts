/**
 * Calls the SQL function vatproof.append with the prepared commands of one group commit (the batch). The function decides all
 * commands under the lock of the log. The parameters number the streams, meters and rate windows of the batch, so that the function
 * reads and writes each of them once.
 */
import { Effect, Exit, Metric, MutableRef } from "effect"
import { SqlClient } from "effect/sql"
import { DatabaseFull } from "#domain/kernel/DatabaseFull.ts"
import {
  type AppendError,
  type Appended,
  type DocumentRow,
  type EventRow,
  logId,
  PreconditionFailed,
  type Prepared,
  QuotaReached,
  RateLimitReached,
  VersionConflict
} from "#events/log/store/AppendCommand.ts"
import { BatchTotals } from "#events/log/store/BatchTotals.ts"
import { elementType, sqlArray, type SqlColumn, sqlColumns } from "#events/log/database/SqlArray.ts"
import * as StoreMetrics from "#events/log/database/StoreMetrics.ts"

const { bytea, int2, int4, int8, text, timestamptz, uuid } = elementType

/** The columns of events and of the conditions of their commands, in the order of the parameters of vatproof.append. */
const rowColumns: ReadonlyArray<SqlColumn<EventRow>> = [
  ["stream", text],
  ["eventId", uuid],
  ["type", text],
  ["schemaVersion", int2],
  ["occurredAtMs", timestamptz],
  ["correlationId", uuid],
  ["causationId", uuid],
  ["traceId", bytea],
  ["data", text],
  ["metadata", text],
  ["meter", text],
  ["units", int2],
  ["cap", int8],
  ["expected", int8],
  ["epoch", int8],
  ["answerKey", text],
  ["answerPosition", int8],
  ["minuteLimit", int4]
]

const documentColumns: ReadonlyArray<SqlColumn<DocumentRow>> = [
  ["event", int4],
  ["document", text],
  ["retainUntilMs", timestamptz]
]

/** A command with the numbers of its stream, meter and rate window. */
interface Numbered {
  readonly prepared: Prepared
  /** Index of the command's first event in the batch. */
  readonly firstEvent: number
  readonly stream: number
  readonly meter: number | null
  readonly minute: number | null
}

/**
 * Converts a batch of commands to the parameters of vatproof.append. The numbers of streams, meters and rate windows start from 1,
 * like the indexes of SQL arrays.
 */
const numbered = (batch: ReadonlyArray<Prepared>) => {
  const [streams, meters, minutes] = [new BatchTotals(), new BatchTotals(), new BatchTotals()]
  // Sorts the rate windows by name. All statements lock the windows in this order, which prevents deadlocks.
  for (const bucket of bucketsOf(batch)) minutes.add(bucket, 0)
  const rows: Array<EventRow> = []
  const numbers = { command: new Array<number>(), stream: new Array<number>(), nth: new Array<number>() }
  const places = { meter: new Array<number | null>(), minute: new Array<number | null>() }
  const documents: Array<DocumentRow> = []
  const commands = batch.map((prepared, index): Numbered => {
    const { charge, minute, stream } = prepared.command
    const place = {
      prepared,
      firstEvent: rows.length,
      stream: streams.add(stream, 0),
      meter: charge === null ? null : meters.add(charge.meter, charge.units, charge.cap),
      minute: minute === undefined ? null : minutes.add(minute.bucket, 1, minute.limit)
    }
    for (const document of prepared.documents) documents.push({ ...document, event: rows.length + document.event + 1 })
    for (const row of prepared.rows) {
      rows.push(row)
      streams.add(stream, 1)
      numbers.command.push(index)
      numbers.stream.push(place.stream)
      numbers.nth.push(streams.addedTo(place.stream))
      places.meter.push(place.meter)
      places.minute.push(place.minute)
    }
    return place
  })
  const columns = [
    ...[numbers.command, numbers.stream, numbers.nth, places.meter, places.minute].map((column) => sqlArray(column, int4)),
    ...sqlColumns(rows, rowColumns),
    streams.nameColumn,
    ...meters.columns,
    ...minutes.columns,
    ...sqlColumns(documents, documentColumns)
  ]
  return { commands, columns }
}

/** Returns the names of the rate windows of a batch in alphabetical order. */
const bucketsOf = (batch: ReadonlyArray<Prepared>) => {
  const buckets = new Set<string>()
  for (const { command } of batch) if (command.minute !== undefined) buckets.add(command.minute.bucket)
  return [...buckets].toSorted()
}

/**
 * The result row of vatproof.append. `outcomes` has an entry per command, or is null if all were appended. `stored_at` has an entry per
 * event, and the other arrays have one per stream, meter or rate window.
 */
interface Outcomes {
  readonly head: bigint
  readonly outcomes: ReadonlyArray<Outcome> | null
  readonly stored_at: ReadonlyArray<bigint | null> | null
  readonly versions: ReadonlyArray<bigint>
  readonly used: ReadonlyArray<bigint> | null
  readonly taken: ReadonlyArray<bigint> | null
  readonly ends_in_ms: ReadonlyArray<bigint> | null
}

type Outcome = "appended" | "duplicate" | "conflict" | "identity" | "answer" | "rate" | "quota"

type AppendExit = Exit.Exit<Appended, AppendError>

/**
 * Returns the result of each command, in order. `row` has the values of the meters and rate windows after the whole batch. The
 * values after each command are computed backwards from these, from the last command to the first.
 */
const exitsOf = (commands: ReadonlyArray<Numbered>, row: Outcomes): ReadonlyArray<AppendExit> => {
  const exits: Array<AppendExit> = []
  const used = Array.from(row.used ?? [], Number)
  const taken = Array.from(row.taken ?? [], Number)
  let position = Number(row.head) + appendedEvents(commands, row)
  for (let index = commands.length - 1; index >= 0; index -= 1) {
    const one = commands[index]
    if (one === undefined) continue
    const outcome = row.outcomes === null ? "appended" : row.outcomes[index]
    const { charge } = one.prepared.command
    const isCounted = outcome === "appended" || outcome === "rate" || outcome === "quota"
    if (outcome === "appended") position -= one.prepared.rows.length
    const standing = {
      position: outcome === "duplicate" ? Number(row.stored_at?.[one.firstEvent] ?? 0) : position,
      used: one.meter === null ? 0 : (used[one.meter - 1] ?? 0),
      minute:
        one.minute === null || !isCounted
          ? null
          : { taken: taken[one.minute - 1] ?? 0, endsInMs: Number(row.ends_in_ms?.[one.minute - 1] ?? 0) }
    }
    exits.push(exitOf(one, outcome, standing, row))
    if (isCounted && one.minute !== null) taken[one.minute - 1] = (taken[one.minute - 1] ?? 0) - 1
    if (outcome === "appended" && one.meter !== null) used[one.meter - 1] = standing.used - (charge?.units ?? 0)
  }
  return exits.toReversed()
}

const appendedEvents = (commands: ReadonlyArray<Numbered>, { outcomes }: Outcomes) =>
  commands.reduce(
    (sum, { prepared }, index) => (outcomes === null || outcomes[index] === "appended" ? sum + prepared.rows.length : sum),
    0
  )

const exitOf = (
  one: Numbered,
  outcome: Outcome | undefined,
  standing: Omit<Appended, "isDuplicate">,
  row: Outcomes
): AppendExit => {
  const { charge, stream } = one.prepared.command
  const { minute, used } = standing
  switch (outcome) {
    case "appended":
    case "duplicate":
      return Exit.succeed({ ...standing, isDuplicate: outcome === "duplicate" })
    case "conflict":
      return Exit.fail(new VersionConflict({ stream, actual: Number(row.versions[one.stream - 1] ?? 0) }))
    case "identity":
    case "answer":
      return Exit.fail(new PreconditionFailed({ outdated: outcome }))
    case "quota":
      return Exit.fail(new QuotaReached({ meter: charge?.meter ?? "", used, minute }))
    case "rate":
      return minute === null
        ? Exit.die("vatproof.append reported a full rate window for a command without a rate window (a defect)")
        : Exit.fail(new RateLimitReached({ used, minute }))
    case undefined:
      return Exit.die("The database function vatproof.append returned no outcome for a command")
  }
}

const parameterCount = 5 + rowColumns.length + 1 + 2 * 3 + documentColumns.length
const parameters = ["$1::smallint", "$2", ...Array.from({ length: parameterCount }, (_, index) => `$${index + 3}`)].join(", ")
const statement = `SELECT head, outcomes, stored_at, versions, used, taken, ends_in_ms FROM vatproof.append(${parameters})`

/**
 * Creates a function that appends a batch of commands in one round trip and returns the result of each command, in order. `isResent`
 * is true if an earlier attempt may have stored the batch although its response was lost.
 *
 * The method `compile` of the SQL statement is replaced. Otherwise the client would cache the statement with its parameters, and so
 * keep whole batches in memory until the next full garbage collection. The row is not decoded by a schema, because decoding would
 * take longer than the call.
 */
export const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const isFull = yield* DatabaseFull
  return (batch: ReadonlyArray<Prepared>, isResent: boolean) =>
    Effect.suspend(() => {
      const { columns, commands } = numbered(batch)
      const mayBeStored = isResent || batch.some(({ command }) => command.mayBeStored === true)
      const values = [logId, mayBeStored, ...columns]
      const call = Object.assign(sql.unsafe<Outcomes>(statement, values), { compile: () => [statement, values] as const })
      return Effect.flatMap(call, ([row]) => {
        if (row === undefined) return Effect.die("The database function vatproof.append returned no row")
        if (appendedEvents(commands, row) > 0) MutableRef.set(isFull, false)
        const batches = row.outcomes === null ? StoreMetrics.wholeBatches : StoreMetrics.decidedBatches
        return Effect.as(Metric.update(batches, 1), exitsOf(commands, row))
      })
    })
})
