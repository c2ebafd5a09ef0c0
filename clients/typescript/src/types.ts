// Written from openapi.json by scripts/client-types.mjs. Do not edit.

export type ErrorCode = "VALIDATION_ERROR" | "INVALID_VAT_ID" | "INVALID_REQUESTER_VAT_ID" | "QUALIFIED_CONFIRMATION_UNSUPPORTED" | "DISPOSABLE_EMAIL" | "INVALID_TOKEN" | "TOKEN_EXPIRED" | "UNAUTHORIZED" | "PAYMENT_REQUIRED" | "NOT_FOUND" | "METHOD_NOT_ALLOWED" | "REQUEST_TIMEOUT" | "CONFLICT" | "API_KEY_NOT_CLAIMABLE" | "API_KEY_REPLACED" | "IDEMPOTENCY_IN_PROGRESS" | "RECEIPT_ERASED" | "PAYLOAD_TOO_LARGE" | "UNSUPPORTED_MEDIA_TYPE" | "QUALIFIED_CONFIRMATION_REFUSED" | "IDEMPOTENCY_KEY_REUSED" | "RATE_LIMIT_EXCEEDED" | "REQUEST_HEADER_FIELDS_TOO_LARGE" | "INTERNAL_ERROR" | "EVIDENCE_ALTERED" | "SOURCE_UNAVAILABLE" | "SERVICE_UNAVAILABLE"

export type Error = { readonly error: { readonly code: "VALIDATION_ERROR" | "INVALID_VAT_ID" | "INVALID_REQUESTER_VAT_ID" | "QUALIFIED_CONFIRMATION_UNSUPPORTED" | "DISPOSABLE_EMAIL" | "INVALID_TOKEN" | "TOKEN_EXPIRED" | "UNAUTHORIZED" | "PAYMENT_REQUIRED" | "NOT_FOUND" | "METHOD_NOT_ALLOWED" | "REQUEST_TIMEOUT" | "CONFLICT" | "API_KEY_NOT_CLAIMABLE" | "API_KEY_REPLACED" | "IDEMPOTENCY_IN_PROGRESS" | "RECEIPT_ERASED" | "PAYLOAD_TOO_LARGE" | "UNSUPPORTED_MEDIA_TYPE" | "QUALIFIED_CONFIRMATION_REFUSED" | "IDEMPOTENCY_KEY_REUSED" | "RATE_LIMIT_EXCEEDED" | "REQUEST_HEADER_FIELDS_TOO_LARGE" | "INTERNAL_ERROR" | "EVIDENCE_ALTERED" | "SOURCE_UNAVAILABLE" | "SERVICE_UNAVAILABLE" | (string & {}); readonly message: string; readonly request_id: string; readonly details?: ReadonlyArray<{ readonly field: string; readonly message: string }> | { readonly plan: "free" | "starter" | "business" | "enterprise" | (string & {}); readonly limit: number; readonly resets_at: string | null; readonly upgrade_url: string; readonly contact: string | null } | { readonly position: number; readonly proof: string | null } } }

export type SourceStatus = { readonly status: "operational" | "degraded" | (string & {}); readonly timestamp: string; readonly sources: { readonly vies: OneSource; readonly bzst: OneSource; readonly cache: { readonly status: "operational" | "degraded" | "unavailable" | (string & {}) } }; readonly active_source: "vies" | "bzst" | (string & {}); readonly failover_active: boolean; readonly member_states: Readonly<Record<string, MemberStateStatus>> }

export type MemberStateStatus = { readonly status: "operational" | "degraded" | "unavailable" | (string & {}); readonly since: string }

export type OneSource = { readonly status: "operational" | "degraded" | "unavailable" | (string & {}); readonly latency_ms: number | null; readonly last_checked: string }

export type Health = { readonly status: "ok"; readonly timestamp: string; readonly version: string }

export type Usage = { readonly plan: "free" | "starter" | "business" | "enterprise" | (string & {}); readonly period: { readonly start: string; readonly end: string }; readonly requests: { readonly used: number; readonly remaining: number; readonly limit: number } }

export type SourceHistory = { readonly timestamp: string; readonly resolution: "hour" | "day" | (string & {}); readonly member_states: Readonly<Record<string, ReadonlyArray<SourceCalls>>> }

export type SourceCalls = { readonly from: string; readonly source: "vies" | "bzst" | (string & {}); readonly calls: number; readonly answered: number; readonly failed: Readonly<Record<string, number>>; readonly mean_ms: number | null; readonly max_ms: number | null }

export type ProvedEvent = { readonly position: number; readonly event: AuditEvent; readonly proof: string; readonly verifier_key: string | null }

