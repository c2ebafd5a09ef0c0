/**
 * Kills the erasure command or Postgres during erasures. A document must be deleted if and only if a PersonalDataErased event records it.
 */
import { Clock, Effect, Random, type Redacted, Schedule, Schema } from "effect"
import { SqlClient } from "effect/sql"
import * as Postgres from "#infra/postgres/Postgres.ts"
import * as PostgresServer from "#test/faults/PostgresServer.ts"
import * as Scenario from "#test/faults/Scenario.ts"
import type { ServiceClient } from "#test/support/ServiceClient.ts"
import * as Rows from "#test/support/Rows.ts"

const kills = 20
/** Number of personal documents per VAT ID. One PersonalDataErased event covers 100 of them. */
const documents = 300

const vatIds = Array.from({ length: kills + 1 }, (_, index) => `ATU1234${String(5_000 + index * 7)}`)

const State = Schema.Struct({
  /** Documents that were deleted although no event records their erasure. */
  without_event: Schema.Int,
  /** Documents that exist although an event records their erasure. */
  still_there: Schema.Int,
  /** Cached answers that still contain erased data. */
  shown: Schema.Int,
  erased: Schema.Int,
  kept: Schema.Int
})

/** Runs a query as the administrator, on a connection of its own. */
const on = <A, E>(url: Redacted.Redacted, query: Effect.Effect<A, E, SqlClient.SqlClient>) =>
  Effect.provide(query, Postgres.layerAdministrator({ url, maxConnections: 1 }), { local: true })

const stateOf = (url: Redacted.Redacted) =>
  on(
    url,
    Effect.gen(function* () {
      return yield* Rows.one(
        State.fields,
        (sql) => sql`WITH recorded AS (SELECT jsonb_array_elements_text(vatproof.json_of(data) -> 'positions')::bigint AS position
            FROM vatproof.events WHERE type = 'PersonalDataErased'),
          documents AS (SELECT d.position, d.document IS NULL AS is_gone, s.position IS NOT NULL AS is_recorded
            FROM vatproof.personal_documents d LEFT JOIN recorded s USING (position))
          SELECT count(*) FILTER (WHERE is_gone AND NOT is_recorded)::int AS without_event,
            count(*) FILTER (WHERE is_recorded AND NOT is_gone)::int AS still_there,
            (SELECT count(*) FROM vatproof.latest l JOIN recorded USING (position) WHERE l.answer::json ->> 'company_name' IS NOT NULL)::int AS shown,
            count(*) FILTER (WHERE is_gone)::int AS erased, count(*) FILTER (WHERE NOT is_gone)::int AS kept FROM documents`
      )
    })
  )

/** Waits until the erasure command appends, and then `ms` milliseconds. */
const waitForAppend = (url: Redacted.Redacted, ms: number) =>
  on(
    url,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const others = sql`SELECT FROM pg_stat_activity WHERE query LIKE '%append(%' AND pid <> pg_backend_pid()`
      yield* Effect.repeat(others, { until: (rows) => rows.length > 0, schedule: Schedule.spaced("1 millis") })
      yield* Effect.delay(Effect.void, ms)
    })
  )

const eraseArguments = (vatId: string) => ["personal-data", "erase", vatId, "--reason", "request under Art. 17", "--by", "faults"]

const fill = Effect.fnUntraced(function* (service: ServiceClient) {
  const key = yield* service.newKey
  const requests = vatIds.flatMap((vatId) =>
    Array.from({ length: documents }, (_, index) => ({ vatId, reference: `INV-${index}` }))
  )
  const ask = ({ reference, vatId }: (typeof requests)[number]) => service.validate(vatId, { key, query: { reference } })
  yield* Effect.forEach(requests, ask, { concurrency: 16, discard: true })
})

/** Kills every process of the server at once, like a power failure. */
const killServer = Effect.fnUntraced(function* (server: PostgresServer.PostgresServer) {
  for (const pid of yield* server.processes) yield* Effect.try(() => process.kill(Number(pid), "SIGKILL")).pipe(Effect.ignore)
  // Postgres cannot start until its last killed process has exited.
  yield* Effect.retry(server.start, { times: 50, schedule: Schedule.spaced("200 millis") })
})

/** Starts an erasure and kills the command or the server `ms` milliseconds after the first append. Returns the resulting state. */
const trial = Effect.fnUntraced(function* (server: PostgresServer.PostgresServer, index: number, ms: number) {
  const before = yield* stateOf(server.url)
  const erasing = yield* Scenario.start(server.url, ...eraseArguments(vatIds[index] ?? ""))
  yield* waitForAppend(server.url, ms)
  yield* Effect.ignore(index % 2 === 0 ? erasing.kill() : Effect.andThen(killServer(server), erasing.kill()))
  const state = yield* stateOf(server.url)
  return { state, erased: state.erased - before.erased }
}, Effect.scoped)

const summaryOf = (erased: ReadonlyArray<number>) =>
  Array.from(Map.groupBy(erased, (count) => count))
    .toSorted(([one], [other]) => one - other)
    .map(([count, those]) => `${those.length} × ${count}`)
    .join(", ")

/** Interrupts twenty erasures of 300 documents: ten by a kill of the command, ten by a kill of all processes of Postgres. */
export const killed = Effect.gen(function* () {
  const server = yield* PostgresServer.make()
  yield* Effect.scoped(Effect.flatMap(Scenario.replica(server.url), fill))
  // Measures the duration of an uninterrupted erasure.
  const whole = yield* Effect.scoped(
    Effect.gen(function* () {
      yield* Scenario.start(server.url, ...eraseArguments(vatIds[kills] ?? ""))
      yield* waitForAppend(server.url, 0)
      const from = yield* Clock.currentTimeMillis
      yield* Effect.repeat(stateOf(server.url), { until: ({ erased }) => erased >= documents })
      return (yield* Clock.currentTimeMillis) - from
    })
  )
  const trials = yield* Effect.forEach(vatIds.slice(0, kills), (_, index) =>
    Effect.flatMap(Random.nextIntBetween(0, Math.ceil(whole / 3)), (ms) => trial(server, index, ms))
  )
  const violations = trials.filter(({ state }) => state.without_event + state.still_there + state.shown > 0)
  const again = yield* Effect.forEach(vatIds, (vatId) => Scenario.command(server.url, ...eraseArguments(vatId)), {
    concurrency: 2
  })
  const last = yield* stateOf(server.url)
  const report: Scenario.Trial = {
    claims: [
      {
        statement: `a document is deleted if and only if an event records its erasure (${violations.length} violations in ${kills} kills)`,
        holds: violations.length === 0
      },
      {
        statement: `a repetition of the commands erases the remaining documents: ${last.kept} of ${vatIds.length * documents} documents are left`,
        holds:
          again.every(({ code }) => code === 0) && last.kept === 0 && last.erased >= vatIds.length * documents && last.shown === 0
      },
      yield* Scenario.audit(server.url)
    ],
    notes: [
      `killed up to ${Math.ceil(whole / 3)} ms after the first append; documents erased by then: ${summaryOf(trials.map(({ erased }) => erased))}`
    ]
  }
  return report
})
