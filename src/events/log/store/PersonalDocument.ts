/**
 * The personal document of an event: the personal data as canonical JSON with a random salt, stored beside the log. The event has the
 * SHA-256 of the document, so the proof of the event also proves the document. The salt is erased with the document. After that, the
 * SHA-256 in the event reveals nothing about the data.
 */
import { DateTime, Effect, Option, Predicate, type Schema } from "effect"
import { Hex } from "effect/encoding"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { type PersonalData, PersonalDataErased, PersonalDataHeld, PersonalDataReleased } from "#domain/log/PersonalData.ts"
import { retainUntil, Retention } from "#domain/log/Retention.ts"
import * as CanonicalJson from "#events/log/merkle/CanonicalJson.ts"
import * as EventLine from "#events/log/store/EventLine.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"

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

/** Returns the positions of the personal documents that an event erased, held or released; empty for events of other types. */
export const positionsIn = ({ data, type }: StoredEvent): ReadonlyArray<number> => {
  if (type !== PersonalDataErased.type && type !== PersonalDataHeld.type && type !== PersonalDataReleased.type) return []
  const read = EventLine.readJson(data)
  const positions = Predicate.hasProperty(read, "positions") && Array.isArray(read.positions) ? read.positions : []
  return positions.filter((position) => typeof position === "number")
}
