/**
 * What reading receipts costs when there are many: a page of the list, one receipt, and one as a page or PDF, from a key with 100,000 of
 * them. Run it with `TEST_DATABASE_URL=… node test/benchmarks/Receipts.ts` (a role that may create databases; the embedded Postgres
 * without it); `RECEIPTS` says how many. Nothing else runs it.
 */
import { NodeHttpClient, NodeRuntime, NodeServices } from "@effect/platform-node"
import { PgConnection } from "@effect/sql-pg"
import { Clock, Config, Context, DateTime, Effect, Layer, Option, Redacted, References, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { HttpClient, HttpClientRequest } from "effect/http"
import { SqlClient } from "effect/sql"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as App from "#app/app.ts"
import { receiptLists, ReceiptIssued, receiptStream } from "#domain/Receipt.ts"
import { EventStore } from "#events/EventStore.ts"
import * as AppConfig from "#infra/AppConfig.ts"
import * as EmbeddedPostgres from "#infra/EmbeddedPostgres.ts"
import * as Sandbox from "#infra/sandbox/Sandbox.ts"
import * as Postgres from "#infra/Postgres.ts"
import * as Randomness from "#infra/Randomness.ts"
import { receiptRecord } from "#test/support/ReceiptRecords.ts"

const port = 18_099
const base = `http://127.0.0.1:${port}`
const receiptsPath = "/v1/qualified-confirmations"
const rounds = 300
const vatIds = 1_000

class Database extends Context.Service<Database, { readonly url: Redacted.Redacted }>()("vatproof/benchmarks/Database") {}

/** A database of its own, dropped in the end. */
const database = Layer.effect(
  Database,
  Effect.gen(function* () {
    const given = yield* Config.option(Config.Redacted("TEST_DATABASE_URL"))
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "vatproof-benchmark-"))),
      (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
    )
    if (Option.isNone(given)) return yield* EmbeddedPostgres.make({ dir: folder })
    const url = new URL(Redacted.value(given.value))
    url.pathname = "/vatproof_receipts_benchmark"
    const execute = (statement: string) =>
      Effect.scoped(
        Effect.flatMap(PgConnection.make({ url: given.value }), (connection) => connection.query(statement, [], false))
      )
    yield* Effect.acquireRelease(execute(`CREATE DATABASE vatproof_receipts_benchmark TEMPLATE template0`), () =>
      execute(`DROP DATABASE vatproof_receipts_benchmark WITH (FORCE)`).pipe(Effect.catchTag("SqlError", Effect.die))
    )
    return { url: Redacted.make(url.href) }
  })
)

const Registered = Schema.Struct({ api_key: Schema.String })

const register = Effect.gen(function* () {
  const http = yield* HttpClient.HttpClient
  const request = HttpClientRequest.bodyJsonUnsafe(HttpClientRequest.post(`${base}/v1/register`), { agent_id: "benchmark" })
  const { api_key } = yield* Schema.decodeUnknownEffect(Registered)(yield* (yield* http.execute(request)).json)
  return api_key
})

const idOf = (index: number) => `VP-QC-20261121-${index.toString(36).toUpperCase().padStart(10, "0")}`

/** Appends receipts as the service would, without asking anybody. */
const fill = Effect.fnUntraced(function* (key: string, count: number) {
  const sql = yield* SqlClient.SqlClient
  const store = yield* EventStore
  const [row] = yield* sql`SELECT key_id FROM vatproof.api_keys WHERE key_sha256 = sha256(${key}::text::bytea)`
  const keyId = String(row?.["key_id"])
  yield* Effect.forEach(
    Array.from({ length: count }, (_, index) => index),
    (index) => {
      const target = `DE${100_000_000 + (index % vatIds)}`
      const { evidence, receipt } = receiptRecord({ receiptId: idOf(index), target })
      const event = ReceiptIssued.make({
        account_id: "benchmark",
        key_id: keyId,
        receipt,
        answer: {
          source: "bzst",
          valid: true,
          code: "evatr-0000",
          answered_at: DateTime.makeUnsafe("2026-11-21T01:33:04.564Z"),
          company_name: null,
          company_address: null,
          consultation_number: null,
          valid_from: null,
          valid_until: null,
          evidence: {
            request: evidence.request,
            response: evidence.response,
            response_sha256: evidence.responseSha256,
            http_status: evidence.httpStatus
          }
        },
        attempts: []
      })
      return store.append({
        stream: receiptStream(receipt.receipt_id),
        expectedVersion: 0,
        events: [event],
        charge: null,
        latestOf: `answer-${target}`,
        lists: receiptLists(keyId, target)
      })
    },
    { concurrency: 1_000, discard: true }
  )
})

