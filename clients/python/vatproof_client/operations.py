"""Written from openapi.json by scripts/client-types.mjs. Do not edit."""
from typing import Any, Dict, List, Literal, NotRequired, Optional, TypedDict, Union

ErrorCode = Literal["VALIDATION_ERROR", "INVALID_VAT_ID", "INVALID_REQUESTER_VAT_ID", "QUALIFIED_CONFIRMATION_UNSUPPORTED", "DISPOSABLE_EMAIL", "INVALID_TOKEN", "TOKEN_EXPIRED", "UNAUTHORIZED", "PAYMENT_REQUIRED", "NOT_FOUND", "METHOD_NOT_ALLOWED", "REQUEST_TIMEOUT", "CONFLICT", "API_KEY_NOT_CLAIMABLE", "API_KEY_REPLACED", "IDEMPOTENCY_IN_PROGRESS", "RECEIPT_ERASED", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE", "QUALIFIED_CONFIRMATION_REFUSED", "IDEMPOTENCY_KEY_REUSED", "RATE_LIMIT_EXCEEDED", "REQUEST_HEADER_FIELDS_TOO_LARGE", "INTERNAL_ERROR", "EVIDENCE_ALTERED", "SOURCE_UNAVAILABLE", "SERVICE_UNAVAILABLE"]


class ErrorErrorDetailsItem(TypedDict):
    field: str
    message: str


class ErrorErrorDetails2(TypedDict):
    plan: str
    limit: int
    resets_at: Union[str, None]
    upgrade_url: str
    contact: Union[str, None]


class ErrorErrorDetails3(TypedDict):
    position: int
    proof: Union[str, None]


class ErrorError(TypedDict):
    code: str
    message: str
    request_id: str
    details: NotRequired[Union[List["ErrorErrorDetailsItem"], "ErrorErrorDetails2", "ErrorErrorDetails3"]]


class Error(TypedDict):
    error: "ErrorError"


class SourceStatusSourcesCache(TypedDict):
    status: str


class SourceStatusSources(TypedDict):
    vies: "OneSource"
    bzst: "OneSource"
    cache: "SourceStatusSourcesCache"


class SourceStatus(TypedDict):
    status: str
    timestamp: str
    sources: "SourceStatusSources"
    active_source: str
    failover_active: bool
    member_states: Dict[str, "MemberStateStatus"]


class MemberStateStatus(TypedDict):
    status: str
    since: str


class OneSource(TypedDict):
    status: str
    latency_ms: Union[int, None]
    last_checked: str


class Health(TypedDict):
    status: str
    timestamp: str
    version: str


class UsagePeriod(TypedDict):
    start: str
    end: str


class UsageRequests(TypedDict):
    used: int
    remaining: int
    limit: int


class Usage(TypedDict):
    plan: str
    period: "UsagePeriod"
    requests: "UsageRequests"


class SourceHistory(TypedDict):
    timestamp: str
    resolution: str
    member_states: Dict[str, List["SourceCalls"]]


SourceCalls = TypedDict("SourceCalls", {"from": str, "source": str, "calls": int, "answered": int, "failed": Dict[str, int], "mean_ms": Union[int, None], "max_ms": Union[int, None]})


class ProvedEvent(TypedDict):
    position: int
    event: "AuditEvent"
    proof: str
    verifier_key: Union[str, None]


class AuditEvent(TypedDict):
    causation_id: Union[str, None]
    correlation_id: str
    data: Any
    event_id: str
    log_id: int
    metadata: Any
    meter_id: Union[str, None]
    occurred_at: str
    personal: NotRequired[Any]
    position: int
    recorded_at: str
    schema_version: int
    stream_id: str
    trace_id: Union[str, None]
    type: str
    units: int
    version: int


class AuditEvents(TypedDict):
    data: List["AuditEvent"]
    next_cursor: Union[str, None]


class ApiKeyRevoked(TypedDict):
    message: str


class ApiKey(TypedDict):
    id: str
    prefix: str
    name: str
    created_at: str
    revoked: bool


class ApiKeys(TypedDict):
    api_keys: List["ApiKey"]


class CreatedApiKey(TypedDict):
    id: str
    prefix: str
    name: str
    created_at: str
    key: str


class LoggedIn(TypedDict):
    token: str
    expires_in: int


class PasswordReset(TypedDict):
    message: str


class PasswordResetRequested(TypedDict):
    message: str


class EmailVerified(TypedDict):
    message: str


class SignedUp(TypedDict):
    message: str
    user_id: str
    token: NotRequired[str]
    auto_verified: NotRequired[Literal[True]]


class ApiKeySelfRevoked(TypedDict):
    message: str


class RotatedApiKey(TypedDict):
    id: str
    prefix: str
    key: str
    old_key_valid_until: Union[str, None]


class Registered(TypedDict):
    api_key: str
    tier: str
    quota: int


class ReceiptLinkRevoked(TypedDict):
    message: str


class ReceiptLinks(TypedDict):
    data: List["ListedReceiptLink"]


class ListedReceiptLink(TypedDict):
    link_id: str
    created_at: str
    created_by: str
    expires_at: str
    until: NotRequired[str]
    revoked: bool


class ReceiptLink(TypedDict):
    link_id: str
    url: str
    expires_at: str


class ReceiptList(TypedDict):
    data: List["ReceiptSummary"]
    next_cursor: Union[str, None]


class ReceiptSummary(TypedDict):
    receipt_id: str
    target_vat_id: str
    name_match: Literal["match", "mismatch", "not_queried", "not_provided"]
    street_match: Literal["match", "mismatch", "not_queried", "not_provided"]
    zip_match: Literal["match", "mismatch", "not_queried", "not_provided"]
    city_match: Literal["match", "mismatch", "not_queried", "not_provided"]
    issued_at: str
    sandbox: NotRequired[Literal[True]]


class ReceiptInput(TypedDict):
    company_name: str
    company_street: str
    company_zip: str
    company_city: str


class ReceiptResult(TypedDict):
    valid: bool
    name_match: Literal["match", "mismatch", "not_queried", "not_provided"]
    street_match: Literal["match", "mismatch", "not_queried", "not_provided"]
    zip_match: Literal["match", "mismatch", "not_queried", "not_provided"]
    city_match: Literal["match", "mismatch", "not_queried", "not_provided"]
    official_name: str
    official_address: str


class Receipt(TypedDict):
    receipt_id: str
    target_vat_id: str
    requester_vat_id: Union[str, None]
    reference: Union[str, None]
    input: "ReceiptInput"
    result: "ReceiptResult"
    bzst_request_id: Union[str, None]
    issued_at: str
    source: str
    sandbox: NotRequired[Literal[True]]


class Updates(TypedDict):
    data: List[Union["ValidationFinal", "ValidationEnded", "BatchCompleted"]]
    next_cursor: str
    has_more: bool


class BatchCompletedDataCounts(TypedDict):
    final: int
    expired: int
    cancelled: int
    invalid_format: int
    duplicates: int


class BatchCompletedData(TypedDict):
    batch_id: str
    counts: "BatchCompletedDataCounts"
    url: str


class BatchCompleted(TypedDict):
    id: str
    timestamp: str
    type: str
    data: "BatchCompletedData"


class ValidationEndedData(TypedDict):
    validation_id: str
    vat_id: str
    url: str
    reason: Union[str, None]


class ValidationEnded(TypedDict):
    id: str
    timestamp: str
    type: str
    data: "ValidationEndedData"


class ValidationFinalData(TypedDict):
    validation_id: str
    vat_id: str
    url: str
    valid: bool
    source: str
    source_timestamp: str
    receipt_id: Union[str, None]


class ValidationFinal(TypedDict):
    id: str
    timestamp: str
    type: str
    data: "ValidationFinalData"


class BatchCounts(TypedDict):
    total: int
    pending: int
    final: int
    invalid_format: int
    duplicates: int
    expired: int
    cancelled: int


class Batch(TypedDict):
    batch_id: str
    status: str
    reason: Union[str, None]
    resets_at: Union[str, None]
    counts: "BatchCounts"
    accepted_at: str
    expires_at: str
    estimated_end: Union[str, None]


class BatchResults(TypedDict):
    data: List["BatchResult"]
    next_cursor: Union[str, None]


class BatchResultLastFailure(TypedDict):
    source: Union[str, None]
    code: str


class BatchResult(TypedDict):
    custom_id: Union[str, None]
    vat_id: Union[str, None]
    reference: NotRequired[str]
    status: str
    valid: NotRequired[bool]
    company_name: NotRequired[Union[str, None]]
    company_address: NotRequired[Union[str, None]]
    source: NotRequired[str]
    source_timestamp: NotRequired[str]
    consultation_number: NotRequired[Union[str, None]]
    receipt_id: NotRequired[str]
    last_failure: NotRequired[Union["BatchResultLastFailure", None]]


class BatchList(TypedDict):
    data: List["Batch"]
    next_cursor: Union[str, None]


class EndedValidationLastFailure(TypedDict):
    source: Union[str, None]
    code: str


class EndedValidation(TypedDict):
    validation_id: str
    vat_id: str
    reference: NotRequired[str]
    accepted_at: str
    expires_at: str
    attempts: int
    last_failure: Union["EndedValidationLastFailure", None]
    status: str
    reason: Union[str, None]


class FinalValidation(TypedDict):
    validation_id: str
    status: str
    reference: NotRequired[str]
    valid: bool
    vat_id: str
    country_code: str
    vat_number: str
    company_name: Union[str, None]
    company_address: Union[str, None]
    source: str
    source_timestamp: Union[str, None]
    cache: bool
    stale: NotRequired[Literal[True]]
    qualified_confirmation: Union["QualifiedConfirmation", "QualifiedConfirmationLetters", None]
    consultation_number: Union[str, None]
    request_id: str
    requested_at: str


class QualifiedConfirmationLetters(TypedDict):
    name_match: Literal["A", "B", "C", "D"]
    street_match: Literal["A", "B", "C", "D"]
    zip_match: Literal["A", "B", "C", "D"]
    city_match: Literal["A", "B", "C", "D"]
    confirmation_number: Union[str, None]
    receipt_id: str
    issued_at: str
    source: str


class QualifiedConfirmation(TypedDict):
    name_match: Literal["match", "mismatch", "not_queried", "not_provided"]
    street_match: Literal["match", "mismatch", "not_queried", "not_provided"]
    zip_match: Literal["match", "mismatch", "not_queried", "not_provided"]
    city_match: Literal["match", "mismatch", "not_queried", "not_provided"]
    receipt_id: str
    issued_at: str
    source: str


class PendingValidationLastFailure(TypedDict):
    source: Union[str, None]
    code: str


class PendingValidation(TypedDict):
    validation_id: str
    vat_id: str
    reference: NotRequired[str]
    accepted_at: str
    expires_at: str
    attempts: int
    last_failure: Union["PendingValidationLastFailure", None]
    status: str
    next_attempt_at: str


class ValidationList(TypedDict):
    data: List["ValidationSummary"]
    next_cursor: Union[str, None]


class ValidationSummaryLastFailure(TypedDict):
    source: Union[str, None]
    code: str


class ValidationSummary(TypedDict):
    validation_id: str
    vat_id: str
    reference: NotRequired[str]
    accepted_at: str
    expires_at: str
    attempts: int
    last_failure: Union["ValidationSummaryLastFailure", None]
    status: str
    next_attempt_at: Union[str, None]


class ValidationResult(TypedDict):
    valid: bool
    vat_id: str
    country_code: str
    vat_number: str
    company_name: Union[str, None]
    company_address: Union[str, None]
    source: str
    source_timestamp: Union[str, None]
    cache: bool
    stale: NotRequired[Literal[True]]
    qualified_confirmation: Union["QualifiedConfirmation", "QualifiedConfirmationLetters", None]
    consultation_number: Union[str, None]
    request_id: str
    requested_at: str


class ValidateVatIdPath(TypedDict):
    vat_id: str


class ValidateVatIdQuery(TypedDict):
    requester_vat_id: NotRequired[str]
    company_name: NotRequired[str]
    company_street: NotRequired[str]
    company_city: NotRequired[str]
    company_zip: NotRequired[str]
    reference: NotRequired[str]
    match_format: NotRequired[Literal["words", "letters"]]
    force_live: NotRequired[Literal["true", "false", "1", "0"]]
    max_age: NotRequired[int]


class SubmitValidationBodyCompany(TypedDict):
    name: NotRequired[str]
    street: NotRequired[str]
    zip: NotRequired[str]
    city: NotRequired[str]


class SubmitValidationBody(TypedDict):
    vat_id: str
    requester_vat_id: NotRequired[str]
    company: NotRequired["SubmitValidationBodyCompany"]
    force_live: NotRequired[bool]
    max_age: NotRequired[int]
    reference: NotRequired[str]
    expires_in: NotRequired[int]


class ListValidationsQuery(TypedDict):
    status: NotRequired[Literal["pending", "final", "expired", "cancelled"]]
    reference: NotRequired[str]
    vat_id: NotRequired[str]
    limit: NotRequired[int]
    cursor: NotRequired[str]


class GetValidationPath(TypedDict):
    validation_id: str


class GetValidationQuery(TypedDict):
    wait: NotRequired[int]


class CancelValidationPath(TypedDict):
    validation_id: str


class SubmitBatchBodyItemsItem(TypedDict):
    custom_id: str
    vat_id: str
    requester_vat_id: NotRequired[str]
    company_name: NotRequired[str]
    company_street: NotRequired[str]
    company_city: NotRequired[str]
    company_zip: NotRequired[str]
    reference: NotRequired[str]


class SubmitBatchBody(TypedDict):
    items: List["SubmitBatchBodyItemsItem"]


class SubmitBatchQuery(TypedDict):
    max_age: NotRequired[int]


class ListBatchesQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]


