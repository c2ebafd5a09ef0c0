/** Reads accepted validations from vatproof.tasks, and their answers from the events and personal documents. */
import { Array as Arr, DateTime, Effect, Exit, Layer, Option, Result, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import type { CachedAnswer } from "#domain/vat/AnswerCache.ts"
import { ConfirmationRefused, ReceiptIssued, wholeReceipt } from "#domain/receipts/Receipt.ts"
import { ValidationAccepted, ValidationCancelled, ValidationState } from "#domain/validation/ValidationTask.ts"
import {
  type LastFailure,
  type ValidationPageRequest,
  ValidationReader,
  type ValidationRecord,
  type ValidationSummary
} from "#domain/pending/ValidationReader.ts"
import type { Validation } from "#domain/validation/ValidationQuestion.ts"
import { VatIdVerified } from "#domain/vat/ValidationEvents.ts"
import * as VatIds from "#domain/vat/VatId.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import * as EventTypes from "#events/log/store/EventTypes.ts"
import * as EventLine from "#events/log/store/EventLine.ts"
import * as GroupCommit from "#events/log/store/GroupCommit.ts"
import * as SignedDocuments from "#events/log/notary/SignedDocuments.ts"
import * as TaskEvents from "#events/pending/TaskEvents.ts"
import { elementType, sqlArray } from "#events/log/database/SqlArray.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"

const retryFor = "3 seconds"

const Row = Schema.Struct({
  task_id: Schema.String,
  position: Schema.BigInt,
  key_id: Schema.String,
  vat_id: Schema.String,
  accepted_at: Schema.DateTimeUtcFromDate,
  expires_at: Schema.DateTimeUtcFromDate,
  state: ValidationState,
  closed_by: Schema.NullOr(Schema.BigInt),
  next_attempt_at: Schema.DateTimeUtcFromDate,
  attempts: Schema.Int,
  failure: Schema.NullOr(Schema.String)
})
type Row = typeof Row.Type

const columns = Object.keys(Row.fields).join(", ")
/** The columns in a query of vatproof.tasks itself. */
const columnsOfTable = columns.replace(
  "next_attempt_at",
  "vatproof.next_attempt(member_state, claim, due_at, attempted_at, attempts) AS next_attempt_at"
)
const columnsOf = (alias: string) =>
  Object.keys(Row.fields)
    .map((name) => `${alias}.${name}`)
    .join(", ")

const decodeAccepted = EventTypes.decoder(ValidationAccepted)
const decodeAcceptedDocument = EventTypes.documentDecoder(ValidationAccepted)
const decodeCancelled = EventTypes.decoder(ValidationCancelled)
const decodeRefused = EventTypes.decoder(ConfirmationRefused)
const decodeVerified = EventTypes.decoder(VatIdVerified)
const decodeVerifiedDocument = EventTypes.documentDecoder(VatIdVerified)
const decodeIssued = EventTypes.decoder(ReceiptIssued)
const decodeIssuedDocument = EventTypes.documentDecoder(ReceiptIssued)
const decodeMetadata = Schema.decodeUnknownOption(Schema.Struct({ request_id: Schema.String }))

const uuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/u

/** The fields of an answer's personal document that a response shows. All are null once the document is erased. */
interface Names {
  readonly company_name: string | null
  readonly company_address: string | null
}
const erased: Names = { company_name: null, company_address: null }

/**
 * Returns the company name and address from the personal document of an answer. They are null once the document is erased. An answer
 * of the BZSt has no name and address. A receipt's document therefore has the official name and address from an earlier answer.
 */
export const namesIn = Effect.fnUntraced(function* ({ type }: StoredEvent, document: string | null) {
  if (document === null) return erased
  if (type === ReceiptIssued.type) {
    const { official_address, official_name } = yield* decodeIssuedDocument(document)
    return { company_name: official_name || null, company_address: official_address || null }
  }
  const { company_address = null, company_name = null } = yield* decodeVerifiedDocument(document)
  return { company_name, company_address }
})

/** Creates a function that returns the outcome of a validation from the event that closed it. */
const makeOutcome = Effect.gen(function* () {
  const events = yield* TaskEvents.make
  const documentsOf = yield* SignedDocuments.make

  const documentOf = (event: StoredEvent) =>
    Effect.map(documentsOf([event]), (documents) => documents.get(event.position) ?? null)

  const ofVerified = Effect.fnUntraced(function* (event: StoredEvent) {
    const { answer, answer_position, answered_at, served, source, valid, vat_id } = yield* decodeVerified(event.data)
    const [holder = event] = yield* events.at(answer_position === null ? [] : [BigInt(answer_position)])
    const names = yield* namesIn(holder, yield* documentOf(holder))
    const shown: CachedAnswer = { source, valid, answered_at, ...names }
    const consultationNumber = answer?.consultation_number ?? null
    return { vatId: yield* vatIdOf(vat_id), answer: shown, served, consultationNumber, confirmation: null } satisfies Validation
  })

  const ofReceipt = Effect.fnUntraced(function* (event: StoredEvent) {
    const issued = yield* decodeIssued(event.data)
    const { answer, receipt } = issued
    const document = yield* documentOf(event)
    const disclosed = document === null ? null : yield* decodeIssuedDocument(document)
    const shown: CachedAnswer = { ...answer, ...erased }
    const validation: Validation = {
      vatId: yield* vatIdOf(receipt.target_vat_id),
      answer: shown,
      served: "live",
      consultationNumber: null,
      confirmation: disclosed === null ? null : { receipt: wholeReceipt(issued, disclosed), requestId: receipt.bzst_request_id }
    }
    return validation
  })

  /** Returns the answer, or the reason why the validation has no answer. An open validation has neither. */
  return Effect.fnUntraced(function* (event: StoredEvent | undefined) {
    switch (event?.type) {
      case VatIdVerified.type:
        return { validation: yield* ofVerified(event), reason: null }
      case ReceiptIssued.type:
        return { validation: yield* ofReceipt(event), reason: null }
      case ConfirmationRefused.type:
        return { validation: null, reason: `refused: ${(yield* decodeRefused(event.data)).code}` }
      case ValidationCancelled.type:
        return { validation: null, reason: (yield* decodeCancelled(event.data)).reason }
      default:
        return { validation: null, reason: null }
    }
  })
})

/** Parses a stored VAT ID. A malformed VAT ID is a defect, because only valid VAT IDs are stored. */
const vatIdOf = (text: string) => Result.match(VatIds.parse(text), { onFailure: Effect.die, onSuccess: Effect.succeed })

const makeQueries = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const findAll = SqlSchema.findAll({
    Request: Schema.Array(Schema.String),
    Result: Row,
    execute: (ids) =>
      sql`SELECT ${sql.literal(columns)} FROM vatproof.find_tasks(${logId}::smallint, ${sqlArray(ids, elementType.uuid)})`
  })
  const find = yield* GroupCommit.make({
    procedure: "find_tasks",
    run: Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
      const rows = yield* findAll([...new Set(ids)]).pipe(QueryPolicy.withRetryForMany(retryFor))
      const byId = new Map(rows.map((row) => [row.task_id, row]))
      return ids.map((id) => Exit.succeed(byId.get(id)))
    })
  })

  const findPage = SqlSchema.findAll({
    Request: Schema.Struct({
      keyId: Schema.String,
      states: Schema.Array(ValidationState),
      vatId: Schema.NullOr(Schema.String),
      referenceHash: Schema.NullOr(Schema.String),
      before: Schema.Int,
      limit: Schema.Int
    }),
    Result: Row,
    // Reads the validations of each state by the index of that state, so that a page reads at most `limit` rows per state.
    execute: ({ before, keyId, limit, referenceHash, states, vatId }) => {
      const filter = [
        ...(vatId === null ? [] : [sql`t.vat_id = ${vatId}`]),
        ...(referenceHash === null ? [] : [sql`t.reference_hash = ${referenceHash}`])
      ]
      return sql`SELECT ${sql.literal(columnsOf("t"))} FROM unnest(${sqlArray(states, elementType.text)}) AS s(state) CROSS JOIN LATERAL (
          SELECT ${sql.literal(columnsOfTable)} FROM vatproof.tasks t
          WHERE ${sql.and([sql`t.key_id = ${keyId}::uuid AND t.batch_id IS NULL`, sql`t.state = s.state COLLATE "C"`, sql`t.position < ${BigInt(before)}`, ...filter])}
          ORDER BY t.position DESC LIMIT ${limit}) AS t
        ORDER BY t.position DESC LIMIT ${limit}`
    }
  })
  return { find, findPage }
})

