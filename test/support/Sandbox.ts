/** The sandbox with a journal of its calls: the newest calls in full, counters of all calls, and the maximum concurrency of checks. */
import { Clock, Context, DateTime, Effect, Layer, Stream, SubscriptionRef } from "effect"
import type { SourceName } from "#domain/vat/Verdict.ts"
import { type Arrival, type DecidedBy, type Finish, Observer } from "#infra/sandbox/Observer.ts"
import * as Simulation from "#infra/sandbox/Sandbox.ts"

/**
 * One call to a simulated source. `outcome` is the source's answer (`VALID`, `evatr-2001`, an error code) or the failure
 * (`reset`). `http_status` and `duration_ms` are null while the call is in flight. `http_status` is also null if the sandbox sent
 * nothing. `at` is ISO 8601 in UTC.
 */
export interface JournalEntry {
  readonly number: number
  readonly at: string
  readonly source: SourceName
  readonly endpoint: string
  readonly vat_id: string | null
  readonly requester: string | null
  readonly decided_by: DecidedBy
  readonly outcome: string
  readonly http_status: number | null
  readonly duration_ms: number | null
  /** The client disconnected, or the sandbox stopped, before the answer was complete. */
  readonly abandoned: boolean
}

interface Tally {
  readonly checks: number
  readonly probes: number
  readonly in_flight: number
  readonly concurrent_max: number
}

/**
 * The counters and calls since the last reset. `checks` counts validations, and `probes` counts all other calls to a source.
 * `in_flight` is the number of checks in flight now, and `concurrent_max` its maximum. `entries` are the newest calls, oldest
 * first. `dropped` is the number of older calls that are no longer in `entries`.
 */
export interface JournalView {
  readonly vies: Tally
  readonly bzst: Tally
  readonly checks_by_vat_id: Readonly<Record<string, Counts>>
  readonly dropped: number
  readonly entries: ReadonlyArray<JournalEntry>
}

/** Restricts counts or entries to a source, a VAT ID (with its prefix), or both. */
export interface Filter {
  readonly source?: SourceName | undefined
  readonly vatId?: string | undefined
}

/** Maximum number of entries kept in full. */
export const entriesMax = 1_000
/** Maximum number of VAT IDs with a counter. Calls for further VAT IDs count only in the totals. */
const vatIdsMax = 10_000
/** Maximum length of a recorded VAT ID. Any valid VAT ID is shorter; longer text is truncated. */
const textMax = 64

type Entry = { -readonly [Key in keyof JournalEntry]: JournalEntry[Key] }
type Counts = { vies: number; bzst: number }

const emptyState = () => ({
  entries: new Array<Entry>(),
  dropped: 0,
  vies: { checks: 0, probes: 0, in_flight: 0, concurrent_max: 0 },
  bzst: { checks: 0, probes: 0, in_flight: 0, concurrent_max: 0 },
  checksByVatId: new Map<string, Counts>()
})
type JournalState = ReturnType<typeof emptyState>

/** Creates an empty journal. Its state is mutable and private; each change is one synchronous step. */
const makeJournal = Effect.gen(function* () {
  const changes = yield* SubscriptionRef.make(0)
  const changed = SubscriptionRef.update(changes, (count) => count + 1)
  let state = emptyState()

  const begin = Effect.fnUntraced(function* (arrival: Arrival) {
    const startedMs = yield* Clock.currentTimeMillis
    const current = state
    const entry = write(current, arrival, startedMs)
    const leave = enter(current, arrival)
    yield* changed
    const finish: Finish = Effect.fnUntraced(function* (httpStatus, abandoned) {
      entry.duration_ms = (yield* Clock.currentTimeMillis) - startedMs
      entry.http_status = httpStatus
      entry.abandoned = abandoned
      leave()
      yield* changed
    })
    return finish
  })

  return {
    begin,
    /** Returns the number of checks that have arrived. */
    checks: (filter: Filter) => Effect.sync(() => countChecks(state, filter)),
    view: (filter: Filter) => Effect.sync(() => viewOf(state, filter)),
    /** Clears all entries and counters. A call that is still in flight gets no entry afterwards. */
    clear: Effect.suspend(() => {
      state = emptyState()
      return changed
    }),
    /** Waits until the condition holds. Evaluates it at once and whenever a call begins or ends. */
    until: (condition: (view: JournalView) => boolean): Effect.Effect<void> =>
      SubscriptionRef.changes(changes).pipe(
        Stream.filter(() => condition(viewOf(state, {}))),
        Stream.take(1),
        Stream.runDrain
      )
  }
})
type Journal = Effect.Success<typeof makeJournal>