class GetBatchPath(TypedDict):
    batch_id: str


class GetBatchQuery(TypedDict):
    wait: NotRequired[int]


class ListBatchResultsPath(TypedDict):
    batch_id: str


class ListBatchResultsQuery(TypedDict):
    limit: NotRequired[int]
    cursor: NotRequired[str]


class CancelBatchPath(TypedDict):
    batch_id: str


class ListUpdatesQuery(TypedDict):
    after: NotRequired[str]
    types: NotRequired[str]
    limit: NotRequired[int]
    wait: NotRequired[int]


class GetQualifiedConfirmationPath(TypedDict):
    receipt_id: str


class ListQualifiedConfirmationsQuery(TypedDict):
    target_vat_id: NotRequired[str]
    limit: NotRequired[int]
    cursor: NotRequired[str]


class CreateReceiptLinkPath(TypedDict):
    receipt_id: str


class CreateReceiptLinkBody(TypedDict):
    expires_in_days: NotRequired[int]
    until: NotRequired[Literal["key"]]


class ListReceiptLinksPath(TypedDict):
    receipt_id: str


class RevokeReceiptLinkPath(TypedDict):
    receipt_id: str
    link_id: str


class OpenReceiptLinkPath(TypedDict):
    token: str


class OpenReceiptLinkQuery(TypedDict):
    format: NotRequired[Literal["html", "pdf"]]


