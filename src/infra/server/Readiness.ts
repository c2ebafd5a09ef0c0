/**
 * Whether this replica is ready for requests. It is ready from the moment it listens until it is told to stop, as long as its
 * database answers.
 */
import { statfs } from "node:fs"
import { Context, Deferred, Effect, Layer, MutableRef, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { Integrity, type IntegrityReport } from "#domain/log/Integrity.ts"
import { DatabaseFull } from "#domain/kernel/DatabaseFull.ts"
import { AppConfig } from "#infra/config/AppConfig.ts"
import { Draining } from "#infra/server/Draining.ts"

/**
 * `database` and `dataDir` are `unknown` before the service has started. `full`, `notary` and `altered` (Integrity.ts) are reports for
 * operators. They do not affect readiness, because all replicas have the same log, and a replica with a full disk still reads.
 */
export interface ReadinessReport extends IntegrityReport {
  readonly service: "starting" | "serving" | "stopping"
  readonly database: "ok" | "full" | "away" | "unknown"
  readonly dataDir: "ok" | "full" | "unknown"
}

type StorageCheck = Effect.Effect<Pick<ReadinessReport, "database" | "dataDir">>

const make = Effect.gen(function* () {
  const { begun } = yield* Draining
  const integrity = yield* Integrity
  const storage = MutableRef.make<StorageCheck | null>(null)
  const report = Effect.gen(function* () {
    const check = storage.current
    const problems = yield* integrity.report
    if (check === null) {
      return { ...problems, service: "starting", database: "unknown", dataDir: "unknown" } satisfies ReadinessReport
    }
    const service = (yield* Deferred.isDone(begun)) ? "stopping" : "serving"
    return { ...problems, service, ...(yield* check) } satisfies ReadinessReport
  })
  return { report, serve: (check: StorageCheck) => Effect.sync(() => MutableRef.set(storage, check)) }
})

export class Readiness extends Context.Service<Readiness, Effect.Success<typeof make>>()("vatproof/infra/server/Readiness") {
  static readonly layer = Layer.effect(Readiness, make)
}

/** Timeout of each check: a slower database cannot serve requests. */
const timeout = "2 seconds"
/** A disk with less space than this is full, although a small file may still fit. */
const leastSpace = 1_024 * 1_024

/** Checks the space for DATA_DIR, where the service writes its newest checkpoint, and without SMTP_URL its mails. */
const checkFolder = (folder: string) =>
  Effect.callback<ReadinessReport["dataDir"]>((resume) =>
    // Without the folder this replica has written nothing there.
    statfs(folder, (error, space) =>
      resume(Effect.succeed(error === null && space.bavail * space.bsize < leastSpace ? "full" : "ok"))
    )
  ).pipe(Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.succeed("unknown" as const) }))

/**
 * Checks that the database is reachable and migrated. The check reads the row of the log, which the first migration creates. One
 * row is enough, because the service applies all migrations at its start.
 */
const makeCheck = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const isFull = yield* DatabaseFull
  const { dataDir } = yield* AppConfig
  const findLog = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ found: Schema.Int }),
    execute: () => sql`SELECT 1 AS found FROM vatproof.logs WHERE log_id = 0`
  })
  const database = findLog(undefined).pipe(
    Effect.map(() => (isFull.current ? "full" : "ok")),
    Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.succeed("away" as const) }),
    Effect.catchTag(["SqlError", "SchemaError", "NoSuchElementError"], () => Effect.succeed("away" as const))
  )
  return Effect.all({ database, dataDir: checkFolder(dataDir) }, { concurrency: 2 })
})

/** Marks the service as listening. */
export const layerServing = Layer.effectDiscard(
  Effect.gen(function* () {
    const { serve } = yield* Readiness
    yield* serve(yield* makeCheck)
  })
)
