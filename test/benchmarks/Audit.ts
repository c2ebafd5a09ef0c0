/** How long the notary takes to sign a long log, and an audit to verify it: `node test/benchmarks/Audit.ts [events]`. */
import { NodeCrypto, NodeRuntime, NodeServices } from "@effect/platform-node"
import { Clock, Effect, FileSystem, Layer, Option, References } from "effect"
import { SqlClient } from "effect/sql"
import * as DatabaseAudit from "#events/audit/DatabaseAudit.ts"
import * as ExportAudit from "#events/audit/ExportAudit.ts"
import * as LogExport from "#events/audit/LogExport.ts"
import * as EventProofs from "#events/EventProofs.ts"
import { EventStore } from "#events/EventStore.ts"
import { LogCrypto } from "#events/log/LogCrypto.ts"
import { LogSigner } from "#events/LogSigner.ts"
import * as Notary from "#events/Notary.ts"
import { makeStep } from "#events/Projection.ts"
import * as EventPlaces from "#events/projections/EventPlaces.ts"
import { TreeStore } from "#events/TreeStore.ts"
import * as EmbeddedPostgres from "#infra/EmbeddedPostgres.ts"
import { logCrypto } from "#infra/LogCrypto.ts"
import * as Migrations from "#infra/Migrations.ts"
import * as Postgres from "#infra/Postgres.ts"
import * as Randomness from "#infra/Randomness.ts"
import { signerOf } from "#test/support/log/Keys.ts"
import * as SignedLog from "#test/support/SignedLog.ts"

const count = Number(process.argv[2] ?? "1000000")
const signer = signerOf("vatproof.example/log/0")

/** As a service would have written them: a hundredth receipts, the rest validations of a thousand keys, 1.2 kB each. */
const fill = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const answer = JSON.stringify({ http_status: 200, request: "x".repeat(300), response: "y".repeat(600) })
  yield* sql.unsafe(
    `INSERT INTO vatproof.events (log_id, position, stream_id, version, event_id, type, schema_version, occurred_at,
      recorded_at, correlation_id, trace_id, meter_id, units, data, metadata)
    SELECT 0, i, CASE WHEN i % 100 = 0 THEN 'receipt-VP-QC-20261121-' || lpad(i::text, 10, '0') ELSE 'key-00000000-0000-7000-8000-' || lpad((i % 1000)::text, 12, '0') END,
      CASE WHEN i % 100 = 0 THEN 1 ELSE i / 1000 + 1 END, gen_random_uuid(),
      CASE WHEN i % 100 = 0 THEN 'ReceiptIssued' ELSE 'VatIdVerified' END, 1,
      '2026-11-21T09:00:00Z'::timestamptz + i * interval '1 ms', '2026-11-21T09:00:00Z'::timestamptz + i * interval '1 ms',
      gen_random_uuid(), sha256(i::text::bytea)::bytea, NULL, 0,
      '{"answer":${answer},"vat_id":"DE' || lpad((i % 100000)::text, 9, '0') || '"}', '{"request_id":"' || i || '"}'
    FROM generate_series(0, ${count - 1}) AS i`.replace("sha256(i::text::bytea)::bytea", "decode(md5(i::text), 'hex')")
  ).unprepared
  yield* sql.unsafe(`UPDATE vatproof.logs SET next_position = ${count}, last_recorded_at = now()`)
  yield* sql.unsafe(
    `INSERT INTO vatproof.streams SELECT 0, stream_id, count(*), min(position), max(position) FROM vatproof.events GROUP BY stream_id`
  )
})

const timed = Effect.fnUntraced(function* <A, E, R>(name: string, effect: Effect.Effect<A, E, R>) {
  const start = yield* Clock.currentTimeMillis
  const cpu = process.cpuUsage()
  const result = yield* effect
  const ms = (yield* Clock.currentTimeMillis) - start
  const own = process.cpuUsage(cpu)
  const us = ((own.user + own.system) / count).toFixed(2)
  console.log(
    `${name.padEnd(40)} ${(ms / 1000).toFixed(1).padStart(8)} s  ${((ms * 1000) / count).toFixed(2)} µs an event, ${us} µs of own processor time`
  )
  return result
})

const measureProjection = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const projection = yield* EventPlaces.definition
  const step = yield* makeStep
  yield* sql`INSERT INTO vatproof.projections (log_id, name, version) VALUES (0, ${projection.name}, 1)`
  yield* timed("projected", Effect.repeat(step(projection, projection.name), { until: ({ position }) => position >= count }))
})

/** The slowest and the median of proofs all over the log. */
const measureProofs = Effect.gen(function* () {
  const proofs = yield* EventProofs.make
  const events = yield* EventStore
  const times: Array<number> = []
  for (let i = 0; i < 200; i += 1) {
    const [event] = yield* events.read(Math.floor((count / 200) * i), 1)
    const start = process.hrtime.bigint()
    const newest = Option.getOrThrow(yield* proofs.newest)
    if (event !== undefined) yield* proofs.prove(event, newest)
    times.push(Number(process.hrtime.bigint() - start) / 1e6)
  }
  const sorted = times.toSorted((one, other) => one - other)
  console.log(`a proof: ${sorted[100]?.toFixed(1)} ms in the median, ${sorted.at(-1)?.toFixed(1)} ms at most`)
})

const program = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const dir = yield* fs.makeTempDirectoryScoped({ prefix: "vatproof-benchmark-" })
  const { url } = yield* EmbeddedPostgres.make({ dir: `${dir}/postgres`, flags: ["-c", "fsync=off"] })
  yield* Effect.provide(
    Effect.andThen(Migrations.run(), timed("events made up", fill)),
    Postgres.layerAdministrator({ url, maxConnections: 1 })
  )
  const ground = TreeStore.layer.pipe(
    Layer.provideMerge(EventStore.layer),
    Layer.provideMerge(Postgres.layer({ url, maxConnections: 6 })),
    Layer.provideMerge(Layer.merge(Layer.succeed(LogCrypto, logCrypto), Randomness.layer))
  )
  const names = Layer.succeed(LogSigner, { origin: signer.name, signer: Option.some(signer) })
  yield* Effect.gen(function* () {
    const notary = Notary.layer({ signer, seen: Option.none(), seenAt: "", remember: () => Effect.void })
    yield* timed("signed by the notary", Effect.scoped(Effect.andThen(Layer.build(notary), SignedLog.untilSigned(count))))
    const report = yield* timed("audited", DatabaseAudit.run({ verifier: signer, notes: [], progress: () => Effect.void }))
    console.log(
      JSON.stringify({ ...report, findings: report.findings.slice(0, 3), memoryMB: Math.round(process.memoryUsage().rss / 1e6) })
    )
    yield* measureProjection
    yield* measureProofs
    const directory = `${dir}/export`
    const options = {
      directory,
      from: null,
      to: null,
      supplier: "",
      location: "",
      verifierKey: null,
      progress: () => Effect.void
    }
    yield* timed("exported", LogExport.run(options))
    const exportAudit = ExportAudit.run({ directory, verifier: signer, progress: () => Effect.void })
    const audited = yield* timed("export audited", exportAudit)
    console.log(`${audited.count} findings, ${Math.round(process.memoryUsage().rss / 1e6)} MB`)
  }).pipe(Effect.provide(Layer.merge(ground, names)))
}).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "Warn"))

NodeRuntime.runMain(program.pipe(Effect.provide([NodeServices.layer, NodeCrypto.layer, NodeCrypto.layerSecureRandom])))