/** Parses the column `failure`: `<source>:<code>`, or a code alone. */
export const failureOf = (failure: string | null): LastFailure | null => {
  if (failure === null) return null
  const [source = "", code] = failure.split(/:(.*)/su)
  return code === undefined ? { source: null, code: source } : { source, code }
}

const summaryOf = (row: Row): ValidationSummary => ({
  validationId: row.task_id,
  vatId: row.vat_id,
  state: row.state,
  acceptedAt: row.accepted_at,
  expiresAt: row.expires_at,
  attempts: row.attempts,
  lastFailure: failureOf(row.failure),
  nextAttemptAt: DateTime.min(row.next_attempt_at, row.expires_at)
})

/** Returns true if the event accepted the task of the row. Compares texts of canonical JSON, like `isClosedBy`. */
const isAcceptedBy = ({ accepted_at, key_id, task_id, vat_id }: Row, { data, event_id, occurred_at, type }: StoredEvent) =>
  type === ValidationAccepted.type &&
  event_id === task_id &&
  data.includes(`"key_id":"${key_id}"`) &&
  data.endsWith(`"vat_id":"${vat_id}"}`) &&
  DateTime.toEpochMillis(DateTime.makeUnsafe(occurred_at)) === DateTime.toEpochMillis(accepted_at)

