/** The digest by which BatchAccepted binds the items of a chunk. */
import type { PureCrypto } from "#domain/kernel/Crypto.ts"
import type { BatchQuestions } from "#domain/pending/Batch.ts"
import * as CanonicalJson from "#events/log/merkle/CanonicalJson.ts"

/** Returns the SHA-256 (hex) of the VAT IDs and the duplicates of a chunk, as canonical JSON. */
export const digestOf = ({ sha256Hex }: Pick<PureCrypto, "sha256Hex">, { duplicate_of, vat_ids }: BatchQuestions): string =>
  sha256Hex(CanonicalJson.encodeOwn({ duplicate_of, vat_ids }))
