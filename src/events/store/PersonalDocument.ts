/**
 * The personal document of an event: the personal data as canonical JSON with a random salt, stored beside the log. The event has the
 * SHA-256 of the document, so the proof of the event also proves the document. The salt is erased with the document. After that, the
 * SHA-256 in the event reveals nothing about the data.
 */
import { DateTime, Effect, Option, Predicate, Schema } from "effect"
import { Hex } from "effect/encoding"
import { SqlClient, SqlSchema } from "effect/sql"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { Integrity } from "#domain/audit/Integrity.ts"
import type { PersonalData } from "#domain/kernel/PersonalData.ts"
import { retainUntil, Retention } from "#domain/kernel/Retention.ts"
import { logId } from "#events/store/AppendCommand.ts"
import * as CanonicalJson from "#events/merkle/CanonicalJson.ts"
import * as EventLine from "#events/store/EventLine.ts"
import { elementType, sqlArray } from "#events/database/SqlArray.ts"
import * as QueryPolicy from "#events/database/QueryPolicy.ts"
import type { StoredEvent } from "#events/store/StoredEvent.ts"

const saltBytes = 16

/**
 * Creates a function that makes the document of an event. It returns the document, the event's data with the digest of the document,
 * and the end of the retention period.
 */
export const makeSeal = Effect.gen(function* () {
  const crypto = yield* Crypto
  const retention = yield* Retention

  return (data: Schema.Json, { document: facts, retention: name }: PersonalData, occurredAtMs: number) => {
    const salt = Hex.encode(crypto.randomBytes(saltBytes))
    const document = CanonicalJson.encodeOwn(Object.assign({}, facts, { salt }))
    const until = retainUntil(retention[name], DateTime.makeUnsafe(occurredAtMs))
    const bound = { personal_sha256: crypto.sha256Hex(document), retain_until: DateTime.formatIso(until) }
    return {
      data: CanonicalJson.encodeOwn(Object.assign({}, data, bound)),
      document,
      retainUntilMs: DateTime.toEpochMillis(until)
    }
  }
})

/** The text of a stored document: null once erased, undefined for an event without a document. */
export type Stored = string | null | undefined

/** Returns the SHA-256 of the personal document from the data of its event; none if the event has no document. */
export const digestIn = (data: unknown): Option.Option<string> =>
  Predicate.hasProperty(data, "personal_sha256") && typeof data.personal_sha256 === "string"
    ? Option.some(data.personal_sha256)
    : Option.none()

/**
 * Returns the state of a document. `digest` is the SHA-256 in the document's event. A document that is missing (undefined) counts as
 * altered.
 */
export const stateOf = (sha256Hex: (text: string) => string, digest: string, stored: Stored): "kept" | "erased" | "altered" => {
  if (stored === null) return "erased"
  return stored !== undefined && sha256Hex(stored) === digest ? "kept" : "altered"
}

const retryFor = "5 seconds"

/**
 * Creates a function that returns the documents of events by position; null once erased. The request fails with EVIDENCE_ALTERED if a
 * document does not match the digest in its event.
 */
export const makeVerified = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const integrity = yield* Integrity

  // LIMIT 1 keeps the planner from a join that reads all documents.
  const find = SqlSchema.findAll({
    Request: Schema.Array(Schema.Int),
    Result: Schema.Struct({ position: Schema.BigInt, document: Schema.NullOr(Schema.String) }),
    execute: (positions) => sql`SELECT u.position, d.document
      FROM unnest(${sqlArray(positions.map(BigInt), elementType.int8)}) AS u(position) CROSS JOIN LATERAL (
        SELECT document FROM vatproof.personal_documents WHERE log_id = ${logId} AND position = u.position LIMIT 1) d`
  })

  return Effect.fnUntraced(function* (events: ReadonlyArray<Pick<StoredEvent, "data" | "position">>) {
    const digests = new Map<number, string>()
    for (const event of events) {
      const digest = Option.getOrNull(digestIn(EventLine.readData(event)))
      if (digest !== null) digests.set(event.position, digest)
    }
    const rows = digests.size === 0 ? [] : yield* find([...digests.keys()]).pipe(QueryPolicy.withRetry(retryFor))
    const documents = new Map(rows.map(({ document, position }) => [Number(position), document]))
    for (const [position, digest] of digests) {
      if (stateOf(crypto.sha256Hex, digest, documents.get(position)) === "altered") {
        return yield* integrity.refuse(
          "event",
          `The personal document at position ${position} does not match the digest in its event`
        )
      }
    }
    return documents
  })
})
