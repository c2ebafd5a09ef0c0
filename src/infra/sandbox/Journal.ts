/** What the sandbox was asked: the last calls in full, counters for all of them, and how many checks ran at a time. */
import { Clock, DateTime, Effect, Schema, Stream, SubscriptionRef } from "effect"
import { SourceName } from "#domain/vat/Verdict.ts"

/** What made an answer what it was, from the strongest to the weakest. */
export const DecidedBy = Schema.Literals(["script", "request", "settings", "magic number", "register"])
export type DecidedBy = typeof DecidedBy.Type

/**
 * One call. `outcome` is what the source said (`VALID`, `evatr-2001`, an error code) or the way it broke (`reset`). `http_status` and
 * `duration_ms` are null while it is under way, `http_status` also when nothing was sent. `at` is ISO 8601 in UTC.
 */
export const JournalEntry = Schema.Struct({
  number: Schema.Int,
  at: Schema.String,
  source: SourceName,
  endpoint: Schema.String,
  vat_id: Schema.NullOr(Schema.String),
  requester: Schema.NullOr(Schema.String),
  decided_by: Schema.NullOr(DecidedBy),
  outcome: Schema.NullOr(Schema.String),
  http_status: Schema.NullOr(Schema.Int),
  duration_ms: Schema.NullOr(Schema.Int),
  /** The client went away, or the sandbox stopped, before the answer was complete. */
  abandoned: Schema.Boolean
})
export type JournalEntry = typeof JournalEntry.Type

const Tally = Schema.Struct({ checks: Schema.Int, probes: Schema.Int, in_flight: Schema.Int, concurrent_max: Schema.Int })

/**
 * Counters since the last reset: `checks` are validations, `probes` everything else that a source offers; `in_flight` and
 * `concurrent_max` count checks under way. `entries` are the newest calls, oldest first; `dropped` is how many fell out.
 */
export const JournalView = Schema.Struct({
  vies: Tally,
  bzst: Tally,
  checks_by_vat_id: Schema.Record(Schema.String, Schema.Struct({ vies: Schema.Int, bzst: Schema.Int })),
  dropped: Schema.Int,
  entries: Schema.Array(JournalEntry)
})
export type JournalView = typeof JournalView.Type

/** Narrows what is counted or shown: to a source, to a VAT ID with its prefix. */
export interface Filter {
  readonly source?: SourceName | undefined
  readonly vatId?: string | undefined
}

/** Entries kept in full. */
export const entriesMax = 1_000
/** VAT IDs counted one by one; calls for further ones count in the totals only. */
const vatIdsMax = 10_000
/** Longer than any VAT ID: what was sent in its place is cut off here. */
const textMax = 64

/** A call as it arrives. `memberState` is the prefix of the VAT ID asked for, null if there is none. */
export interface Arrival {
  readonly source: SourceName
  readonly endpoint: string
  readonly probe: boolean
  readonly vatId: string | null
  readonly requester: string | null
  readonly memberState: string | null
}

/** A call under way. `concurrent` counts the checks under way when it arrived, itself included. */
export interface Call {
  readonly concurrent: { readonly source: number; readonly memberState: number }
  readonly decide: (by: DecidedBy, outcome: string) => void
  readonly finish: (httpStatus: number | null, abandoned: boolean) => Effect.Effect<void>
}

type Entry = { -readonly [Key in keyof JournalEntry]: JournalEntry[Key] }
type Counts = { vies: number; bzst: number }

const emptyPages = () => ({
  entries: new Array<Entry>(),
  dropped: 0,
  vies: { checks: 0, probes: 0, in_flight: 0, concurrent_max: 0 },
  bzst: { checks: 0, probes: 0, in_flight: 0, concurrent_max: 0 },
  checksByVatId: new Map<string, Counts>(),
  inFlightByState: new Map<string, number>()
})
type Pages = ReturnType<typeof emptyPages>

