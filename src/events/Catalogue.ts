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
import { BatchAccepted, BatchCancelled, BatchCompleted, BatchItemsAccepted, BatchItemsCancelled } from "#domain/pending/Batch.ts"
import { ConfirmationRefused, ReceiptIssued } from "#domain/receipts/Receipt.ts"
import { ReceiptLinkCreated, ReceiptLinkRevoked } from "#domain/receipts/ReceiptLink.ts"
import { SourceDegraded, SourceRecovered, SourceUnavailable } from "#domain/vat/Sources.ts"
import { ValidationAccepted, ValidationCancelled, ValidationExpired } from "#domain/validation/ValidationTask.ts"
import { VatIdVerificationFailed, VatIdVerified } from "#domain/vat/ValidationEvents.ts"
import { logEventTypes } from "#events/log/store/EventTypes.ts"

/** All event types that the log of the service can contain. A test decodes a stored example of each version of each type. */
export const eventTypes = [
  ...logEventTypes,
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
  BatchCompleted,
  BatchItemsAccepted,
  BatchItemsCancelled,
  ConfirmationRefused,
  EmailVerificationRequested,
  EmailVerified,
  LoggedIn,
  LoginsCounted,
  PasswordChanged,
  PasswordResetRequested,
  PersonalDataShown,
  PlanChanged,
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