/** Milliseconds of each round, one request after the other: median, 99th percentile and the slowest. */
const measure = Effect.fnUntraced(function* (
  name: string,
  key: string,
  pathOf: (round: number) => string,
  accept = "application/json",
  times = rounds
) {
  const http = yield* HttpClient.HttpClient
  const request = (round: number) => HttpClientRequest.get(`${base}${pathOf(round)}`, { headers: { "x-api-key": key, accept } })
  const durations: Array<number> = []
  for (let round = 0; round < times + 5; round += 1) {
    const started = yield* Clock.currentTimeNanos
    const response = yield* http.execute(request(round))
    yield* response.arrayBuffer
    const ended = yield* Clock.currentTimeNanos
    if (response.status !== 200) return yield* Effect.die(`${pathOf(round)}: ${response.status}`)
    if (round >= 5) durations.push(Number(ended - started) / 1e6)
  }
  const sorted = durations.toSorted((left, right) => left - right)
  const at = (part: number) => (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0).toFixed(1).padStart(7)
  console.log(`${name.padEnd(46)} median ${at(0.5)}  p99 ${at(0.99)}  max ${at(1)} ms`)
})

const program = Effect.gen(function* () {
  const count = yield* Config.Int("RECEIPTS").pipe(Config.withDefault(100_000))
  const key = yield* register
  const started = yield* Clock.currentTimeMillis
  yield* fill(key, count)
  const seconds = ((yield* Clock.currentTimeMillis) - started) / 1_000
  console.log(`${count} receipts appended in ${seconds.toFixed(1)} s\n`)
  const cursors: Array<string> = []
  const http = yield* HttpClient.HttpClient
  const Page = Schema.Struct({ next_cursor: Schema.NullOr(Schema.String) })
  let next: string | null = ""
  while (next !== null && cursors.length < 400) {
    if (next !== "") cursors.push(next)
    const url = `${base}${receiptsPath}?limit=100${next === "" ? "" : `&cursor=${next}`}`
    const response = yield* http.execute(HttpClientRequest.get(url, { headers: { "x-api-key": key } }))
    const page: typeof Page.Type = yield* Schema.decodeUnknownEffect(Page)(yield* response.json)
    next = page.next_cursor
  }
  const any = (round: number) => idOf((round * 7_919) % count)
  yield* measure("the first page, 20", key, () => receiptsPath)
  yield* measure("the first page, 100", key, () => `${receiptsPath}?limit=100`)
  yield* measure("a page far back, 100", key, (round) => `${receiptsPath}?limit=100&cursor=${cursors[round % cursors.length]}`)
  yield* measure(
    "a page about one VAT ID, 100",
    key,
    (round) => `${receiptsPath}?limit=100&target_vat_id=DE${100_000_000 + (round % vatIds)}`
  )
  yield* measure("one receipt", key, (round) => `${receiptsPath}/${any(round)}`)
  yield* measure("one receipt as a page", key, (round) => `${receiptsPath}/${any(round)}`, "text/html")
  yield* measure("one receipt as a PDF", key, (round) => `${receiptsPath}/${any(round)}`, "application/pdf", 30)
})

const platform = Layer.mergeAll(NodeServices.layer, SecureRandom.layerWebCrypto)

const running = Layer.unwrap(
  Effect.gen(function* () {
    const { url } = yield* Database
    const settings = {
      DATABASE_URL: Redacted.value(url),
      PORT: String(port),
      JWT_SECRET: "a secret for no longer than this lasts"
    }
    const config = Layer.effect(AppConfig.AppConfig, AppConfig.read(settings))
    const service = App.service(yield* Sandbox.Sandbox).pipe(Layer.provide(config))
    const store = EventStore.layer.pipe(
      Layer.provideMerge(Layer.merge(Postgres.layerAdministrator({ url, maxConnections: 4 }), Randomness.layer))
    )
    return Layer.provideMerge(store, service)
  })
)

NodeRuntime.runMain(
  program.pipe(
    Effect.provide(running),
    Effect.provide([database, Sandbox.layer({ host: "127.0.0.1", port: 0 }), NodeHttpClient.layerUndici]),
    Effect.provide(platform),
    Effect.provideService(References.MinimumLogLevel, "Error"),
    Effect.scoped
  )
)
