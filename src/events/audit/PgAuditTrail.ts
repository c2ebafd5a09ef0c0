/**
 * Serves auditors and owners of receipts: searches events with the projection `vatproof.event_index`, and proves that an event is
 * in the signed log.
 */
import { Effect, Layer, Option, Predicate, Schedule } from "effect"
import { AuditLogRead, type Auditor, auditorStream } from "#domain/audit/Auditor.ts"
import {
  type AuditFilter,
  type AuditQuery,
  AuditTrail,
  NotSignedYet,
  type ProofReader,
  type ProofSubject
} from "#domain/audit/AuditTrail.ts"
import { NotInLog } from "#domain/log/NotInLog.ts"
import { type EvidenceAltered, Integrity } from "#domain/log/Integrity.ts"
import { ReceiptIssued, receiptStream } from "#domain/receipts/Receipt.ts"
import { idForm } from "#events/accounts/AccountDirectory.ts"
import type { KeyFacts } from "#events/audit/ExportedKeys.ts"
import { keyOfEvent, searchHeader, searchRow } from "#events/audit/SearchTable.ts"
import * as EventTypes from "#events/log/store/EventTypes.ts"
import * as EventProofs from "#events/log/notary/EventProofs.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as Checkpoint from "#events/log/merkle/Checkpoint.ts"
import * as EventLine from "#events/log/store/EventLine.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { formatVerifier } from "#events/log/merkle/NoteKeys.ts"
import { LogSigner } from "#events/log/notary/LogSigner.ts"
import * as EventSearch from "#events/audit/EventSearch.ts"
import { eventIndex } from "#events/audit/EventIndex.ts"
import { Projections } from "#events/log/projections/Projections.ts"
import * as SignedDocuments from "#events/log/notary/SignedDocuments.ts"
import * as SignedLeaves from "#events/log/notary/SignedLeaves.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"

/** A request for a proof reads the newest checkpoint at this interval, until the checkpoint covers the event. */
const pollEvery = "100 millis"
/**
 * Maximum number of retries while a request for a proof waits for a checkpoint that covers the event. The request therefore waits
 * up to 3 s.
 */
const looks = 30

const make = Effect.gen(function* () {
  const proofs = yield* makeProofs
  const search = yield* EventSearch.make
  const record = yield* makeRecord
  const allow = makeAllow(search)
  const find = yield* makeFind(search)
  const { verified } = yield* SignedLeaves.make
  const documentsOf = yield* SignedDocuments.make
  const { upToDate } = yield* Projections
  const crypto = yield* Crypto
  const { keys } = yield* LogSigner
  const verifiers = Option.match(keys, { onNone: () => [], onSome: ({ verifiers }) => verifiers })

  const lineOf = (one: StoredEvent) => Effect.map(documentsOf([one]), (documents) => lineWith(documents)(one))

  const page: AuditTrail["Service"]["page"] = Effect.fn("PgAuditTrail.page")(function* (auditor, query, { after, limit }) {
    const { accountId, from, key, receiptId, to, type, vatId } = query
    if (after === null) {
      const query = { receipt_id: receiptId, type, from, to, of_account: accountId, of_key: key, by_vat_id: vatId !== null }
      yield* record(auditor, { what: "events", ...query })
    }
    const allowed = yield* allow(query, auditor)
    if (allowed === null) return { lines: () => [], rows: () => [], next: null }
    yield* upToDate(eventIndex)
    const matches = yield* search.find(allowed, after ?? 0, limit + 1)
    const events = yield* verified(matches.slice(0, limit))
    const documents = yield* documentsOf(events)
    const keys = yield* search.factsOfKeys([...new Set(events.flatMap((event) => keyOfEvent(event) ?? []))])
    const next = matches[limit]?.position ?? null
    return { lines: () => events.map(lineWith(documents)), rows: () => events.map(rowWith(documents, keys)), next }
  })

  const event = Effect.fn("PgAuditTrail.event")(function* (auditor: Auditor, position: number) {
    const stored = yield* find({ _tag: "Auditor", auditor }, { position })
    yield* record(auditor, { what: "event", position })
    return yield* lineOf(stored)
  })

  /**
   * Returns the newest checkpoint if it covers the position. Otherwise retries for about 3 s, because the notary signs a new event
   * within about a second. Does not retry if the service has no keys to sign. Fails with NotSignedYet if no checkpoint covers the
   * position.
   */
  const covering = (position: number) =>
    proofs.newest.pipe(
      Effect.filterOrFail(
        Option.exists(({ size }) => size > position),
        () => new NotSignedYet({ position })
      ),
      Effect.map(Option.getOrThrow),
      Effect.retry({
        schedule: Schedule.spaced(pollEvery),
        times: Option.isSome(keys) ? looks : 0,
        while: (error) => error._tag === "NotSignedYet"
      })
    )

  const prove = Effect.fn("PgAuditTrail.prove")(function* (reader: ProofReader, subject: ProofSubject) {
    const stored = yield* find(reader, subject)
    const { position } = stored
    if (reader._tag === "Auditor") yield* record(reader.auditor, { what: "proof", position })
    const checkpoint = yield* covering(position)
    const [signer] = Checkpoint.signersOf(crypto, checkpoint.note, verifiers)
    return {
      position,
      line: yield* lineOf(stored),
      proof: yield* proofs.prove(stored, checkpoint),
      verifierKey: signer === undefined ? null : formatVerifier(signer)
    }
  })

  const checkpoint = Effect.flatMap(
    proofs.newest,
    Option.match({
      onNone: () => Effect.fail(new NotInLog({ missing: "signed checkpoint yet" })),
      onSome: ({ note }) => Effect.succeed(note)
    })
  )

  const types = [...new Set((yield* EventTypes.EventTypes).map(({ type }) => type))].toSorted()
  return AuditTrail.of({ types, header: searchHeader, page, event, prove, checkpoint, tile: proofs.tile })
})

