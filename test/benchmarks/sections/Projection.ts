/** Speed of a rebuild of a projection from the whole log (`vatproof projections rebuild event_index`). */
import { Array as Arr, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { logCatalogue } from "#app/layers/LogCatalogue.ts"
import * as ProjectionRebuild from "#events/log/projections/ProjectionRebuild.ts"
import * as EventIndex from "#events/audit/EventIndex.ts"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import * as ProcessorTime from "#test/benchmarks/ProcessorTime.ts"
import * as Report from "#test/benchmarks/Report.ts"
import * as LogDatabase from "#test/benchmarks/servers/LogDatabase.ts"

/** Maximum number of generated events. More events do not make the figures more stable. */
const eventsMax = 1_000_000

const rebuild = Effect.gen(function* () {
  const before = ProcessorTime.read({})
  yield* ProjectionRebuild.run(new Set([EventIndex.eventIndex]), [EventIndex.definition], () => Effect.void)
  return ProcessorTime.since(before).seconds
})

export const run = Effect.gen(function* () {
  const { events: wanted, rounds } = yield* BenchOptions
  const events = Math.min(wanted, eventsMax)
  const url = yield* LogDatabase.make("projection")
  yield* LogDatabase.fill(url, { events, keys: Math.ceil(events / 100), vatIds: Math.ceil(events / 10) })
  const speeds = yield* Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    return yield* Effect.forEach(Arr.range(1, rounds), () =>
      Effect.andThen(
        sql`TRUNCATE vatproof.event_index`,
        Effect.map(rebuild, (seconds) => events / seconds)
      )
    )
  }).pipe(Effect.provide(LogDatabase.administrator(url), { local: true }), Effect.provide(logCatalogue))
  const report: Report.SectionReport = {
    section: "projection",
    how: `event_index rebuilt from ${events} events; median of ${rounds} runs`,
    figures: [Report.atLeast("rebuild of a projection", Report.median(speeds), "events/s", 150_000)],
    details: [`events a second, each run: ${speeds.map(Report.digits).join("  ")}`]
  }
  return report
})
