"""HTTP with bounded waits and safe retries."""
import http.client
import json
import random
import re
import time
import uuid
from email.message import Message
from typing import Any, Dict, Literal, Mapping, NamedTuple, Optional, Union
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

from .errors import VatproofError
from .operations import Operations

# A larger body is no answer of the service.
_MAX_BODY_BYTES = 32 * 1024 * 1024
# Longest wait between two tries without a Retry-After.
_MAX_BACKOFF_SECONDS = 8.0


class _NoRedirect(HTTPRedirectHandler):
    """A redirect would carry the API key to another address."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class _Call(NamedTuple):
    method: str
    url: str
    headers: Dict[str, str]
    body: Optional[bytes]
    repeatable: bool


def _printable(name: str, text: str) -> str:
    # A header with another character fails with a message that quotes it.
    if not re.fullmatch(r"[\x21-\x7e]{1,1000}", text):
        raise ValueError(f"{name} has a character that no header may have")
    return text


def _parse(status: int, body: bytes, retry_after: Optional[int] = None) -> Dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        value = None
    if isinstance(value, dict):
        return value
    raise VatproofError(
        "UNEXPECTED_RESPONSE",
        f"HTTP {status} without the service's JSON: check base_url and what is in front of the service",
        status=status,
        retry_after_seconds=retry_after,
    )


def _refusal(status: int, headers: Message, body: bytes) -> VatproofError:
    after = headers.get("Retry-After") or ""
    seconds = int(after) if re.fullmatch(r"[0-9]{1,9}", after) else None
    try:
        error = _parse(status, body, seconds).get("error")
    except VatproofError as unexpected:
        return unexpected
    if not isinstance(error, dict) or not isinstance(error.get("code"), str):
        message = f"HTTP {status} without an error of the service"
        return VatproofError("UNEXPECTED_RESPONSE", message, status=status, retry_after_seconds=seconds)
    return VatproofError(
        error["code"],
        str(error.get("message")),
        status=status,
        request_id=error.get("request_id"),
        details=error.get("details"),
        retry_after_seconds=seconds,
    )


def _may_retry(error: VatproofError, repeatable: bool) -> bool:
    # An outage of the sources is not retried: only three of them per VAT ID and hour are free, and a submission answers it later.
    # A lost response is retried only if the repetition is charged and executed once.
    if error.code in ("SOURCE_UNAVAILABLE", "INTERNAL_ERROR"):
        return False
    return error.retryable and (repeatable or error.status == 429)


class Transport(Operations):
    """Sends the calls of `Operations`.

    `retries`: further tries of one call. `try_timeout`: longest wait for the next byte of a response, and longest time of its body, in
    seconds. `timeout`: longest time of one call before its last try, with its retries and the waits between them.
    """

    def __init__(
        self,
        base_url: str,
        api_key: Optional[str] = None,
        *,
        token: Optional[str] = None,
        retries: int = 3,
        try_timeout: float = 40.0,
        timeout: float = 120.0,
    ) -> None:
        if not re.fullmatch(r"https?://[^\s@?#]+", base_url):
            raise ValueError("base_url is no URL such as https://vat.example.com")
        self._base = base_url.rstrip("/")
        self._api_key = None if api_key is None else _printable("api_key", api_key)
        self._token = None if token is None else _printable("token", token)
        self._retries = retries
        self._try_timeout = try_timeout
        self._timeout = timeout
        self._opener = build_opener(_NoRedirect)

    def _json(self, method: str, route: str, credential: str, **more: Any) -> Any:
        return _parse(200, self._send(method, route, credential, "application/json", **more))

    def _bytes(self, method: str, route: str, credential: str, **more: Any) -> bytes:
        return self._send(method, route, credential, "*/*", **more)

    def _call(
        self,
        method: str,
        route: str,
        credential: str,
        accept: str,
        path: Optional[Mapping[str, Any]] = None,
        query: Optional[Mapping[str, Any]] = None,
        body: Any = None,
        prefer: Optional[str] = None,
        idempotency_key: Union[str, None, Literal[False]] = False,
    ) -> _Call:
        url = self._base + re.sub(r"\{(\w+)\}", lambda found: quote(str((path or {})[found[1]]), safe=""), route)
        parameters = {name: value for name, value in (query or {}).items() if value is not None}
        if parameters:
            url += "?" + urlencode(parameters)
        headers = {"Accept": accept, "User-Agent": "vatproof-client/0.1.0"}
        if prefer is not None:
            headers["Prefer"] = prefer
        if credential in ("apiKey", "either") and self._api_key is not None:
            headers["X-Api-Key"] = self._api_key
        elif credential != "none" and self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        repeatable = method == "GET" and not route.startswith("/v1/validate/")
        # Without a key the service refuses the header, except for a registration.
        if idempotency_key is not False and (credential == "none" or self._api_key is not None):
            headers["Idempotency-Key"] = _printable("idempotency_key", idempotency_key or str(uuid.uuid4()))
            repeatable = True
        data = None
        if method == "POST":
            headers["Content-Type"] = "application/json"
            data = json.dumps(body if body is not None else {}).encode()
        return _Call(method, url, headers, data, repeatable)

    def _try(self, call: _Call, seconds: float) -> bytes:
        request = Request(call.url, data=call.body, headers=call.headers, method=call.method)
        try:
            try:
                with self._opener.open(request, timeout=seconds) as response:
                    return self._read(response, seconds)
            except HTTPError as refused:
                with refused:
                    raise _refusal(refused.code, refused.headers, self._read(refused, seconds)) from None
        except VatproofError:
            raise
        except TimeoutError:
            raise VatproofError("TIMEOUT", "No response in time") from None
        except URLError as failed:
            if isinstance(failed.reason, TimeoutError):
                raise VatproofError("TIMEOUT", "No response in time") from None
            # Says why no response came, without the request, which may contain secrets.
            raise VatproofError("UNREACHABLE", f"The connection failed ({type(failed.reason).__name__})") from None
        except (OSError, http.client.HTTPException) as failed:
            raise VatproofError("UNREACHABLE", f"The connection failed ({type(failed).__name__})") from None

    @staticmethod
    def _read(response: Any, seconds: float) -> bytes:
        end = time.monotonic() + seconds
        body = bytearray()
        while chunk := response.read1(65536):
            body += chunk
            if len(body) > _MAX_BODY_BYTES:
                raise VatproofError("UNEXPECTED_RESPONSE", "The response is too large")
            if time.monotonic() > end:
                raise VatproofError("TIMEOUT", "No response in time")
        # read1 does not report a connection that ended early.
        if response.length:
            raise VatproofError("UNREACHABLE", "The connection ended within the response")
        return bytes(body)

    def _send(self, method: str, route: str, credential: str, accept: str, **more: Any) -> bytes:
        call = self._call(method, route, credential, accept, **more)
        end = time.monotonic() + self._timeout
        tries = 0
        while True:
            try:
                return self._try(call, max(0.001, min(self._try_timeout, end - time.monotonic())))
            except VatproofError as error:
                if tries >= self._retries or not _may_retry(error, call.repeatable):
                    raise
                wait = float(error.retry_after_seconds or 0)
                if error.retry_after_seconds is None:
                    wait = min(0.5 * 2**tries, _MAX_BACKOFF_SECONDS) * (0.5 + random.random() / 2)
                # The caller decides about a longer wait: the error has it.
                if time.monotonic() + wait >= end:
                    raise
            time.sleep(wait)
            tries += 1
