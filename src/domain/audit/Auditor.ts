/** Auditors: their scope (the whole log or one account), their token and its expiry, and the event that records what they read. */
import { type DateTime, type Effect, Schema } from "effect"
import * as DomainEvent from "#domain/log/DomainEvent.ts"
import type { Crypto } from "#domain/kernel/Crypto.ts"
import * as SecretToken from "#domain/callers/SecretToken.ts"

/** Prefix of an auditor's token. Only the SHA-256 of a token is stored. */
const tokenStart = "svc_audit_"

/** Generates a new token. */
export const generateToken = (crypto: Crypto["Service"]): Effect.Effect<string> => SecretToken.generate(crypto, tokenStart)

/** Returns true if the text has the form and checksum of a token. */
export const isToken = (text: string): boolean => SecretToken.isWellFormed(tokenStart, text)

/** `accountId` is the only account that the auditor may read; null means the whole log. */
export interface Auditor {
  readonly auditorId: string
  readonly accountId: string | null
  readonly expiresAt: DateTime.Utc
}

/** Returns the name of an auditor's stream. */
export const auditorStream = (auditorId: string): string => `auditor-${auditorId}`

/** An auditor was added. `name` identifies the person and stays in the log permanently. */
export const AuditorAdded = DomainEvent.define(
  "AuditorAdded",
  1,
  Schema.Struct({
    auditor_id: Schema.String,
    account_id: Schema.NullOr(Schema.String),
    name: Schema.String,
    expires_at: Schema.DateTimeUtcFromString,
    token_sha256: Schema.String
  })
)

/** An auditor's token was revoked permanently. */
export const AuditorRevoked = DomainEvent.define(
  "AuditorRevoked",
  1,
  Schema.Struct({ auditor_id: Schema.String, account_id: Schema.NullOr(Schema.String) })
)

/**
 * An auditor read events, one event or one proof (`what`). A query for events is recorded once, at its first page, with its
 * filters. `of_account` and `of_key` are the account and the API key in the filters. `by_vat_id` is true if the filters contained
 * a VAT ID. The VAT ID itself is not stored, because it may identify a person.
 */
export const AuditLogRead = DomainEvent.define(
  "AuditLogRead",
  1,
  Schema.Struct({
    auditor_id: Schema.String,
    account_id: Schema.NullOr(Schema.String),
    what: Schema.Literals(["events", "event", "proof"]),
    position: Schema.NullOr(Schema.Int),
    receipt_id: Schema.NullOr(Schema.String),
    type: Schema.NullOr(Schema.String),
    from: Schema.NullOr(Schema.DateTimeUtcFromString),
    to: Schema.NullOr(Schema.DateTimeUtcFromString),
    of_account: Schema.NullOr(Schema.String),
    of_key: Schema.NullOr(Schema.String),
    by_vat_id: Schema.Boolean
  })
)