class RegisterAgentBody(TypedDict):
    email: NotRequired[str]
    agent_id: NotRequired[str]


class RotateApiKeyBody(TypedDict):
    revoke_old: NotRequired[bool]


class SignUpBody(TypedDict):
    email: str
    password: str


class VerifyEmailByLinkQuery(TypedDict):
    token: str


class VerifyEmailBody(TypedDict):
    token: str


class LogInBody(TypedDict):
    email: str
    password: str


class RequestPasswordResetBody(TypedDict):
    email: str


class ShowPasswordResetQuery(TypedDict):
    token: str


class ResetPasswordBody(TypedDict):
    token: str
    password: str


class ChangePasswordBody(TypedDict):
    current_password: str
    new_password: str


class CreateApiKeyBody(TypedDict):
    name: NotRequired[str]


class ClaimApiKeyBody(TypedDict):
    api_key: str


class RevokeApiKeyPath(TypedDict):
    id: str


class GetAuditProofPath(TypedDict):
    subject: str


class GetSourceHistoryQuery(TypedDict):
    member_state: NotRequired[Literal["AT", "BE", "BG", "CY", "CZ", "DE", "DK", "EE", "EL", "ES", "FI", "FR", "HR", "HU", "IE", "IT", "LT", "LU", "LV", "MT", "NL", "PL", "PT", "RO", "SE", "SI", "SK", "XI"]]
    days: NotRequired[int]