const make = Effect.gen(function* () {
  const outcomeOf = yield* makeOutcome
  const events = yield* TaskEvents.make
  const queries = yield* makeQueries
  const documentsOf = yield* SignedDocuments.make

  /** Returns the reference in the personal document of each accepted validation. */
  const referencesOf = Effect.fnUntraced(function* (accepted: ReadonlyArray<StoredEvent>) {
    const documents = yield* documentsOf(accepted)
    return yield* Effect.forEach(accepted, ({ position }) => {
      const document = documents.get(position) ?? null
      return document === null
        ? Effect.succeed(null)
        : Effect.map(decodeAcceptedDocument(document), ({ reference = null }) => reference)
    })
  })

  const rowOf = Effect.fnUntraced(function* (keyId: string, validationId: string) {
    if (!uuid.test(validationId)) return undefined
    const row = yield* queries.find(validationId)
    return row?.key_id === keyId ? row : undefined
  })

  /** Returns the events that accepted and closed the tasks of rows. Refuses a row that contradicts its events. */
  const eventsOf = Effect.fnUntraced(function* (rows: ReadonlyArray<Row>) {
    const closed = rows.filter(({ closed_by }) => closed_by !== null)
    const positions = [...rows.map(({ position }) => position), ...closed.flatMap(({ closed_by }) => closed_by ?? [])]
    const [accepted, closings] = Arr.splitAt(yield* events.at(positions), rows.length)
    for (const [row, event] of Arr.zip(rows, accepted)) if (!isAcceptedBy(row, event)) return yield* events.refuse(row.position)
    for (const [{ state, task_id: id, vat_id: vatId }, event] of Arr.zip(closed, closings))
      if (!TaskEvents.isClosedBy(event, { id, vatId, state })) return yield* events.refuse(event.position)
    return { accepted, closings }
  })

  const find = Effect.fn("PgValidationReader.find")(function* (keyId: string, validationId: string) {
    const row = yield* rowOf(keyId, validationId)
    if (row === undefined) return Option.none<ValidationRecord>()
    const {
      accepted: [accepted],
      closings: [closing]
    } = yield* eventsOf([row])
    if (accepted === undefined) return Option.none<ValidationRecord>()
    const { request_hash } = yield* decodeAccepted(accepted.data)
    const [reference = null] = yield* referencesOf([accepted])
    const metadata = decodeMetadata(EventLine.readJson(accepted.metadata))
    const record: ValidationRecord = {
      ...summaryOf(row),
      reference,
      requestId: Option.isSome(metadata) ? metadata.value.request_id : "-",
      requestHash: request_hash,
      ...(yield* outcomeOf(closing))
    }
    return Option.some(record)
  })

  const summary = (keyId: string, validationId: string) =>
    Effect.map(rowOf(keyId, validationId), (row) => Option.map(Option.fromUndefinedOr(row), summaryOf))

  const page = Effect.fn("PgValidationReader.page")(function* ({ before, limit, ...filter }: ValidationPageRequest) {
    // Reads one row more than the limit, to find out whether another page follows.
    const request = { ...filter, before: before ?? Number.MAX_SAFE_INTEGER, limit: limit + 1 }
    const rows = yield* queries.findPage(request).pipe(QueryPolicy.withRetry(retryFor))
    const shown = rows.slice(0, limit)
    const last = shown.at(-1)
    const next = rows.length > limit && last !== undefined ? Number(last.position) : null
    const { accepted } = yield* eventsOf(shown)
    const references = yield* referencesOf(accepted)
    return { validations: Arr.zipWith(shown, references, (row, reference) => ({ ...summaryOf(row), reference })), next }
  })

  return ValidationReader.of({ find, summary, page })
})

export const layer = Layer.effect(ValidationReader, make)
