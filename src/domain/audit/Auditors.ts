/** Manages auditors and authenticates them by their token. */
import { Context, type DateTime, type Effect, type Redacted, Schema } from "effect"
import type { Auditor } from "#domain/audit/Auditor.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** The token is malformed, unknown, revoked or expired. Clients are not told which. */
export class InvalidAuditorToken extends Schema.TaggedError<InvalidAuditorToken>()("InvalidAuditorToken", {}) {
  override get message() {
    return "The auditor's token is not valid. Send a valid token in the header Authorization: Bearer <token>"
  }
}

/** The account does not exist. */
export class UnknownAccount extends Schema.TaggedError<UnknownAccount>()("UnknownAccount", { accountId: Schema.String }) {
  override get message() {
    return `There is no account ${this.accountId}`
  }
}

/** The auditor does not exist, or the token is revoked. */
export class UnknownAuditor extends Schema.TaggedError<UnknownAuditor>()("UnknownAuditor", { auditorId: Schema.String }) {
  override get message() {
    return `There is no auditor ${this.auditorId} with an active token`
  }
}

/** An auditor as operators see it. `name` identifies the person who has the token. */
export interface AuditorEntry extends Auditor {
  readonly name: string
  readonly addedAt: DateTime.Utc
  readonly revokedAt: DateTime.Utc | null
}

/** The name, scope and expiry of a new auditor. */
export interface NewAuditor {
  readonly name: string
  readonly accountId: string | null
  readonly expiresAt: DateTime.Utc
}

export class Auditors extends Context.Service<
  Auditors,
  {
    /** Adds an auditor and returns the token, which is shown once. */
    readonly add: (
      auditor: NewAuditor
    ) => Effect.Effect<{ readonly auditorId: string; readonly token: Redacted.Redacted }, UnknownAccount | StoreUnavailable>
    /** Returns up to 1,000 auditors, newest first. */
    readonly list: Effect.Effect<ReadonlyArray<AuditorEntry>, StoreUnavailable>
    readonly revoke: (auditorId: string) => Effect.Effect<void, UnknownAuditor | StoreUnavailable>
    /** Returns the auditor with an active token. */
    readonly byToken: (token: Redacted.Redacted) => Effect.Effect<Auditor, InvalidAuditorToken | StoreUnavailable>
  }
>()("vatproof/domain/audit/Auditors") {}
