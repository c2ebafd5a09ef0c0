/**
 * Finds, erases and holds the personal documents of a VAT ID, a receipt or an account. Each change is recorded by an event.
 */
import { Array as Arr, Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema, type Statement } from "effect/sql"
import {
  maxPositions,
  PersonalDataErased,
  PersonalDataHeld,
  PersonalDataReleased,
  personalDataStream
} from "#domain/log/PersonalData.ts"
import { PersonalDataShown } from "#domain/audit/PersonalDataShown.ts"
import { BatchItemsDocument } from "#domain/pending/Batch.ts"
import { receiptStream } from "#domain/receipts/Receipt.ts"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import type { DomainEvent } from "#domain/log/DomainEvent.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import { makeChange } from "#events/log/personal/DocumentChanges.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"

/** Number of positions that one statement of a search reads. */
const searchStep = 200_000
/** Timeout of a statement, which is also the time for which it is retried. */
const retryFor = "30 seconds"
/** Maximum attempts of a change. An attempt fails if the same documents are changed concurrently. */
const maxAttempts = 5

/** Selects personal documents: about a VAT ID, of one receipt, or of all calls of an account. */
export type PersonalSubject =
  | { readonly _tag: "VatId"; readonly vatId: string }
  | { readonly _tag: "Receipt"; readonly receiptId: string }
  | { readonly _tag: "Account"; readonly accountId: string }

/**
 * A personal document. `document` is null once erased. `changed_by` is the position of the last event that erased the document, put it
 * on hold so that it is not erased, or ended the hold. `vat_ids` are the VAT IDs of the items if the document belongs to a chunk of a batch.
 */
const Row = Schema.Struct({
  position: Schema.BigInt,
  type: Schema.String,
  stream_id: Schema.String,
  vat_id: Schema.NullOr(Schema.String),
  vat_ids: Schema.NullOr(Schema.Array(Schema.NullOr(Schema.String))),
  recorded_at: Schema.DateTimeUtcFromDate,
  document: Schema.NullOr(Schema.String),
  retain_until: Schema.DateTimeUtcFromDate,
  is_held: Schema.Boolean,
  changed_by: Schema.NullOr(Schema.BigInt)
})
export type PersonalRow = typeof Row.Type

const make = Effect.gen(function* () {
  const { appendFact } = yield* EventStore
  const find = yield* makeFind
  const change = yield* makeChange
  const eraseUploads = yield* makeEraseUploads

  /**
   * Creates a function that changes the documents of a subject for which `isMeant` returns true, by appending events. It returns the
   * positions of these documents.
   */
  const changeAll = (isMeant: (row: PersonalRow) => boolean, eventOf: (positions: ReadonlyArray<number>) => DomainEvent) =>
    Effect.fnUntraced(
      function* (subject: PersonalSubject) {
        const meant = (yield* find(subject)).filter(isMeant).map(({ position }) => Number(position))
        yield* Effect.forEach(Arr.chunksOf(meant, maxPositions), (positions) => change(positions, eventOf(positions)))
        return meant
      },
      Effect.retry({ times: maxAttempts - 1, while: (error) => error._tag === "DocumentsChanged" }),
      Effect.catchTag("DocumentsChanged", (cause) => Effect.fail(new StoreUnavailable({ cause })))
    )
  const isErasable = ({ document, is_held }: PersonalRow) => document !== null && !is_held
  const eraseLogged = changeAll(isErasable, (positions) => PersonalDataErased.make({ positions, cause: "request" }))

  return {
    find,
    /**
     * Returns the documents of a subject, after recording in the log that the operator reads them. For a VAT ID, the document of a chunk
     * has only the items with this VAT ID.
     */
    show: Effect.fnUntraced(function* (subject: PersonalSubject) {
      const rows = yield* find(subject)
      const shown = PersonalDataShown.make({
        account_id: subject._tag === "Account" ? subject.accountId : null,
        documents: rows.length,
        receipt_id: subject._tag === "Receipt" ? subject.receiptId : null,
        vat_id: subject._tag === "VatId" ? subject.vatId : null
      })
      yield* appendFact(personalDataStream, shown)
      return subject._tag === "VatId" ? rows.map((row) => onlyItemsOf(subject.vatId, row)) : rows
    }),
    /** Erases the documents that are not on legal hold, and returns their positions. Can be repeated after an interruption. */
    // Erases the documents of spooled chunks first. If such a chunk is appended meanwhile, the search of the log finds it.
    erase: (subject: PersonalSubject) => Effect.andThen(eraseUploads(subject), eraseLogged(subject)),
    hold: changeAll(isErasable, (positions) => PersonalDataHeld.make({ positions })),
    release: changeAll(
      ({ is_held }) => is_held,
      (positions) => PersonalDataReleased.make({ positions })
    )
  }
})