export type AuditEvent = { readonly causation_id: string | null; readonly correlation_id: string; readonly data: unknown; readonly event_id: string; readonly log_id: number; readonly metadata: unknown; readonly meter_id: string | null; readonly occurred_at: string; readonly personal?: unknown; readonly position: number; readonly recorded_at: string; readonly schema_version: number; readonly stream_id: string; readonly trace_id: string | null; readonly type: string; readonly units: number; readonly version: number }

export type AuditEvents = { readonly data: ReadonlyArray<AuditEvent>; readonly next_cursor: string | null }

export type ApiKeyRevoked = { readonly message: string }

export type ApiKey = { readonly id: string; readonly prefix: string; readonly name: string; readonly created_at: string; readonly revoked: boolean }

export type ApiKeys = { readonly api_keys: ReadonlyArray<ApiKey> }

export type CreatedApiKey = { readonly id: string; readonly prefix: string; readonly name: string; readonly created_at: string; readonly key: string }

export type LoggedIn = { readonly token: string; readonly expires_in: number }

export type PasswordReset = { readonly message: string }

export type PasswordResetRequested = { readonly message: string }

export type EmailVerified = { readonly message: string }

export type SignedUp = { readonly message: string; readonly user_id: string; readonly token?: string; readonly auto_verified?: true }

export type ApiKeySelfRevoked = { readonly message: string }

export type RotatedApiKey = { readonly id: string; readonly prefix: string; readonly key: string; readonly old_key_valid_until: string | null }

export type Registered = { readonly api_key: string; readonly tier: "free"; readonly quota: number }

export type ReceiptLinkRevoked = { readonly message: string }

export type ReceiptLinks = { readonly data: ReadonlyArray<ListedReceiptLink> }

export type ListedReceiptLink = { readonly link_id: string; readonly created_at: string; readonly created_by: "key" | "account" | (string & {}); readonly expires_at: string; readonly until?: "key"; readonly revoked: boolean }

export type ReceiptLink = { readonly link_id: string; readonly url: string; readonly expires_at: string }

export type ReceiptList = { readonly data: ReadonlyArray<ReceiptSummary>; readonly next_cursor: string | null }

export type ReceiptSummary = { readonly receipt_id: string; readonly target_vat_id: string; readonly name_match: "match" | "mismatch" | "not_queried" | "not_provided"; readonly street_match: "match" | "mismatch" | "not_queried" | "not_provided"; readonly zip_match: "match" | "mismatch" | "not_queried" | "not_provided"; readonly city_match: "match" | "mismatch" | "not_queried" | "not_provided"; readonly issued_at: string; readonly sandbox?: true }

export type Receipt = { readonly receipt_id: string; readonly target_vat_id: string; readonly requester_vat_id: string | null; readonly reference: string | null; readonly input: { readonly company_name: string; readonly company_street: string; readonly company_zip: string; readonly company_city: string }; readonly result: { readonly valid: boolean; readonly name_match: "match" | "mismatch" | "not_queried" | "not_provided"; readonly street_match: "match" | "mismatch" | "not_queried" | "not_provided"; readonly zip_match: "match" | "mismatch" | "not_queried" | "not_provided"; readonly city_match: "match" | "mismatch" | "not_queried" | "not_provided"; readonly official_name: string; readonly official_address: string }; readonly bzst_request_id: string | null; readonly issued_at: string; readonly source: string; readonly sandbox?: true }

export type Updates = { readonly data: ReadonlyArray<ValidationFinal | ValidationEnded | BatchCompleted>; readonly next_cursor: string; readonly has_more: boolean }

export type BatchCompleted = { readonly id: string; readonly timestamp: string; readonly type: "batch.completed"; readonly data: { readonly batch_id: string; readonly counts: { readonly final: number; readonly expired: number; readonly cancelled: number; readonly invalid_format: number; readonly duplicates: number }; readonly url: string } }

export type ValidationEnded = { readonly id: string; readonly timestamp: string; readonly type: "validation.expired" | "validation.cancelled" | (string & {}); readonly data: { readonly validation_id: string; readonly vat_id: string; readonly url: string; readonly reason: string | null } }

export type ValidationFinal = { readonly id: string; readonly timestamp: string; readonly type: "validation.final"; readonly data: { readonly validation_id: string; readonly vat_id: string; readonly url: string; readonly valid: boolean; readonly source: string; readonly source_timestamp: string; readonly receipt_id: string | null } }