/** Formats an event, with its personal document if it has one, as a row of CSV. */
const rowWith = (documents: ReadonlyMap<number, string | null>, keys: ReadonlyMap<string, KeyFacts>) => (event: StoredEvent) =>
  searchRow(event, documents.get(event.position), keys)

const lineWith = (documents: ReadonlyMap<number, string | null>) => (event: StoredEvent) =>
  EventLine.format(event, documents.get(event.position))

/** Serves proofs, checkpoints and tiles. A request fails with EVIDENCE_ALTERED if the stored data differs from the signed data. */
const makeProofs = Effect.gen(function* () {
  const { newest, prove, tile } = yield* EventProofs.make
  const { refuse } = yield* Integrity
  const refused = ({ finding }: EvidenceAltered) => refuse("event", finding)
  return {
    newest: Effect.catchTag(newest, "EvidenceAltered", refused),
    tile: (path: string) => Effect.catchTag(tile(path), "EvidenceAltered", refused),
    prove: (event: StoredEvent, checkpoint: EventProofs.OpenCheckpoint) =>
      Effect.catchTag(prove(event, checkpoint), "EvidenceAltered", refused)
  }
})

/** Restricts a filter to the account that an auditor may read. Returns null if no event can match. */
const makeAllow = (search: EventSearch.EventSearch) =>
  Effect.fnUntraced(function* ({ key, ...filter }: AuditQuery, auditor: Auditor) {
    const accountId = auditor.accountId ?? filter.accountId
    if (filter.accountId !== null && filter.accountId !== accountId) return null
    if (key === null || idForm.test(key)) return { ...filter, accountId, keyId: key } satisfies AuditFilter
    const keyId = accountId === null ? null : yield* search.keyOf(accountId, key)
    return keyId === null ? null : ({ ...filter, accountId, keyId } satisfies AuditFilter)
  })

/**
 * Creates a function that returns the requested event if the reader is allowed to read it. The only events that an API key is
 * allowed to read are its own receipts.
 */
const makeFind = Effect.fnUntraced(function* (search: EventSearch.EventSearch) {
  const events = yield* EventStore
  const { verified } = yield* SignedLeaves.make
  const decodeReceipt = EventTypes.decoder(ReceiptIssued)

  const maySee = Effect.fnUntraced(function* (reader: ProofReader, event: StoredEvent) {
    if (reader._tag === "Key") {
      return event.type === ReceiptIssued.type && (yield* decodeReceipt(event.data)).key_id === reader.keyId
    }
    const { accountId } = reader.auditor
    if (accountId === null) return true
    const data = EventLine.readData(event)
    if (Predicate.hasProperty(data, "account_id") && data.account_id !== null) return data.account_id === accountId
    const keyId = keyOfEvent(event)
    return keyId !== null && (yield* search.factsOfKeys([keyId])).get(keyId)?.accountId === accountId
  })

  const at = (position: number) =>
    Number.isSafeInteger(position) ? events.read(position, 1) : Effect.succeed<ReadonlyArray<StoredEvent>>([])

  return Effect.fnUntraced(function* (reader: ProofReader, subject: ProofSubject) {
    const byReceipt = "receiptId" in subject
    const none = new NotInLog({
      missing: byReceipt ? `receipt ${subject.receiptId} that you may read` : `event ${subject.position} that you may read`
    })
    const [event] = byReceipt ? yield* events.readStream(receiptStream(subject.receiptId), 0, 1) : yield* at(subject.position)
    if (event === undefined) return yield* none
    yield* verified([event])
    return (yield* maySee(reader, event)) ? event : yield* none
  })
})

type Reading = Parameters<typeof AuditLogRead.make>[0]

/** Creates a function that appends the event `AuditLogRead`, which records that an auditor reads data of the log. */
const makeRecord = Effect.map(EventStore, (events) => {
  const nothing = {
    position: null,
    receipt_id: null,
    type: null,
    from: null,
    to: null,
    of_account: null,
    of_key: null,
    by_vat_id: false
  }
  return ({ accountId, auditorId }: Auditor, reading: Pick<Reading, "what"> & Partial<Reading>) => {
    const event = AuditLogRead.make({ ...nothing, ...reading, auditor_id: auditorId, account_id: accountId })
    return events.appendFact(auditorStream(auditorId), event)
  }
})

export const layer = Layer.effect(AuditTrail, make)
