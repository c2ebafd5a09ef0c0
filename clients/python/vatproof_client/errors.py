"""Errors of a call."""
from typing import Any, Literal, Optional, Union

from .operations import ErrorCode

# Codes of the client itself: no answer, no answer in time, an answer that is not the service's, an accepted validation that ended
# without an answer of a source.
ClientCode = Literal["UNREACHABLE", "TIMEOUT", "UNEXPECTED_RESPONSE", "EXPIRED", "CANCELLED"]

# Codes that a later, equal request can end.
_RETRYABLE = frozenset(
    [
        "REQUEST_TIMEOUT",
        "IDEMPOTENCY_IN_PROGRESS",
        "RATE_LIMIT_EXCEEDED",
        "INTERNAL_ERROR",
        "SOURCE_UNAVAILABLE",
        "SERVICE_UNAVAILABLE",
        "UNREACHABLE",
        "TIMEOUT",
        "EXPIRED",
    ]
)


class VatproofError(Exception):
    """A call without a result. Decide by `code`. An outage is such an error: it says nothing about the VAT ID.

    `retryable` tells whether the same call may succeed later, not before `retry_after_seconds`. `status` is 0 without a response.
    """

    def __init__(
        self,
        code: Union[ErrorCode, ClientCode, str],
        message: str,
        *,
        status: int = 0,
        request_id: Optional[str] = None,
        details: Any = None,
        retry_after_seconds: Optional[int] = None,
    ) -> None:
        super().__init__(f"{code}: {message}" + (f" (request {request_id})" if request_id else ""))
        self.code = code
        self.status = status
        self.request_id = request_id
        self.details = details
        self.retry_after_seconds = retry_after_seconds
        foreign = code == "UNEXPECTED_RESPONSE" and (status >= 500 or status == 429)
        self.retryable = code in _RETRYABLE or foreign