export type Batch = { readonly batch_id: string; readonly status: "running" | "paused" | "finished" | "cancelling" | "cancelled" | (string & {}); readonly reason: "QUOTA" | null; readonly resets_at: string | null; readonly counts: { readonly total: number; readonly pending: number; readonly final: number; readonly invalid_format: number; readonly duplicates: number; readonly expired: number; readonly cancelled: number }; readonly accepted_at: string; readonly expires_at: string; readonly estimated_end: string | null }

export type BatchResults = { readonly data: ReadonlyArray<BatchResult>; readonly next_cursor: string | null }

export type BatchResult = { readonly custom_id: string | null; readonly vat_id: string | null; readonly reference?: string; readonly status: "pending" | "final" | "invalid_format" | "expired" | "cancelled" | (string & {}); readonly valid?: boolean; readonly company_name?: string | null; readonly company_address?: string | null; readonly source?: "vies" | "bzst" | "cache" | (string & {}); readonly source_timestamp?: string; readonly consultation_number?: string | null; readonly receipt_id?: string; readonly last_failure?: { readonly source: string | null; readonly code: string } | null }

export type BatchList = { readonly data: ReadonlyArray<Batch>; readonly next_cursor: string | null }

export type EndedValidation = { readonly validation_id: string; readonly vat_id: string; readonly reference?: string; readonly accepted_at: string; readonly expires_at: string; readonly attempts: number; readonly last_failure: { readonly source: string | null; readonly code: string } | null; readonly status: "expired" | "cancelled" | (string & {}); readonly reason: string | null }

export type FinalValidation = { readonly validation_id: string; readonly status: "final"; readonly reference?: string; readonly valid: boolean; readonly vat_id: string; readonly country_code: string; readonly vat_number: string; readonly company_name: string | null; readonly company_address: string | null; readonly source: "vies" | "bzst" | "cache" | (string & {}); readonly source_timestamp: string | null; readonly cache: boolean; readonly stale?: true; readonly qualified_confirmation: QualifiedConfirmation | QualifiedConfirmationLetters | null; readonly consultation_number: string | null; readonly request_id: string; readonly requested_at: string }

export type QualifiedConfirmationLetters = { readonly name_match: "A" | "B" | "C" | "D"; readonly street_match: "A" | "B" | "C" | "D"; readonly zip_match: "A" | "B" | "C" | "D"; readonly city_match: "A" | "B" | "C" | "D"; readonly confirmation_number: string | null; readonly receipt_id: string; readonly issued_at: string; readonly source: string }

export type QualifiedConfirmation = { readonly name_match: "match" | "mismatch" | "not_queried" | "not_provided"; readonly street_match: "match" | "mismatch" | "not_queried" | "not_provided"; readonly zip_match: "match" | "mismatch" | "not_queried" | "not_provided"; readonly city_match: "match" | "mismatch" | "not_queried" | "not_provided"; readonly receipt_id: string; readonly issued_at: string; readonly source: string }

export type PendingValidation = { readonly validation_id: string; readonly vat_id: string; readonly reference?: string; readonly accepted_at: string; readonly expires_at: string; readonly attempts: number; readonly last_failure: { readonly source: string | null; readonly code: string } | null; readonly status: "pending"; readonly next_attempt_at: string }

export type ValidationList = { readonly data: ReadonlyArray<ValidationSummary>; readonly next_cursor: string | null }

export type ValidationSummary = { readonly validation_id: string; readonly vat_id: string; readonly reference?: string; readonly accepted_at: string; readonly expires_at: string; readonly attempts: number; readonly last_failure: { readonly source: string | null; readonly code: string } | null; readonly status: "pending" | "final" | "expired" | "cancelled" | (string & {}); readonly next_attempt_at: string | null }

export type ValidationResult = { readonly valid: boolean; readonly vat_id: string; readonly country_code: string; readonly vat_number: string; readonly company_name: string | null; readonly company_address: string | null; readonly source: "vies" | "bzst" | "cache" | (string & {}); readonly source_timestamp: string | null; readonly cache: boolean; readonly stale?: true; readonly qualified_confirmation: QualifiedConfirmation | QualifiedConfirmationLetters | null; readonly consultation_number: string | null; readonly request_id: string; readonly requested_at: string }

