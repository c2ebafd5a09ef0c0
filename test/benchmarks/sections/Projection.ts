/** Speed of a rebuild of each asynchronous projection from the whole log (`vatproof projections rebuild event_index`). */
import { Array as Arr, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { logCatalogue } from "#app/layers/LogCatalogue.ts"
import * as Storage from "#app/layers/Storage.ts"
import * as ProjectionRebuild from "#events/log/projections/ProjectionRebuild.ts"
import * as EventIndex from "#events/audit/EventIndex.ts"
import * as SourceHours from "#events/vat/SourceHours.ts"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import * as ProcessorTime from "#test/benchmarks/ProcessorTime.ts"
import * as Report from "#test/benchmarks/Report.ts"
import * as LogDatabase from "#test/benchmarks/servers/LogDatabase.ts"

/** Maximum number of generated events. More events do not make the figures more stable. */
const eventsMax = 1_000_000

const rebuild = Effect.fnUntraced(function* (name: string) {
  const before = ProcessorTime.read({})
  yield* ProjectionRebuild.run(new Set([name]), Storage.projections, () => Effect.void)
  return ProcessorTime.since(before).seconds
})

export const run = Effect.gen(function* () {
  const { events: wanted, rounds } = yield* BenchOptions
  const events = Math.min(wanted, eventsMax)
  const url = yield* LogDatabase.make("projection")
  yield* LogDatabase.fill(url, { events, keys: Math.ceil(events / 100), vatIds: Math.ceil(events / 10) })
  const { calls, index } = yield* Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const speedsOf = (name: string) =>
      Effect.forEach(Arr.range(1, rounds), () =>
        Effect.andThen(
          sql`TRUNCATE vatproof.${sql.literal(name)}`,
          Effect.map(rebuild(name), (seconds) => events / seconds)
        )
      )
    // The migration has registered both projections at position 0, and no service has advanced them.
    yield* sql`UPDATE vatproof.projections SET position = (SELECT next_position FROM vatproof.logs) WHERE position IS NOT NULL`
    return { index: yield* speedsOf(EventIndex.eventIndex), calls: yield* speedsOf(SourceHours.sourceHours) }
  }).pipe(Effect.provide(LogDatabase.administrator(url), { local: true }), Effect.provide(logCatalogue))
  const runs = (name: string, speeds: ReadonlyArray<number>) =>
    `${name}, events a second, each run: ${speeds.map(Report.digits).join("  ")}`
  const report: Report.SectionReport = {
    section: "projection",
    how: `event_index and source_hours rebuilt from ${events} events; median of ${rounds} runs`,
    figures: [
      Report.atLeast("rebuild of a projection", Report.median(index), "events/s", 150_000),
      Report.atLeast("rebuild of the calls of sources", Report.median(calls), "events/s", 100_000)
    ],
    details: [runs("event_index", index), runs("source_hours", calls)]
  }
  return report
})
