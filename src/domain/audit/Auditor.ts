/** Auditors: who may read the log, all of it or one account's, until when, and what is kept of their reading. */
import { type DateTime, type Effect, Schema } from "effect"
import * as DomainEvent from "#domain/kernel/DomainEvent.ts"
import type { Crypto } from "#domain/kernel/Crypto.ts"
import * as SecretToken from "#domain/kernel/SecretToken.ts"

/** What an auditor presents. Only its SHA-256 is stored. */
const tokenStart = "svc_audit_"

/** A new token. */
export const drawToken = (crypto: Crypto["Service"]): Effect.Effect<string> => SecretToken.draw(crypto, tokenStart)

/** Whether the text has the form of a token and its checksum is right. */
export const isToken = (text: string): boolean => SecretToken.isWellFormed(tokenStart, text)

/** `accountId` is the one account the auditor may look at; null means all, and what belongs to no account. */
export interface Auditor {
  readonly auditorId: string
  readonly accountId: string | null
  readonly expiresAt: DateTime.Utc
}

/** The stream of an auditor. */
export const auditorStream = (auditorId: string): string => `auditor-${auditorId}`

/** An auditor was admitted. `name` says who; it stays in the log. */
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

/** An auditor's token was revoked for good. */
export const AuditorRevoked = DomainEvent.define(
  "AuditorRevoked",
  1,
  Schema.Struct({ auditor_id: Schema.String, account_id: Schema.NullOr(Schema.String) })
)

/**
 * An auditor began to read. `what` is the list with these filters, one event, or one proof; turning the pages of a list is one reading.
 * `of_account` and `of_key` are those that were asked for. Of a VAT ID only is kept that one was asked for: it may name a person.
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