/** Makes an empty journal. Its pages are mutable and belong to it alone; each change to them is one synchronous step. */
export const make = Effect.gen(function* () {
  const changes = yield* SubscriptionRef.make(0)
  const changed = SubscriptionRef.update(changes, (count) => count + 1)
  let pages = emptyPages()

  const begin = Effect.fnUntraced(function* (arrival: Arrival) {
    const startedMs = yield* Clock.currentTimeMillis
    const current = pages
    const entry = write(current, arrival, startedMs)
    const leave = enter(current, arrival)
    yield* changed
    const call: Call = {
      concurrent: {
        source: current[arrival.source].in_flight,
        memberState: current.inFlightByState.get(stateKey(arrival)) ?? 0
      },
      decide: (by, outcome) => {
        entry.decided_by = by
        entry.outcome = outcome
      },
      finish: Effect.fnUntraced(function* (httpStatus, abandoned) {
        entry.duration_ms = (yield* Clock.currentTimeMillis) - startedMs
        entry.http_status = httpStatus
        entry.abandoned = abandoned
        leave()
        yield* changed
      })
    }
    return call
  })

  return {
    begin,
    /** How many checks have arrived. */
    checks: (filter: Filter) => Effect.sync(() => countChecks(pages, filter)),
    view: (filter: Filter) => Effect.sync(() => viewOf(pages, filter)),
    /** Forgets everything; calls under way finish unseen. */
    clear: Effect.suspend(() => {
      pages = emptyPages()
      return changed
    }),
    /** Waits until the condition holds. It is looked at now and whenever a call begins or ends. */
    until: (condition: (view: JournalView) => boolean): Effect.Effect<void> =>
      SubscriptionRef.changes(changes).pipe(
        Stream.filter(() => condition(viewOf(pages, {}))),
        Stream.take(1),
        Stream.runDrain
      )
  }
})
export type Journal = Effect.Success<typeof make>

const write = (pages: Pages, arrival: Arrival, startedMs: number): Entry => {
  const entry: Entry = {
    number: pages.dropped + pages.entries.length + 1,
    at: DateTime.formatIso(DateTime.makeUnsafe(startedMs)),
    source: arrival.source,
    endpoint: arrival.endpoint,
    vat_id: arrival.vatId?.slice(0, textMax) ?? null,
    requester: arrival.requester?.slice(0, textMax) ?? null,
    decided_by: null,
    outcome: null,
    http_status: null,
    duration_ms: null,
    abandoned: false
  }
  pages.entries.push(entry)
  if (pages.entries.length > entriesMax) {
    pages.entries.shift()
    pages.dropped += 1
  }
  return entry
}

const stateKey = (arrival: Arrival) => `${arrival.source} ${arrival.memberState}`

/** Counts a call in and gives back what counts it out again. */
const enter = (pages: Pages, arrival: Arrival): (() => void) => {
  const tally = pages[arrival.source]
  if (arrival.probe) {
    tally.probes += 1
    return () => {}
  }
  const key = stateKey(arrival)
  tally.checks += 1
  tally.in_flight += 1
  tally.concurrent_max = Math.max(tally.concurrent_max, tally.in_flight)
  pages.inFlightByState.set(key, (pages.inFlightByState.get(key) ?? 0) + 1)
  countVatId(pages, arrival)
  return () => {
    tally.in_flight -= 1
    pages.inFlightByState.set(key, (pages.inFlightByState.get(key) ?? 1) - 1)
  }
}

const countVatId = (pages: Pages, arrival: Arrival): void => {
  const vatId = arrival.vatId?.slice(0, textMax)
  if (vatId === undefined || (!pages.checksByVatId.has(vatId) && pages.checksByVatId.size >= vatIdsMax)) return
  const counts = pages.checksByVatId.get(vatId) ?? { vies: 0, bzst: 0 }
  pages.checksByVatId.set(vatId, counts)
  counts[arrival.source] += 1
}

const countChecks = (pages: Pages, { source, vatId }: Filter): number => {
  const counts: Counts =
    vatId === undefined
      ? { vies: pages.vies.checks, bzst: pages.bzst.checks }
      : (pages.checksByVatId.get(vatId) ?? { vies: 0, bzst: 0 })
  return source === undefined ? counts.vies + counts.bzst : counts[source]
}

const viewOf = (pages: Pages, { source, vatId }: Filter): JournalView => ({
  vies: { ...pages.vies },
  bzst: { ...pages.bzst },
  checks_by_vat_id: Object.fromEntries(
    [...pages.checksByVatId].filter(([key]) => vatId === undefined || key === vatId).map(([key, counts]) => [key, { ...counts }])
  ),
  dropped: pages.dropped,
  entries: pages.entries
    .filter((entry) => (source === undefined || entry.source === source) && (vatId === undefined || entry.vat_id === vatId))
    .map((entry) => ({ ...entry }))
})
