/** The catalogue of all event types. */
import {
  AccountClosed,
  AccountRegistered,
  AccountSignedUp,
  AccountsShown,
  EmailVerificationRequested,
  EmailVerified,
  PasswordChanged,
  PasswordResetRequested,
  PlanChanged
} from "#domain/accounts/AccountEvents.ts"
import { ApiKeyClaimed, ApiKeyIssued, ApiKeyReleased, ApiKeyRevoked, ApiKeyRotated } from "#domain/accounts/ApiKeyEvents.ts"
import { PersonalDataShown } from "#domain/audit/PersonalDataShown.ts"
import { AuditLogRead, AuditorAdded, AuditorRevoked } from "#domain/audit/Auditor.ts"
import { LoggedIn, LoginsCounted } from "#domain/accounts/login/LoginLog.ts"
import { LogAdopted } from "#domain/log/LogAdopted.ts"
import { LogOpened } from "#domain/log/LogPurpose.ts"
import { LogExported, LogVerified, ProjectionCorrected } from "#domain/log/LogReadEvents.ts"
import { PersonalDataErased, PersonalDataHeld, PersonalDataReleased } from "#domain/log/PersonalData.ts"
import { BatchAccepted, BatchCancelled, BatchItemsAccepted, BatchItemsCancelled } from "#domain/pending/Batch.ts"
import { ConfirmationRefused, ReceiptIssued } from "#domain/receipts/Receipt.ts"
import { ReceiptLinkCreated, ReceiptLinkRevoked } from "#domain/receipts/ReceiptLink.ts"
import { SourceDegraded, SourceRecovered, SourceUnavailable } from "#domain/vat/Sources.ts"
import { ValidationAccepted, ValidationCancelled, ValidationExpired } from "#domain/validation/ValidationTask.ts"
import { VatIdVerificationFailed, VatIdVerified } from "#domain/vat/ValidationEvents.ts"

/** All event types that the log can contain. A test decodes a stored example of each version of each type. */
export const eventTypes = [
  AccountClosed,
  AccountRegistered,
  AccountSignedUp,
  AccountsShown,
  ApiKeyClaimed,
  ApiKeyIssued,
  ApiKeyReleased,
  ApiKeyRevoked,
  ApiKeyRotated,
  AuditLogRead,
  AuditorAdded,
  AuditorRevoked,
  BatchAccepted,
  BatchCancelled,
  BatchItemsAccepted,
  BatchItemsCancelled,
  ConfirmationRefused,
  EmailVerificationRequested,
  EmailVerified,
  LogAdopted,
  LogExported,
  LogOpened,
  LogVerified,
  LoggedIn,
  LoginsCounted,
  PasswordChanged,
  PasswordResetRequested,
  PersonalDataErased,
  PersonalDataHeld,
  PersonalDataReleased,
  PersonalDataShown,
  PlanChanged,
  ProjectionCorrected,
  ReceiptIssued,
  ReceiptLinkCreated,
  ReceiptLinkRevoked,
  SourceDegraded,
  SourceRecovered,
  SourceUnavailable,
  ValidationAccepted,
  ValidationCancelled,
  ValidationExpired,
  VatIdVerificationFailed,
  VatIdVerified
]
