/** Admits auditors and turns what they present into an auditor. */
import { Context, type DateTime, type Effect, type Redacted, Schema } from "effect"
import type { Auditor } from "#domain/audit/Auditor.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** The token is malformed, unknown, revoked or expired; which of these is nobody's business. */
export class InvalidAuditorToken extends Schema.TaggedError<InvalidAuditorToken>()("InvalidAuditorToken", {}) {
  override get message() {
    return "The auditor's token is not valid. Send one in the header Authorization: Bearer <token>"
  }
}

/** There is no such account to look at. */
export class UnknownAccount extends Schema.TaggedError<UnknownAccount>()("UnknownAccount", { accountId: Schema.String }) {
  override get message() {
    return `There is no account ${this.accountId}`
  }
}

/** There is no such auditor, or the token was revoked already. */
export class UnknownAuditor extends Schema.TaggedError<UnknownAuditor>()("UnknownAuditor", { auditorId: Schema.String }) {
  override get message() {
    return `There is no auditor ${this.auditorId} with a token that could be revoked`
  }
}

/** `name` says who got the token. */
export interface AuditorEntry extends Auditor {
  readonly name: string
  readonly addedAt: DateTime.Utc
  readonly revokedAt: DateTime.Utc | null
}

/** Who is to get a token, for what, until when. */
export interface Admission {
  readonly name: string
  readonly accountId: string | null
  readonly expiresAt: DateTime.Utc
}

export class Auditors extends Context.Service<
  Auditors,
  {
    /** The token is shown this once. */
    readonly add: (
      admission: Admission
    ) => Effect.Effect<{ readonly auditorId: string; readonly token: Redacted.Redacted }, UnknownAccount | StoreUnavailable>
    /** Up to 1,000, the newest first. */
    readonly list: Effect.Effect<ReadonlyArray<AuditorEntry>, StoreUnavailable>
    readonly revoke: (auditorId: string) => Effect.Effect<void, UnknownAuditor | StoreUnavailable>
    readonly byToken: (token: Redacted.Redacted) => Effect.Effect<Auditor, InvalidAuditorToken | StoreUnavailable>
  }
>()("vatproof/domain/audit/Auditors") {}