const itemsDocument = Schema.fromJsonString(BatchItemsDocument)
const decodeItems = Schema.decodeSync(itemsDocument)
const encodeItems = Schema.encodeSync(itemsDocument)

/** Removes the items with other VAT IDs from the document of a chunk, because they may be about other people. */
const onlyItemsOf = (vatId: string, row: PersonalRow): PersonalRow => {
  if (row.document === null || row.vat_ids === null) return row
  const { additional, custom_ids, details, malformed, ...rest } = decodeItems(row.document)
  const isMeant = (_: unknown, item: number) => row.vat_ids?.[item] === vatId
  const own = { custom_ids: custom_ids.filter(isMeant), malformed: malformed.filter(isMeant) }
  const more = {
    ...(additional === undefined ? {} : { additional: additional.filter(isMeant) }),
    ...(details === undefined ? {} : { details: details.filter(isMeant) })
  }
  return { ...row, document: encodeItems({ ...rest, ...own, ...more }) }
}

/** Creates a function that returns the documents of a subject, oldest first. It reads all documents, because an index could be wrong. */
const makeFind = Effect.map(SqlClient.SqlClient, (sql) => {
  const columns =
    sql.literal(`d.position, e.type, e.stream_id, coalesce(e.data ->> 'vat_id', e.data ->> 'target_vat_id', e.data #>> '{receipt,target_vat_id}') AS vat_id, e.data -> 'vat_ids' AS vat_ids,
    e.recorded_at, d.document, d.retain_until, d.is_held, d.changed_by`)
  const withData = sql.literal(`CROSS JOIN LATERAL (SELECT type, stream_id, recorded_at, vatproof.json_of(data) AS data
    FROM vatproof.events WHERE log_id = d.log_id AND position = d.position LIMIT 1) e`)

  const among = (subject: PersonalSubject) => {
    switch (subject._tag) {
      case "VatId":
        return sql`(coalesce(e.data ->> 'vat_id', e.data ->> 'target_vat_id', e.data #>> '{receipt,target_vat_id}') = ${subject.vatId}
          OR jsonb_exists(e.data -> 'vat_ids', ${subject.vatId}))`
      case "Receipt":
        return sql`e.stream_id = ${receiptStream(subject.receiptId)}`
      case "Account":
        // Selects the events that name the account, and the events of the account's current keys: an event of such a key may name a
        // former account of the key, or no account.
        return sql`(e.data ->> 'account_id' = ${subject.accountId} OR coalesce('key-' || (e.data ->> 'key_id'), e.stream_id) = ANY (ARRAY(
          SELECT 'key-' || key_id FROM vatproof.api_keys WHERE account_id::text = ${subject.accountId})))`
    }
  }

  const findHead = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ head: Schema.BigInt }),
    execute: () => sql`SELECT next_position AS head FROM vatproof.logs WHERE log_id = ${logId}`
  })
  const decode = Schema.decodeUnknownEffect(Schema.Array(Row))

  return Effect.fn("PersonalErasure.find")(function* (subject: PersonalSubject) {
    const head = Number((yield* findHead(undefined).pipe(QueryPolicy.withRetry(retryFor))).head)
    const documents: Array<PersonalRow> = []
    for (let from = 0; from < head; from += searchStep) {
      const rows = yield* Effect.flatMap(
        sql`SELECT ${columns} FROM vatproof.personal_documents d ${withData}
          WHERE d.log_id = ${logId} AND d.position >= ${from} AND d.position < ${from + searchStep} AND ${among(subject)} ORDER BY d.position`,
        decode
      ).pipe(QueryPolicy.withRetry(retryFor, retryFor))
      documents.push(...rows)
    }
    return documents
  })
})

/** Creates a function that erases the documents of batch items that are not in the log yet. */
const makeEraseUploads = Effect.map(SqlClient.SqlClient, (sql) => (subject: PersonalSubject) => {
  const eraseWhere = (which: Statement.Fragment) =>
    sql`UPDATE vatproof.uploads SET document = NULL WHERE ${which}`.pipe(QueryPolicy.withRetry(retryFor), Effect.asVoid)
  switch (subject._tag) {
    case "Account":
      return eraseWhere(sql`account_id = ${subject.accountId}::uuid`)
    case "VatId":
      return eraseWhere(sql`jsonb_exists(items::jsonb -> 'vat_ids', ${subject.vatId})`)
    case "Receipt":
      return Effect.void
  }
})

export class PersonalErasure extends Context.Service<PersonalErasure, Effect.Success<typeof make>>()(
  "vatproof/events/audit/PersonalErasure"
) {
  static readonly layer = Layer.effect(PersonalErasure, make)
}
