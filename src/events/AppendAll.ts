/**
 * The call of vatproof.append_all: a batch of which nothing is refused is stored as a whole, for about half of what it costs to decide its
 * commands one by one (migrations/functions/append_all.sql). If anything is in its way, nothing is stored.
 */
import { Effect, Exit } from "effect"
import { type Appended, appendColumns, type Cells, logId, makeCall, type Prepared } from "#events/Append.ts"
import { isTransient } from "#events/StoreAccess.ts"
import { elementType, sqlArray, sqlColumns } from "#events/SqlArray.ts"

/** After a batch that was not stored the second is tried again, then the fourth, then each eighth: who is in the way may be so for a while. */
const shortestPause = 2
const longestPause = 8

const { int4, int8, text } = elementType

/** What is the same for all of a batch, counted once for it, or none of the function's business. */
const notOfOne: ReadonlySet<keyof Cells> = new Set(["expected", "cap", "lists", "epoch", "bucket", "bucketLimit"])
const columns = appendColumns.filter(([key]) => !notOfOne.has(key))
/** Two more of each event, four of streams, three of meters and three of minutes, after log and epoch. */
const parameters = Array.from({ length: columns.length + 12 }, (_, index) => `$${index + 3}`).join(", ")
const statement = `SELECT head, versions, used, taken, ends_in_ms FROM vatproof.append_all($1::smallint, $2::bigint, ${parameters})`

/** Its one row, if all was stored: an element for each stream, meter and minute, in the order they were sent in; null where there are none. */
interface Stored {
  readonly head: bigint
  readonly versions: ReadonlyArray<bigint>
  readonly used: ReadonlyArray<bigint> | null
  readonly taken: ReadonlyArray<bigint> | null
  readonly ends_in_ms: ReadonlyArray<bigint> | null
}

/** What the commands of a batch count in: each stream, meter or minute once, how much it gets, and how much it may have before that. */
interface Tally {
  readonly numbers: Map<string, number>
  readonly names: Array<string>
  readonly counts: Array<number>
  readonly rooms: Array<number>
}

const makeTally = (): Tally => ({ numbers: new Map(), names: [], counts: [], rooms: [] })

/** Its number, and how much it gets by this command and those before it. `most` is what it may have in all by then. */
const count = (tally: Tally, name: string, units: number, most: number = Number.MAX_SAFE_INTEGER) => {
  const known = tally.numbers.get(name)
  const no = known ?? tally.names.length
  if (known === undefined) {
    tally.numbers.set(name, no)
    tally.names.push(name)
  }
  const reached = (tally.counts[no] ?? 0) + units
  tally.counts[no] = reached
  tally.rooms[no] = Math.min(tally.rooms[no] ?? Number.MAX_SAFE_INTEGER, most - reached)
  return { no, reached }
}

type Counted = ReturnType<typeof count>

/** Where a command counts. */
interface Place {
  readonly stream: Counted
  readonly meter: Counted | null
  readonly minute: Counted | null
}

/** What becomes of a tally: `after` is what stands in the database then. */
const reachedBy = ({ counts }: Tally, after: ReadonlyArray<bigint> | null, { no, reached }: Counted) =>
  Number(after?.[no] ?? 0) - (counts[no] ?? 0) + reached

/** The minutes of the batch in the order of their names: whoever locks several of them does so in that order. */
const minutesOf = (batch: ReadonlyArray<Prepared>) => {
  const minutes = makeTally()
  const buckets = new Set<string>()
  for (const { rows } of batch) if (rows[0]?.bucket) buckets.add(rows[0].bucket)
  for (const bucket of [...buckets].toSorted()) count(minutes, bucket, 0)
  return minutes
}

/** The batch as the function takes it; null if it is none for the function. */
const tally = (batch: ReadonlyArray<Prepared>) => {
  const [streams, meters, minutes] = [makeTally(), makeTally(), minutesOf(batch)]
  const firsts: Array<number> = []
  const lasts: Array<number> = []
  const rows: Array<Cells> = []
  const places: Array<Place> = []
  let epoch: bigint | null = null
  for (const { command, rows: own } of batch) {
    const row = own[0]
    if (row === undefined || own.length > 1 || row.expected !== null || row.lists !== null) return null
    // One of two that presume different epochs is refused for certain.
    if (epoch !== null && row.epoch !== null && row.epoch !== epoch) return null
    epoch ??= row.epoch
    const stream = count(streams, row.stream, 1)
    firsts[stream.no] ??= rows.length
    lasts[stream.no] = rows.length
    places.push({
      stream,
      // What costs nothing may be charged to a meter that is full.
      meter: row.meter === null ? null : count(meters, row.meter, row.units, row.units > 0 ? command.charge?.cap : undefined),
      minute: row.bucket === null ? null : count(minutes, row.bucket, 1, row.bucketLimit ?? undefined)
    })
    rows.push(row)
  }
  return { epoch, rows, places, streams, firsts, lasts, meters, minutes }
}

type Tallied = NonNullable<ReturnType<typeof tally>>

const bigints = (values: ReadonlyArray<number>) => sqlArray(values.map(BigInt), int8)
const names = ({ names }: Tally) => sqlArray(names, text)

const parametersOf = ({ epoch, firsts, lasts, meters, minutes, places, rows, streams }: Tallied) => [
  logId,
  epoch,
  ...sqlColumns(rows, columns),
  // Arrays begin at 1 there.
  sqlArray(
    places.map(({ stream }) => stream.no + 1),
    int4
  ),
  sqlArray(
    places.map(({ stream }) => (streams.counts[stream.no] ?? 0) - stream.reached),
    int4
  ),
  names(streams),
  bigints(streams.counts),
  bigints(firsts),
  bigints(lasts),
  names(meters),
  bigints(meters.counts),
  bigints(meters.rooms),
  names(minutes),
  bigints(minutes.counts),
  bigints(minutes.rooms)
]

const exitsOf = ({ meters, minutes, places, streams }: Tallied, { ends_in_ms, head, taken, used, versions }: Stored) =>
  places.map(({ meter, minute, stream }, index): Exit.Exit<Appended> =>
    Exit.succeed({
      position: Number(head) + index,
      version: reachedBy(streams, versions, stream),
      used: meter === null ? 0 : reachedBy(meters, used, meter),
      minute:
        minute === null ? null : { taken: reachedBy(minutes, taken, minute), endsInMs: Number(ends_in_ms?.[minute.no] ?? 0) }
    })
  )

/**
 * One round trip. An exit for each command, in their order; null if nothing was stored, because some command would be refused, or is none
 * that the function takes: it takes commands of one event, without an expected version and without lists.
 */
export const make = Effect.map(makeCall<Stored>(statement), (call) => {
  let pause = 0
  let nextPause = shortestPause
  return (batch: ReadonlyArray<Prepared>) =>
    Effect.suspend(() => {
      pause = Math.max(0, pause - 1)
      const tallied = pause > 0 ? null : tally(batch)
      if (tallied === null) return Effect.succeed(null)
      const refused = () => {
        pause = nextPause
        nextPause = Math.min(2 * nextPause, longestPause)
        return null
      }
      const accepted = (stored: Stored) => {
        nextPause = shortestPause
        return exitsOf(tallied, stored)
      }
      return call(parametersOf(tallied)).pipe(
        Effect.map(([stored]) => (stored === undefined ? refused() : accepted(stored))),
        // What the database cannot take at all is for vatproof.append to find out, and for its caller to hear from it.
        Effect.catchIf(
          (error) => !isTransient(error),
          () => Effect.sync(refused)
        )
      )
    })
})