/** Input and result of each operation. A result of `never` is no JSON: use `open`. */
export interface Operations {
  readonly validateVatId: { readonly input: { readonly path: { readonly vat_id: string }; readonly query?: { readonly requester_vat_id?: string; readonly company_name?: string; readonly company_street?: string; readonly company_city?: string; readonly company_zip?: string; readonly reference?: string; readonly match_format?: "words" | "letters"; readonly force_live?: "true" | "false" | "1" | "0"; readonly max_age?: number } }; readonly result: ValidationResult }
  readonly submitValidation: { readonly input: { readonly body: { readonly vat_id: string; readonly requester_vat_id?: string; readonly company?: { readonly name?: string; readonly street?: string; readonly zip?: string; readonly city?: string }; readonly force_live?: boolean; readonly max_age?: number; readonly reference?: string; readonly expires_in?: number } }; readonly result: FinalValidation | PendingValidation }
  readonly listValidations: { readonly input: { readonly query?: { readonly status?: "pending" | "final" | "expired" | "cancelled"; readonly reference?: string; readonly vat_id?: string; readonly limit?: number; readonly cursor?: string } }; readonly result: ValidationList }
  readonly getValidation: { readonly input: { readonly path: { readonly validation_id: string }; readonly query?: { readonly wait?: number } }; readonly result: PendingValidation | FinalValidation | EndedValidation }
  readonly cancelValidation: { readonly input: { readonly path: { readonly validation_id: string } }; readonly result: PendingValidation | FinalValidation | EndedValidation }
  readonly submitBatch: { readonly input: { readonly query?: { readonly max_age?: number }; readonly body: { readonly items: ReadonlyArray<{ readonly custom_id: string; readonly vat_id: string; readonly requester_vat_id?: string; readonly company_name?: string; readonly company_street?: string; readonly company_city?: string; readonly company_zip?: string; readonly reference?: string }> } }; readonly result: Batch }
  readonly listBatches: { readonly input: { readonly query?: { readonly limit?: number; readonly cursor?: string } }; readonly result: BatchList }
  readonly getBatch: { readonly input: { readonly path: { readonly batch_id: string }; readonly query?: { readonly wait?: number } }; readonly result: Batch }
  readonly listBatchResults: { readonly input: { readonly path: { readonly batch_id: string }; readonly query?: { readonly limit?: number; readonly cursor?: string } }; readonly result: BatchResults }
  readonly cancelBatch: { readonly input: { readonly path: { readonly batch_id: string } }; readonly result: Batch }
  readonly listUpdates: { readonly input: { readonly query?: { readonly after?: string; readonly types?: string; readonly limit?: number; readonly wait?: number } }; readonly result: Updates }
  readonly getQualifiedConfirmation: { readonly input: { readonly path: { readonly receipt_id: string } }; readonly result: Receipt }
  readonly listQualifiedConfirmations: { readonly input: { readonly query?: { readonly target_vat_id?: string; readonly limit?: number; readonly cursor?: string } }; readonly result: ReceiptList }
  readonly createReceiptLink: { readonly input: { readonly path: { readonly receipt_id: string }; readonly body?: { readonly expires_in_days?: number; readonly until?: "key" } }; readonly result: ReceiptLink }
  readonly listReceiptLinks: { readonly input: { readonly path: { readonly receipt_id: string } }; readonly result: ReceiptLinks }
  readonly revokeReceiptLink: { readonly input: { readonly path: { readonly receipt_id: string; readonly link_id: string } }; readonly result: ReceiptLinkRevoked }
  readonly openReceiptLink: { readonly input: { readonly path: { readonly token: string }; readonly query?: { readonly format?: "html" | "pdf" } }; readonly result: never }
  readonly registerAgent: { readonly input: { readonly body: { readonly email?: string; readonly agent_id?: string } }; readonly result: Registered }
  readonly rotateApiKey: { readonly input: { readonly body?: { readonly revoke_old?: boolean } }; readonly result: RotatedApiKey }
  readonly revokeOwnApiKey: { readonly input: {  }; readonly result: ApiKeySelfRevoked }
  readonly signUp: { readonly input: { readonly body: { readonly email: string; readonly password: string } }; readonly result: SignedUp }
  readonly verifyEmailByLink: { readonly input: { readonly query: { readonly token: string } }; readonly result: EmailVerified }
  readonly verifyEmail: { readonly input: { readonly body: { readonly token: string } }; readonly result: EmailVerified }
  readonly logIn: { readonly input: { readonly body: { readonly email: string; readonly password: string } }; readonly result: LoggedIn }
  readonly requestPasswordReset: { readonly input: { readonly body: { readonly email: string } }; readonly result: PasswordResetRequested }
  readonly showPasswordReset: { readonly input: { readonly query: { readonly token: string } }; readonly result: never }
  readonly resetPassword: { readonly input: { readonly body: { readonly token: string; readonly password: string } }; readonly result: PasswordReset }
  readonly changePassword: { readonly input: { readonly body: { readonly current_password: string; readonly new_password: string } }; readonly result: LoggedIn }
  readonly createApiKey: { readonly input: { readonly body?: { readonly name?: string } }; readonly result: CreatedApiKey }
  readonly listApiKeys: { readonly input: {  }; readonly result: ApiKeys }
  readonly claimApiKey: { readonly input: { readonly body: { readonly api_key: string } }; readonly result: ApiKey }
  readonly revokeApiKey: { readonly input: { readonly path: { readonly id: string } }; readonly result: ApiKeyRevoked }
  readonly getAuditProof: { readonly input: { readonly path: { readonly subject: string } }; readonly result: ProvedEvent }
  readonly getSourceHistory: { readonly input: { readonly query?: { readonly member_state?: "AT" | "BE" | "BG" | "CY" | "CZ" | "DE" | "DK" | "EE" | "EL" | "ES" | "FI" | "FR" | "HR" | "HU" | "IE" | "IT" | "LT" | "LU" | "LV" | "MT" | "NL" | "PL" | "PT" | "RO" | "SE" | "SI" | "SK" | "XI"; readonly days?: number } }; readonly result: SourceHistory }
  readonly getUsage: { readonly input: {  }; readonly result: Usage }
  readonly getHealth: { readonly input: {  }; readonly result: Health }
  readonly getSourceStatus: { readonly input: {  }; readonly result: SourceStatus }
}

