/**
 * The scrubber verifies the whole log repeatedly at a low rate, on one replica at a time. It compares each event with its stored
 * leaf hash, each tile with the tile above it, and the root of the tree with the newest checkpoint. All other checks are those of
 * `vatproof audit verify`: first of the schema, then of the personal documents, at the end of a pass of the projections and of rows
 * outside of the log. A finding raises an alert; `vatproof audit verify` gives the details.
 */
import { Clock, Duration, Effect, Layer, Metric, Option, Result, Schedule, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import * as Metrics from "#domain/telemetry/Metrics.ts"
import { Integrity } from "#domain/log/Integrity.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import * as Worker from "#domain/concurrency/Worker.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import * as AuditReads from "#events/log/verify/AuditReads.ts"
import * as DatabaseAudit from "#events/log/verify/DatabaseAudit.ts"
import * as DocumentAudit from "#events/log/verify/DocumentAudit.ts"
import * as Findings from "#events/log/verify/Findings.ts"
import { TableProjections } from "#events/log/projections/TableProjection.ts"
import * as ProjectionAudit from "#events/log/verify/ProjectionAudit.ts"
import * as SubjectCheck from "#events/log/verify/SubjectCheck.ts"
import * as SchemaAudit from "#events/log/verify/SchemaAudit.ts"
import { eventIndex } from "#events/audit/EventIndex.ts"
import * as LeafHashes from "#events/log/notary/LeafHashes.ts"
import * as Checkpoint from "#events/log/merkle/Checkpoint.ts"
import { append, empty, equalHashes, type Hash, root } from "#events/log/merkle/MerkleTree.ts"
import { parse as parseNote } from "#events/log/merkle/SignedNote.ts"
import { hashesIn, type Tile, tileWidth, widthAt } from "#events/log/merkle/Tiles.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import { TreeStore } from "#events/log/notary/TreeStore.ts"

/**
 * The speed of the scrubber. It verifies the events of `tiles` tiles, pauses for `every`, and verifies the next tiles. After a pass
 * over the whole log it pauses for `rest`.
 */
export interface ScrubPace {
  readonly tiles: number
  readonly every: Duration.Duration
  readonly rest: Duration.Duration
}

/**
 * At this speed the scrubber verifies a million events in 40 minutes. Two tiles take about 10 ms of work in the database and on the
 * replica, which is less than 1 % of a CPU core.
 */
export const usualPace: ScrubPace = { tiles: 2, every: Duration.millis(1_200), rest: Duration.minutes(10) }

const retryFor = "3 seconds"
/** The scrubber stores its progress after this number of steps. One step verifies `ScrubPace.tiles` tiles. */
const keepEvery = 16
/** Duration of the scrubber's lease. After a lease has expired, another replica continues from the stored progress. */
const leaseMs = 120_000
/**
 * During a pass the scrubber compares the search index with the log at this interval, or after nine times the duration of the comparison.
 * Between two passes it makes no comparison. So an omission from the index is found after `ScrubPace.rest` and two comparisons at the latest.
 */
const indexEvery = Duration.minutes(5)
/** Maximum number of findings that one pass of the scrubber logs. */
const loggedAtMost = 20

const position = Metrics.gauge("vatproof.scrub.position", {
  unit: "{event}",
  description: "Events that the current check of the stored log has verified"
})()
const findings = Metrics.gauge("vatproof.scrub.findings", {
  unit: "{finding}",
  description: "Defects found by the current check of the stored log; between two checks, by the last check"
})()
const completed = Metrics.gauge("vatproof.scrub.completed", {
  unit: "s",
  description: "When the last check of the whole stored log ended, in seconds since 1970"
})()

/** Creates the functions that claim the lease of the scrubber and store its progress. */
const makeLease = Effect.fnUntraced(function* (holder: string) {
  const sql = yield* SqlClient.SqlClient
  const lease = sql`clock_timestamp() + ${leaseMs} * interval '1 millisecond'`
  const claim = SqlSchema.findAll({
    Request: Schema.Void,
    Result: Schema.Struct({ position: Schema.BigInt }),
    execute: () => sql`UPDATE vatproof.scrubs SET holder = ${holder}::uuid, held_until = ${lease}
      WHERE log_id = ${logId} AND (holder = ${holder}::uuid OR held_until < clock_timestamp()) RETURNING position`
  })
  return {
    claim: Effect.suspend(() => claim(undefined)).pipe(
      QueryPolicy.withRetry(retryFor),
      Effect.map(([row]) => (row === undefined ? Option.none<number>() : Option.some(Number(row.position))))
    ),
    keep: (at: number) =>
      sql`UPDATE vatproof.scrubs SET position = ${BigInt(at)}, held_until = ${lease}
        WHERE log_id = ${logId} AND holder = ${holder}::uuid`.pipe(QueryPolicy.withRetry(retryFor))
  }
})

/**
 * Creates a function that verifies the events and tiles of a range of positions, and returns its findings. `signed` is the number
 * of signed events in the log.
 */
const makeVerifyTiles = Effect.gen(function* () {
  const { sha256 } = yield* Crypto
  const leafHashes = yield* LeafHashes.make
  const { readTiles } = yield* TreeStore
  const nodeOf = (tile: ReadonlyArray<Hash>) => root(sha256, append(sha256, empty, tile).tree)

  /**
   * Computes the root of a full tile, and compares it with the stored hash in the tile above. If this hash is the last one of the
   * tile above, continues with that tile.
   */
  const verifyAbove = Effect.fnUntraced(function* (tile: Tile, hashes: ReadonlyArray<Hash>, signed: number) {
    let below = { ...tile, hashes }
    while (below.hashes.length === tileWidth) {
      const level = below.level + 1
      const index = Math.floor(below.index / tileWidth)
      const [stored = new Uint8Array()] = yield* readTiles([{ level, index, width: widthAt(signed, level, index) }])
      const above = hashesIn(stored)
      if (!equalHashes(above[below.index % tileWidth] ?? new Uint8Array(), nodeOf(below.hashes)))
        return [`The stored tree is wrong in tile ${level}/${index}`]
      if (below.index % tileWidth !== tileWidth - 1) return []
      below = { level, index, width: above.length, hashes: above }
    }
    return []
  })

  return Effect.fnUntraced(function* (from: number, to: number, signed: number) {
    const indexes = Array.from({ length: Math.ceil((to - from) / tileWidth) }, (_, i) => from / tileWidth + i)
    const tiles = indexes.map((index) => ({ level: 0, index, width: widthAt(signed, 0, index) }))
    const stored = (yield* readTiles(tiles)).map(hashesIn)
    const events = yield* leafHashes({ from, to }).pipe(
      Effect.catchTag(["MissingEvent", "MalformedEnvelope"], ({ message }) => Effect.succeed(message))
    )
    if (typeof events === "string") return [events]
    const leaves = stored.flat()
    const wrong = events
      .flatMap((hash, i) => (equalHashes(hash, leaves[i] ?? new Uint8Array()) ? [] : [from + i]))
      .map((at) => `The event at position ${at} differs from the signed event`)
    const above = yield* Effect.forEach(tiles, (tile, i) => verifyAbove(tile, stored[i] ?? [], signed))
    return [...wrong, ...above.flat()]
  })
})

/** Compares the root of the stored tree with the newest checkpoint. The notary verifies the signature of the checkpoint. */
const makeVerifyTop = Effect.gen(function* () {
  const { sha256 } = yield* Crypto
  const tree = yield* TreeStore
  return Effect.gen(function* () {
    const newest = Option.getOrNull(yield* tree.newest)
    if (newest === null) return { signed: 0, wrong: [] }
    const { size } = newest
    const checkpoint = Option.getOrNull(
      Result.getSuccess(Result.flatMap(parseNote(newest.note), ({ text }) => Checkpoint.parse(text)))
    )
    const top = yield* tree.treeOf(size, size).pipe(
      Effect.map((whole) => root(sha256, whole)),
      Effect.catchTag("IncompleteTile", () => Effect.succeed(new Uint8Array()))
    )
    const fits = checkpoint !== null && checkpoint.size === size && equalHashes(top, checkpoint.root)
    return { signed: size, wrong: fits ? [] : [`The stored tree does not match the signed checkpoint of ${size} events`] }
  })
})

/** Returns the text of a finding. It omits the keys of rows of projections, which may be personal data. */
const textOf = ({ message, position: at, table }: Findings.Finding) => {
  const where = at === null ? "" : ` at position ${at}`
  if (table === undefined) return `Wrong${where}: ${message}`
  return table === "schema" ? `The ${message}` : `The projection ${table} is wrong${where}`
}

/** Creates the checks that `audit verify` makes as well. They add to the findings of a pass. */
const makeAudit = Effect.fnUntraced(function* (schema: SchemaAudit.Comparison) {
  const crypto = yield* Crypto
  const reads = yield* AuditReads.make
  const subjects = yield* SubjectCheck.all
  return (found: Findings.Findings, isWhole: boolean) => {
    const documents = DocumentAudit.make(crypto, found)
    const compareSubjects = subjects.make({ crypto, findings: found, begins: isWhole })
    return {
      schema: SchemaAudit.run(schema, found),
      documents: (from: number, to: number) =>
        Effect.map(
          Effect.all([reads.eventsWithDocuments(from, to, subjects.types), reads.documents(from, to)]),
          ([events, rows]) => {
            documents.compareAll(events, rows)
            events.forEach(compareSubjects)
          }
        ),
      /** Compares erasures and legal holds. The pass must have compared all documents before position `end`. */
      erasures: (end: number) => Effect.map(reads.head, (head) => documents.conclude(end, head)),
      index: ProjectionAudit.run(found, (table) => table === eventIndex),
      tables: Effect.flatMap(reads.head, (head) => DatabaseAudit.compareTables(reads, head, found)).pipe(
        Effect.andThen(ProjectionAudit.run(found))
      )
    }
  }
})

/**
 * Creates a function that runs one pass from the stored progress to the end of the log. It returns the number of findings, or null if
 * another replica holds the lease.
 */
export const makePass = Effect.fnUntraced(function* ({ every, tiles }: ScrubPace, schema: SchemaAudit.Comparison) {
  const crypto = yield* Crypto
  const lease = yield* makeLease(crypto.uuidV7())
  const verifyTiles = yield* makeVerifyTiles
  const verifyTop = yield* makeVerifyTop
  const auditOf = yield* makeAudit(schema)
  const sql = yield* SqlClient.SqlClient
  const tables = yield* TableProjections
  const integrity = yield* Integrity
  const batchSize = tiles * tileWidth

  return Effect.gen(function* () {
    const claimed = Option.getOrNull(yield* lease.claim)
    if (claimed === null) return null
    let count = 0
    const report = Effect.fnUntraced(function* (wrong: ReadonlyArray<string>) {
      for (const finding of wrong) {
        count += 1
        yield* integrity.reportAltered("scrub", finding)
        if (count <= loggedAtMost)
          yield* Effect.logError(`The check of the stored log found a defect: ${finding}. Run "vatproof audit verify"`)
      }
      yield* Metric.update(findings, count)
    })
    const found = Findings.make()
    const { signed, wrong } = yield* verifyTop
    const start = claimed < signed ? claimed : 0
    const audit = auditOf(found, start === 0)
    let told = 0
    const reportFound = Effect.suspend(() => {
      const news = found.list().slice(told)
      told += news.length
      return report(news.map(textOf))
    })
    yield* report(wrong)
    yield* Effect.andThen(audit.schema, reportFound)
    const verifyAll = Effect.gen(function* () {
      let from = start
      for (let batches = 1; from < signed; batches += 1) {
        const to = Math.min(from + batchSize, signed)
        yield* report(yield* verifyTiles(from, to, signed))
        yield* Effect.andThen(audit.documents(from, to), reportFound)
        from = to
        yield* Metric.update(position, from)
        if (batches % keepEvery === 0) yield* lease.keep(from - (from % tileWidth))
        yield* Effect.sleep(every)
      }
    })
    const verifyIndex = Effect.timed(audit.index).pipe(
      Effect.tap(() => reportFound),
      Effect.flatMap(([took]) => Effect.sleep(Duration.max(indexEvery, Duration.times(took, 9)))),
      Effect.repeat({ while: () => count === 0 }),
      Effect.andThen(Effect.never)
    )
    yield* Effect.raceFirst(verifyAll, verifyIndex)
    yield* lease.keep(0)
    if (start === 0) yield* audit.erasures(signed)
    // The comparison of the projections can take longer than the lease. Therefore the scrubber renews the lease during the
    // comparison.
    const renewal = Effect.forever(Effect.delay(lease.keep(0), leaseMs / 4))
    yield* Effect.andThen(Effect.raceFirst(audit.tables, renewal), reportFound)
    yield* Metric.update(completed, (yield* Clock.currentTimeMillis) / 1000)
    return count
  }).pipe(Effect.provideService(SqlClient.SqlClient, sql), Effect.provideService(TableProjections, tables))
})

/** Runs the scrubber in the background. If the database is unavailable, the next pass continues from the stored progress. */
export const layer = (pace: ScrubPace, schema: SchemaAudit.Comparison) =>
  Layer.effectDiscard(
    Effect.flatMap(makePass(pace, schema), (pass) =>
      Worker.loop("The check of the stored log", pass, { schedule: Schedule.spaced(pace.rest) })
    )
  )
