/** Every event type in every version that was ever stored. A version is never removed; a newer one adds an upcaster here. */
import { Effect, Schema } from "effect"
import {
  AccountClosed,
  AccountRegistered,
  AccountSignedUp,
  EmailVerificationRequested,
  EmailVerified,
  PasswordChanged,
  PasswordResetRequested,
  PlanChanged
} from "#domain/Account.ts"
import { ApiKeyIssued, ApiKeyRevoked, ApiKeyRotated } from "#domain/ApiKey.ts"
import { AuditLogRead, AuditorAdded, AuditorRevoked } from "#domain/Auditor.ts"
import type { EventType, PersonalEventType } from "#domain/DomainEvent.ts"
import { LoggedIn, LoginsCounted } from "#domain/LoginLog.ts"
import { LogAdopted } from "#domain/LogAdopted.ts"
import { LogExported, LogVerified } from "#domain/LogReading.ts"
import { PersonalDataErased, PersonalDataHeld, PersonalDataReleased } from "#domain/PersonalData.ts"
import { ConfirmationRefused, ReceiptIssued } from "#domain/Receipt.ts"
import { ReceiptLinkCreated, ReceiptLinkRevoked } from "#domain/ReceiptLink.ts"
import { SourceDegraded, SourceRecovered, SourceUnavailable } from "#domain/Sources.ts"
import { VatIdVerificationFailed, VatIdVerified } from "#domain/Verification.ts"

/** All of them, for the test that keeps a stored example of each readable for good. */
export const eventTypes = [
  AccountClosed,
  AccountRegistered,
  AccountSignedUp,
  ApiKeyIssued,
  ApiKeyRevoked,
  ApiKeyRotated,
  AuditLogRead,
  AuditorAdded,
  AuditorRevoked,
  ConfirmationRefused,
  EmailVerificationRequested,
  EmailVerified,
  LogAdopted,
  LogExported,
  LogVerified,
  LoggedIn,
  LoginsCounted,
  PasswordChanged,
  PasswordResetRequested,
  PersonalDataErased,
  PersonalDataHeld,
  PersonalDataReleased,
  PlanChanged,
  ReceiptIssued,
  ReceiptLinkCreated,
  ReceiptLinkRevoked,
  SourceDegraded,
  SourceRecovered,
  SourceUnavailable,
  VatIdVerificationFailed,
  VatIdVerified
]

/** Reads the stored bytes of one event type. What does not decode is a defect: the log holds nothing that we did not write. */
export const decoder = <A>(eventType: EventType<A>): ((data: string) => Effect.Effect<A>) => reader(eventType.schema)

/** The same for the personal document of an event of that type. */
export const documentDecoder = <A, P>({ personal }: PersonalEventType<A, P>): ((document: string) => Effect.Effect<P>) =>
  reader(personal)

const reader = <A>(schema: Schema.Codec<A, unknown>) => {
  const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.toCodecJson(schema)))
  return (json: string) => decode(json).pipe(Effect.catchTag("SchemaError", Effect.die))
}