export type Credential = "apiKey" | "either" | "none" | "token"

/** Method, path, credential, and whether an Idempotency-Key makes a repetition safe. */
export const operations: { readonly [Id in keyof Operations]: readonly [string, string, Credential, boolean] } = {
  validateVatId: ["GET","/v1/validate/{vat_id}","apiKey",true],
  submitValidation: ["POST","/v1/validations","apiKey",true],
  listValidations: ["GET","/v1/validations","apiKey",false],
  getValidation: ["GET","/v1/validations/{validation_id}","apiKey",false],
  cancelValidation: ["DELETE","/v1/validations/{validation_id}","apiKey",false],
  submitBatch: ["POST","/v1/batches","apiKey",true],
  listBatches: ["GET","/v1/batches","apiKey",false],
  getBatch: ["GET","/v1/batches/{batch_id}","apiKey",false],
  listBatchResults: ["GET","/v1/batches/{batch_id}/results","apiKey",false],
  cancelBatch: ["POST","/v1/batches/{batch_id}/cancel","apiKey",false],
  listUpdates: ["GET","/v1/updates","apiKey",false],
  getQualifiedConfirmation: ["GET","/v1/qualified-confirmations/{receipt_id}","either",false],
  listQualifiedConfirmations: ["GET","/v1/qualified-confirmations","either",false],
  createReceiptLink: ["POST","/v1/qualified-confirmations/{receipt_id}/links","either",false],
  listReceiptLinks: ["GET","/v1/qualified-confirmations/{receipt_id}/links","either",false],
  revokeReceiptLink: ["DELETE","/v1/qualified-confirmations/{receipt_id}/links/{link_id}","either",false],
  openReceiptLink: ["GET","/v1/receipt-links/{token}","none",false],
  registerAgent: ["POST","/v1/register","none",true],
  rotateApiKey: ["POST","/v1/keys/rotate","apiKey",false],
  revokeOwnApiKey: ["DELETE","/v1/keys/self","apiKey",false],
  signUp: ["POST","/v1/auth/signup","none",false],
  verifyEmailByLink: ["GET","/v1/auth/verify-email","none",false],
  verifyEmail: ["POST","/v1/auth/verify-email","none",false],
  logIn: ["POST","/v1/auth/login","none",false],
  requestPasswordReset: ["POST","/v1/auth/password-reset","none",false],
  showPasswordReset: ["GET","/v1/auth/password-reset","none",false],
  resetPassword: ["POST","/v1/auth/password-reset/confirm","none",false],
  changePassword: ["POST","/v1/auth/password","token",false],
  createApiKey: ["POST","/v1/auth/api-keys","token",false],
  listApiKeys: ["GET","/v1/auth/api-keys","token",false],
  claimApiKey: ["POST","/v1/auth/api-keys/claim","token",false],
  revokeApiKey: ["DELETE","/v1/auth/api-keys/{id}","token",false],
  getAuditProof: ["GET","/v1/audit/proofs/{subject}","apiKey",false],
  getSourceHistory: ["GET","/v1/status/history","none",false],
  getUsage: ["GET","/v1/usage","apiKey",false],
  getHealth: ["GET","/health","none",false],
  getSourceStatus: ["GET","/v1/status","none",false],
}
