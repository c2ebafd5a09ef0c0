"""What a caller needs beyond single calls: verdicts, later answers, batches."""
import time
from typing import Any, Callable, Iterable, Iterator, Literal, Optional, TypeVar, Union

from .errors import VatproofError
from .operations import (
    Batch,
    BatchResult,
    FinalValidation,
    PendingValidation,
    SubmitBatchBodyItemsItem,
    SubmitValidationBody,
    ValidateVatIdQuery,
    ValidationResult,
)
from .transport import Transport

State = TypeVar("State")
IdempotencyKey = Union[str, None, Literal[False]]

# The service waits 30 s for an answer.
_LONG_POLL_SECONDS = 30
# A replica with too many waiting clients answers at once.
_LEAST_POLL_SECONDS = 1.0
# Wait after a failed poll without a Retry-After: an outage of the service does not end a wait.
_FAILED_POLL_SECONDS = 5.0
_PAGE_SIZE = 500


class Submission:
    """An accepted validation. `accepted` is its state after the submission."""

    def __init__(self, client: "Vatproof", accepted: Union[PendingValidation, FinalValidation]) -> None:
        self._client = client
        self.accepted = accepted

    def final(self, timeout: float = 15 * 60) -> FinalValidation:
        """Waits for the source's answer. An end without one is an error: EXPIRED, CANCELLED, or TIMEOUT while it is pending."""
        return self._client._final(self.accepted, timeout)


class BatchSubmission:
    """An accepted batch. `accepted` is its state after the upload."""

    def __init__(self, client: "Vatproof", accepted: Batch) -> None:
        self._client = client
        self.accepted = accepted

    def results(self, timeout: float = 24 * 60 * 60) -> Iterator[BatchResult]:
        """Waits for the end of the batch and gives the results in the order of the upload."""
        return self._client.batches.results(self.accepted["batch_id"], timeout)


class Validations:
    def __init__(self, client: "Vatproof") -> None:
        self._client = client

    def submit(self, body: SubmitValidationBody, *, idempotency_key: IdempotencyKey = None) -> Submission:
        """Accepts a validation that is answered even if no source answers now."""
        call = {"body": body, "prefer": "respond-async", "idempotency_key": idempotency_key}
        return Submission(self._client, self._client._json("POST", "/v1/validations", "apiKey", **call))

    def final(self, validation_id: str, timeout: float = 15 * 60) -> FinalValidation:
        """Waits for the answer to an earlier submission."""
        return self._client._final(self._client.get_validation({"validation_id": validation_id}), timeout)


class Batches:
    def __init__(self, client: "Vatproof") -> None:
        self._client = client

    def submit(
        self,
        items: Iterable[SubmitBatchBodyItemsItem],
        *,
        max_age: Optional[int] = None,
        idempotency_key: IdempotencyKey = None,
    ) -> BatchSubmission:
        """Uploads up to 50,000 items."""
        accepted = self._client._json(
            "POST",
            "/v1/batches",
            "apiKey",
            body={"items": list(items)},
            query={"max_age": max_age},
            idempotency_key=idempotency_key,
        )
        return BatchSubmission(self._client, accepted)

    def results(self, batch_id: str, timeout: float = 24 * 60 * 60) -> Iterator[BatchResult]:
        """Waits for the end of a batch and gives its results in the order of the upload."""
        self._client._wait_for(
            lambda wait: self._client.get_batch({"batch_id": batch_id}, {"wait": wait}),
            lambda batch: batch["status"] not in ("running", "paused", "cancelling"),
            timeout,
        )
        cursor: Optional[str] = None
        while True:
            query: Any = {"limit": _PAGE_SIZE, "cursor": cursor}
            page = self._client.list_batch_results({"batch_id": batch_id}, query)
            yield from page["data"]
            cursor = page["next_cursor"]
            if cursor is None:
                return


class Vatproof(Transport):
    """Calls any operation by its name in /openapi.json (`get_usage()`), and does more for validations and batches."""

    @property
    def validations(self) -> Validations:
        return Validations(self)

    @property
    def batches(self) -> Batches:
        return Batches(self)

    def validate(
        self, vat_id: str, query: Optional[ValidateVatIdQuery] = None, *, idempotency_key: IdempotencyKey = None
    ) -> ValidationResult:
        """Gives a source's answer, possibly a cached one. Without one it fails: an outage is never `valid: False`."""
        result = self.validate_vat_id({"vat_id": vat_id}, query, idempotency_key=idempotency_key)
        if isinstance(result.get("valid"), bool):
            return result
        raise VatproofError("UNEXPECTED_RESPONSE", "The response has no verdict", status=200)

    def open(self, path: str, accept: str) -> bytes:
        """Gets a path of the service as bytes: the PDF of a receipt."""
        return self._send("GET", path, "either", accept)

    def _final(self, state: Any, timeout: float) -> FinalValidation:
        validation_id = state["validation_id"]
        if state["status"] == "pending":
            state = self._wait_for(
                lambda wait: self.get_validation({"validation_id": validation_id}, {"wait": wait}),
                lambda found: found["status"] != "pending",
                timeout,
            )
        if state["status"] == "final" and isinstance(state.get("valid"), bool):
            final: FinalValidation = state
            return final
        code = "CANCELLED" if state["status"] == "cancelled" else "EXPIRED"
        raise VatproofError(code, f"The validation {validation_id} ended without an answer of a source")

    def _wait_for(self, poll: Callable[[int], State], is_done: Callable[[State], bool], timeout: float) -> State:
        """Long polls until `is_done`."""
        end = time.monotonic() + timeout
        longest = max(0, min(_LONG_POLL_SECONDS, int(self._try_timeout - 5)))
        while True:
            started = time.monotonic()
            try:
                state = poll(max(0, min(longest, int(end - started))))
                if is_done(state):
                    return state
                wait = max(0.0, _LEAST_POLL_SECONDS - (time.monotonic() - started))
            except VatproofError as error:
                if not error.retryable:
                    raise
                wait = _FAILED_POLL_SECONDS if error.retry_after_seconds is None else float(error.retry_after_seconds)
            if time.monotonic() + wait >= end:
                raise VatproofError("TIMEOUT", "There is no answer yet; ask for it later by its id")
            time.sleep(wait)
