/** The answer cache: `vatproof.latest` points to the event with the newest answer about each VAT ID, moved by the append itself. */
import { Effect, Exit, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { AnswerCache, latestKey, type StoredAnswer } from "#domain/AnswerCache.ts"
import { ReceiptIssued } from "#domain/Receipt.ts"
import { StoreUnavailable } from "#domain/StoreUnavailable.ts"
import type { VatId } from "#domain/VatId.ts"
import { VatIdVerified } from "#domain/Verification.ts"
import * as Batcher from "#events/Batcher.ts"
import * as Catalogue from "#events/Catalogue.ts"
import { logId } from "#events/Append.ts"
import { elementType, sqlArray } from "#events/SqlArray.ts"
import * as StoreAccess from "#events/StoreAccess.ts"

const patience = "3 seconds"
/** The events that carry a source's answer. */
const decodeVerified = Catalogue.decoder(VatIdVerified)
const decodeIssued = Catalogue.decoder(ReceiptIssued)

const answerOfVerdict = (data: string) => Effect.map(decodeVerified(data), ({ answer }) => answer)

/** A confirmation has no names of its own: the ones that VIES had disclosed before stay known. */
const answerOfReceipt = (data: string) =>
  Effect.map(decodeIssued(data), ({ answer, receipt: { result } }) => ({
    ...answer,
    company_name: answer.company_name ?? (result.official_name || null),
    company_address: answer.company_address ?? (result.official_address || null)
  }))

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const findNewest = SqlSchema.findAll({
    Request: Schema.Array(Schema.String),
    Result: Schema.Struct({ key: Schema.String, position: Schema.BigInt, type: Schema.String, data: Schema.String }),
    execute: (keys) => sql`SELECT l.key, e.position, e.type, e.data FROM vatproof.latest l
      JOIN vatproof.events e ON e.log_id = l.log_id AND e.position = l.position
      WHERE l.log_id = ${logId} AND l.key = ANY (${sqlArray(keys, elementType.text)})`
  })

  const run = Effect.fnUntraced(function* (keys: ReadonlyArray<string>) {
    const rows = yield* findNewest([...new Set(keys)]).pipe(StoreAccess.patientlyForMany(patience))
    const byKey = new Map(rows.map((row) => [row.key, row]))
    return keys.map((key) => Exit.succeed(byKey.get(key)))
  })

  const find = yield* Batcher.make({ run, maxBatch: 500, maxWaiting: 20_000, onFull: () => new StoreUnavailable({}) })

  const newest = Effect.fn("AnswerCache.newest")(function* (vatId: VatId) {
    const row = yield* find(latestKey(vatId))
    if (row === undefined) return Option.none<StoredAnswer>()
    const answer = yield* row.type === ReceiptIssued.type ? answerOfReceipt(row.data) : answerOfVerdict(row.data)
    return answer === null ? Option.none<StoredAnswer>() : Option.some({ position: Number(row.position), answer })
  })

  const ping = sql`SELECT 1`.pipe(StoreAccess.patiently("0 millis"), Effect.asVoid)

  return AnswerCache.of({ newest, ping })
})

export const layer = Layer.effect(AnswerCache, make)