/** A running sandbox whose calls a test can read. */
export class Sandbox extends Context.Service<
  Sandbox,
  Simulation.Sandbox["Service"] & {
    /** Returns the number of checks received, without probes. `filter` limits the number to one source or one VAT ID. */
    readonly checks: (filter?: Filter) => Effect.Effect<number>
    readonly journal: (filter?: Filter) => Effect.Effect<JournalView>
    /** Waits until the journal meets the condition, e.g. until a hanging request has arrived. */
    readonly until: Journal["until"]
  }
>()("vatproof/test/Sandbox") {}

/** Starts the sandbox. It stops when the scope closes. */
export const make = Effect.fnUntraced(function* (options: Simulation.Options) {
  const journal = yield* makeJournal
  const simulation = yield* Effect.provideService(Simulation.make(options), Observer, journal.begin)
  return Sandbox.of({
    ...simulation,
    checks: (filter = {}) => journal.checks(filter),
    journal: (filter = {}) => journal.view(filter),
    until: journal.until,
    reset: Effect.andThen(simulation.reset, journal.clear)
  })
})

export const layer = (options: Simulation.Options) => Layer.effect(Sandbox, make(options))

const write = (state: JournalState, arrival: Arrival, startedMs: number): Entry => {
  const entry: Entry = {
    number: state.dropped + state.entries.length + 1,
    at: DateTime.formatIso(DateTime.makeUnsafe(startedMs)),
    source: arrival.source,
    endpoint: arrival.endpoint,
    vat_id: arrival.vatId?.slice(0, textMax) ?? null,
    requester: arrival.requester?.slice(0, textMax) ?? null,
    decided_by: arrival.by,
    outcome: arrival.outcome,
    http_status: null,
    duration_ms: null,
    abandoned: false
  }
  state.entries.push(entry)
  if (state.entries.length > entriesMax) {
    state.entries.shift()
    state.dropped += 1
  }
  return entry
}

/** Adds a call and returns the function that ends it. */
const enter = (state: JournalState, arrival: Arrival): (() => void) => {
  const tally = state[arrival.source]
  if (arrival.probe) {
    tally.probes += 1
    return () => {}
  }
  tally.checks += 1
  tally.in_flight += 1
  tally.concurrent_max = Math.max(tally.concurrent_max, tally.in_flight)
  countVatId(state, arrival)
  return () => {
    tally.in_flight -= 1
  }
}

const countVatId = (state: JournalState, arrival: Arrival): void => {
  const vatId = arrival.vatId?.slice(0, textMax)
  if (vatId === undefined || (!state.checksByVatId.has(vatId) && state.checksByVatId.size >= vatIdsMax)) return
  const counts = state.checksByVatId.get(vatId) ?? { vies: 0, bzst: 0 }
  state.checksByVatId.set(vatId, counts)
  counts[arrival.source] += 1
}

const countChecks = (state: JournalState, { source, vatId }: Filter): number => {
  const counts: Counts =
    vatId === undefined
      ? { vies: state.vies.checks, bzst: state.bzst.checks }
      : (state.checksByVatId.get(vatId) ?? { vies: 0, bzst: 0 })
  return source === undefined ? counts.vies + counts.bzst : counts[source]
}

const viewOf = (state: JournalState, { source, vatId }: Filter): JournalView => ({
  vies: { ...state.vies },
  bzst: { ...state.bzst },
  checks_by_vat_id: Object.fromEntries(
    [...state.checksByVatId].filter(([key]) => vatId === undefined || key === vatId).map(([key, counts]) => [key, { ...counts }])
  ),
  dropped: state.dropped,
  entries: state.entries
    .filter((entry) => (source === undefined || entry.source === source) && (vatId === undefined || entry.vat_id === vatId))
    .map((entry) => ({ ...entry }))
})
