/** Time to read receipts of an API key that has up to 100,000: pages of the list, and one receipt as JSON, HTML and PDF. */
import { Array as Arr, Clock, DateTime, Effect, Schema } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { SqlClient, SqlSchema } from "effect/sql"
import { ReceiptIssued, receiptStream } from "#domain/receipts/Receipt.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import * as Report from "#test/benchmarks/Report.ts"
import * as LogDatabase from "#test/benchmarks/servers/LogDatabase.ts"
import * as Servers from "#test/benchmarks/servers/Servers.ts"
import { receiptsPath } from "#test/support/PaidKey.ts"
import { receiptRecord } from "#test/support/ReceiptRecords.ts"

const receiptsMax = 100_000
const vatIds = 1_000
const rounds = 200
/** Rounds of PDFs. They are fewer, because a PDF takes much longer than JSON. */
const pdfRounds = 20
const pageDepth = 100

const idOf = (index: number) => `VP-QC-20261121-${index.toString(36).toUpperCase().padStart(10, "0")}`
const targetOf = (index: number) => `DE${100_000_001 + (index % vatIds)}`

const answeredAt = "2026-11-21T01:33:04.564Z"

/** Returns the event of a receipt, as the service issues it. */
const receiptIssued = (index: number, keyId: string) => {
  const { accountId, evidence, receipt } = receiptRecord({ receiptId: idOf(index), target: targetOf(index) })
  const answered = {
    account_id: accountId,
    key_id: keyId,
    receipt,
    answer: {
      source: "bzst",
      valid: true,
      code: "evatr-0000",
      answered_at: DateTime.makeUnsafe(answeredAt),
      consultation_number: null,
      valid_from: null,
      valid_until: null
    },
    attempts: []
  } as const
  return ReceiptIssued.make(answered, {
    ...receipt.result,
    input: receipt.input,
    company_name: null,
    company_address: null,
    evidence: {
      request: evidence.request,
      response: evidence.response,
      response_sha256: evidence.responseSha256,
      http_status: evidence.httpStatus
    }
  })
}

const findKeyId = Effect.fnUntraced(function* (key: string) {
  const sql = yield* SqlClient.SqlClient
  const find = SqlSchema.findOne({
    Request: Schema.String,
    Result: Schema.Struct({ key_id: Schema.String }),
    execute: (secret) => sql`SELECT key_id FROM vatproof.api_keys WHERE key_sha256 = sha256(${secret}::text::bytea)`
  })
  return (yield* find(key)).key_id
})

/** Appends receipts without calling a source. */
const fill = Effect.fnUntraced(function* (key: string, count: number) {
  const { append } = yield* EventStore
  const keyId = yield* findKeyId(key)
  const one = (index: number) =>
    append({
      stream: receiptStream(idOf(index)),
      expectedVersion: 0,
      events: [receiptIssued(index, keyId)],
      charge: null
    })
  yield* Effect.forEach(
    Arr.makeBy(count, (index) => index),
    one,
    { concurrency: 1_000, discard: true }
  )
})

const Page = Schema.Struct({ next_cursor: Schema.NullOr(Schema.String) })
const decodePage = Schema.decodeUnknownEffect(Page)

export const run = Effect.gen(function* () {
  const { events } = yield* BenchOptions
  const count = Math.min(receiptsMax, Math.ceil(events / 10))
  const http = yield* HttpClient.HttpClient
  const url = yield* LogDatabase.make("receipts")
  const { port } = yield* Servers.service(url)
  const [key] = yield* Servers.register({ port }, 1)
  yield* Effect.provide(fill(key, count), LogDatabase.store(url), { local: true })

  const read = Effect.fnUntraced(function* (path: string, accept = "application/json") {
    const request = HttpClientRequest.get(`http://127.0.0.1:${port}${path}`, { headers: { "x-api-key": key, accept } })
    const response = yield* http.execute(request)
    if (response.status !== 200) return yield* Effect.die(`${path}: ${response.status}`)
    return response
  })

  /** Sends one request after the other. */
  const measure = Effect.fnUntraced(function* (name: string, pathOf: (round: number) => string, accept?: string, times = rounds) {
    const durations = yield* Effect.forEach(
      Arr.makeBy(times, pathOf),
      Effect.fnUntraced(function* (path) {
        const before = yield* Clock.currentTimeNanos
        yield* (yield* read(path, accept)).arrayBuffer
        return Number((yield* Clock.currentTimeNanos) - before) / 1e6
      })
    )
    return { name, p50: Report.median(durations), max: Math.max(...durations) }
  })

  const cursors: Array<string> = []
  while (cursors.length < pageDepth) {
    const after = cursors.at(-1)
    const page = yield* decodePage(
      yield* (yield* read(`${receiptsPath}?limit=100${after === undefined ? "" : `&cursor=${after}`}`)).json
    )
    if (page.next_cursor === null) break
    cursors.push(page.next_cursor)
  }
  const anyOf = (round: number) => `${receiptsPath}/${idOf((round * 7_919) % count)}`
  const results = [
    yield* measure("the first page, 20", () => receiptsPath),
    yield* measure(
      "a page far back, 100",
      (round) => `${receiptsPath}?limit=100&cursor=${cursors[round % cursors.length] ?? ""}`
    ),
    yield* measure("a page about one VAT ID, 100", (round) => `${receiptsPath}?limit=100&target_vat_id=${targetOf(round)}`),
    yield* measure("one receipt", anyOf),
    yield* measure("one receipt as a page to print", anyOf, "text/html"),
    yield* measure("one receipt as PDF", anyOf, "application/pdf", pdfRounds)
  ]
  const report: Report.SectionReport = {
    section: "receipts",
    how: `a key with ${count} receipts, one request after the other`,
    figures: results.map(({ name, p50 }) => Report.plain(`${name}, p50`, p50, "ms")),
    details: [Report.details(results, { "": ({ name }) => name, "p50 ms": ({ p50 }) => p50, "max ms": ({ max }) => max })]
  }
  return report
})