class Operations:
    """One method for each operation. `path`, `query` and `body` are as in openapi.json."""

    def _json(self, method: str, route: str, credential: str, **more: Any) -> Any:
        raise NotImplementedError

    def _bytes(self, method: str, route: str, credential: str, **more: Any) -> bytes:
        raise NotImplementedError

    def validate_vat_id(self, path: "ValidateVatIdPath", query: Optional["ValidateVatIdQuery"] = None, idempotency_key: Union[str, None, Literal[False]] = None) -> "ValidationResult":
        result: "ValidationResult" = self._json("GET", "/v1/validate/{vat_id}", "apiKey", path=path, query=query, idempotency_key=idempotency_key)
        return result

    def submit_validation(self, body: "SubmitValidationBody", idempotency_key: Union[str, None, Literal[False]] = None) -> Union["FinalValidation", "PendingValidation"]:
        result: Union["FinalValidation", "PendingValidation"] = self._json("POST", "/v1/validations", "apiKey", body=body, idempotency_key=idempotency_key)
        return result

    def list_validations(self, query: Optional["ListValidationsQuery"] = None) -> "ValidationList":
        result: "ValidationList" = self._json("GET", "/v1/validations", "apiKey", query=query)
        return result

    def get_validation(self, path: "GetValidationPath", query: Optional["GetValidationQuery"] = None) -> Union["PendingValidation", "FinalValidation", "EndedValidation"]:
        result: Union["PendingValidation", "FinalValidation", "EndedValidation"] = self._json("GET", "/v1/validations/{validation_id}", "apiKey", path=path, query=query)
        return result

    def cancel_validation(self, path: "CancelValidationPath") -> Union["PendingValidation", "FinalValidation", "EndedValidation"]:
        result: Union["PendingValidation", "FinalValidation", "EndedValidation"] = self._json("DELETE", "/v1/validations/{validation_id}", "apiKey", path=path)
        return result

    def submit_batch(self, body: "SubmitBatchBody", query: Optional["SubmitBatchQuery"] = None, idempotency_key: Union[str, None, Literal[False]] = None) -> "Batch":
        result: "Batch" = self._json("POST", "/v1/batches", "apiKey", query=query, body=body, idempotency_key=idempotency_key)
        return result

    def list_batches(self, query: Optional["ListBatchesQuery"] = None) -> "BatchList":
        result: "BatchList" = self._json("GET", "/v1/batches", "apiKey", query=query)
        return result

    def get_batch(self, path: "GetBatchPath", query: Optional["GetBatchQuery"] = None) -> "Batch":
        result: "Batch" = self._json("GET", "/v1/batches/{batch_id}", "apiKey", path=path, query=query)
        return result

    def list_batch_results(self, path: "ListBatchResultsPath", query: Optional["ListBatchResultsQuery"] = None) -> "BatchResults":
        result: "BatchResults" = self._json("GET", "/v1/batches/{batch_id}/results", "apiKey", path=path, query=query)
        return result

    def cancel_batch(self, path: "CancelBatchPath") -> "Batch":
        result: "Batch" = self._json("POST", "/v1/batches/{batch_id}/cancel", "apiKey", path=path)
        return result

    def list_updates(self, query: Optional["ListUpdatesQuery"] = None) -> "Updates":
        result: "Updates" = self._json("GET", "/v1/updates", "apiKey", query=query)
        return result

    def get_qualified_confirmation(self, path: "GetQualifiedConfirmationPath") -> "Receipt":
        result: "Receipt" = self._json("GET", "/v1/qualified-confirmations/{receipt_id}", "either", path=path)
        return result

    def list_qualified_confirmations(self, query: Optional["ListQualifiedConfirmationsQuery"] = None) -> "ReceiptList":
        result: "ReceiptList" = self._json("GET", "/v1/qualified-confirmations", "either", query=query)
        return result

    def create_receipt_link(self, path: "CreateReceiptLinkPath", body: Optional["CreateReceiptLinkBody"] = None) -> "ReceiptLink":
        result: "ReceiptLink" = self._json("POST", "/v1/qualified-confirmations/{receipt_id}/links", "either", path=path, body=body)
        return result

    def list_receipt_links(self, path: "ListReceiptLinksPath") -> "ReceiptLinks":
        result: "ReceiptLinks" = self._json("GET", "/v1/qualified-confirmations/{receipt_id}/links", "either", path=path)
        return result

    def revoke_receipt_link(self, path: "RevokeReceiptLinkPath") -> "ReceiptLinkRevoked":
        result: "ReceiptLinkRevoked" = self._json("DELETE", "/v1/qualified-confirmations/{receipt_id}/links/{link_id}", "either", path=path)
        return result

    def open_receipt_link(self, path: "OpenReceiptLinkPath", query: Optional["OpenReceiptLinkQuery"] = None) -> bytes:
        result: bytes = self._bytes("GET", "/v1/receipt-links/{token}", "none", path=path, query=query)
        return result

    def register_agent(self, body: "RegisterAgentBody", idempotency_key: Union[str, None, Literal[False]] = None) -> "Registered":
        result: "Registered" = self._json("POST", "/v1/register", "none", body=body, idempotency_key=idempotency_key)
        return result

    def rotate_api_key(self, body: Optional["RotateApiKeyBody"] = None) -> "RotatedApiKey":
        result: "RotatedApiKey" = self._json("POST", "/v1/keys/rotate", "apiKey", body=body)
        return result

    def revoke_own_api_key(self) -> "ApiKeySelfRevoked":
        result: "ApiKeySelfRevoked" = self._json("DELETE", "/v1/keys/self", "apiKey")
        return result

    def sign_up(self, body: "SignUpBody") -> "SignedUp":
        result: "SignedUp" = self._json("POST", "/v1/auth/signup", "none", body=body)
        return result

    def verify_email_by_link(self, query: "VerifyEmailByLinkQuery") -> "EmailVerified":
        result: "EmailVerified" = self._json("GET", "/v1/auth/verify-email", "none", query=query)
        return result

    def verify_email(self, body: "VerifyEmailBody") -> "EmailVerified":
        result: "EmailVerified" = self._json("POST", "/v1/auth/verify-email", "none", body=body)
        return result

    def log_in(self, body: "LogInBody") -> "LoggedIn":
        result: "LoggedIn" = self._json("POST", "/v1/auth/login", "none", body=body)
        return result

    def request_password_reset(self, body: "RequestPasswordResetBody") -> "PasswordResetRequested":
        result: "PasswordResetRequested" = self._json("POST", "/v1/auth/password-reset", "none", body=body)
        return result

    def show_password_reset(self, query: "ShowPasswordResetQuery") -> bytes:
        result: bytes = self._bytes("GET", "/v1/auth/password-reset", "none", query=query)
        return result

    def reset_password(self, body: "ResetPasswordBody") -> "PasswordReset":
        result: "PasswordReset" = self._json("POST", "/v1/auth/password-reset/confirm", "none", body=body)
        return result

    def change_password(self, body: "ChangePasswordBody") -> "LoggedIn":
        result: "LoggedIn" = self._json("POST", "/v1/auth/password", "token", body=body)
        return result

    def create_api_key(self, body: Optional["CreateApiKeyBody"] = None) -> "CreatedApiKey":
        result: "CreatedApiKey" = self._json("POST", "/v1/auth/api-keys", "token", body=body)
        return result

    def list_api_keys(self) -> "ApiKeys":
        result: "ApiKeys" = self._json("GET", "/v1/auth/api-keys", "token")
        return result

    def claim_api_key(self, body: "ClaimApiKeyBody") -> "ApiKey":
        result: "ApiKey" = self._json("POST", "/v1/auth/api-keys/claim", "token", body=body)
        return result

    def revoke_api_key(self, path: "RevokeApiKeyPath") -> "ApiKeyRevoked":
        result: "ApiKeyRevoked" = self._json("DELETE", "/v1/auth/api-keys/{id}", "token", path=path)
        return result

    def get_audit_proof(self, path: "GetAuditProofPath") -> "ProvedEvent":
        result: "ProvedEvent" = self._json("GET", "/v1/audit/proofs/{subject}", "apiKey", path=path)
        return result

    def get_source_history(self, query: Optional["GetSourceHistoryQuery"] = None) -> "SourceHistory":
        result: "SourceHistory" = self._json("GET", "/v1/status/history", "none", query=query)
        return result

    def get_usage(self) -> "Usage":
        result: "Usage" = self._json("GET", "/v1/usage", "apiKey")
        return result

    def get_health(self) -> "Health":
        result: "Health" = self._json("GET", "/health", "none")
        return result

    def get_source_status(self) -> "SourceStatus":
        result: "SourceStatus" = self._json("GET", "/v1/status", "none")
        return result
