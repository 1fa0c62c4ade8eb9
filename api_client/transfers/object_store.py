"""Send signed requests to an S3-compatible store, retrying failures: AWS Signature Version 4.

The signature is implemented here because S3 libraries read every ``AWS_*`` variable of the environment, and
the user's settings for AWS must not affect uploads to the platform's bucket. Source: AWS, "Authenticating
Requests (AWS Signature Version 4)".
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from html import unescape
from http import HTTPStatus
from random import Random
from typing import Any
from urllib.parse import quote

import httpx
from pydantic import SecretStr

from api_client.addresses import BaseUrl, Destinations, parse_base_url, proxy_of
from api_client.clock import Clock
from api_client.errors import AddressRefused, UploadFailed
from api_client.http.connection import CONNECT_TIMEOUT_S, WRITE_TIMEOUT_S, user_agent
from api_client.http.failures import RequestLine, clean, from_exception
from api_client.http.retry import RetryPolicy, parse_retry_after
from api_client.models import BlobCredentials
from api_client.remotes import Remote

DEFAULT_REGION = "us-east-1"
"""AWS looks here first; it answers with the bucket's own region if that differs."""

LONGEST_PATH_BYTES = 16_384
"""Maximum length of bucket and key in UTF-8 that a request line can carry; S3's own limit is 1,024."""

_REGION = re.compile(r"[a-z]{2}[a-z0-9-]{1,30}")


def is_region(text: str) -> bool:
    """Return True if this looks like the name of a region, so that it is valid in a host name."""
    return _REGION.fullmatch(text) is not None


def check_credentials(credentials: BlobCredentials) -> None:
    """Raise UploadFailed if the credentials are not valid in a request; the error does not quote them."""
    creds = credentials.creds
    for header in (creds.aws_access_key_id, creds.aws_session_token.get_secret_value()):
        if not (header.isascii() and header.isprintable() and " " not in header):
            raise UploadFailed(
                "the server's upload credentials contain a character that is invalid in an HTTP header"
            )
    path = f"{credentials.s3_bucket}/{credentials.s3_key}"
    if len(path.encode(errors="replace")) > LONGEST_PATH_BYTES:
        raise UploadFailed("the server's name for the archive is too long")


def endpoint_of(credentials: BlobCredentials) -> tuple[BaseUrl, str, bool]:
    """Return address, region, and True if the region is certain. Raises ConfigurationError if unusable."""
    extra = credentials.creds.model_extra or {}
    region = extra.get("region_name")
    is_certain = isinstance(region, str) and is_region(region)
    chosen = str(region) if is_certain else DEFAULT_REGION
    url = extra.get("endpoint_url")
    if isinstance(url, str) and url.strip():
        return parse_base_url(url, source="the endpoint of the upload credentials"), chosen, True
    return aws_endpoint(chosen), chosen, is_certain


def aws_endpoint(region: str) -> BaseUrl:
    """Return the address of AWS's own store in that region."""
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return BaseUrl("https", f"s3.{region}.{suffix}", 443)


def as_remote(endpoint: BaseUrl) -> Remote:
    """Return the store as a remote without a key."""
    return Remote("object store", str(endpoint), str(endpoint), key=None, key_origin="")


def store_remote(credentials: BlobCredentials) -> tuple[Remote, BaseUrl]:
    """Return the store as arguments for ``connection.connect``. Raises ConfigurationError."""
    endpoint, _, _ = endpoint_of(credentials)
    return as_remote(endpoint), endpoint


EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
"""Payload hash of a request without a body."""

_ALGORITHM = "AWS4-HMAC-SHA256"
_UNRESERVED = "-_.~"


@dataclass(frozen=True, slots=True)
class SigningKey:
    """Credentials and their region; the repr shows no secret."""

    access_key_id: str
    secret_access_key: SecretStr
    session_token: SecretStr
    region: str
    service: str = "s3"


def quoted_path(path: str) -> str:
    """Escape a path as it is sent and signed: everything but the unreserved characters and ``/``."""
    return quote(path, safe="/" + _UNRESERVED, errors="surrogateescape")


def quoted_query(query: Mapping[str, str]) -> str:
    """Format a query as it is sent and signed: sorted, escaped, with ``=`` even without a value."""
    return "&".join(
        f"{quote(name, safe=_UNRESERVED)}={quote(value, safe=_UNRESERVED)}"
        for name, value in sorted(query.items())
    )


def signed_headers(
    method: str,
    path: str,
    query: str,
    headers: Mapping[str, str],
    *,
    payload_sha256: str,
    key: SigningKey,
    at: datetime,
) -> dict[str, str]:
    """Return ``headers`` with the date, the token, the payload's hash and the signature.

    ``path`` and ``query`` must be as sent (``quoted_path``, ``quoted_query``); ``headers`` must have
    ``host``, and all names must be lowercase. ``at`` is timezone-aware, in UTC.
    """
    stamp = at.strftime("%Y%m%dT%H%M%SZ")
    signed = {**headers, "x-amz-content-sha256": payload_sha256, "x-amz-date": stamp}
    token = key.session_token.get_secret_value()
    if token:
        signed["x-amz-security-token"] = token
    names = ";".join(sorted(signed))
    canonical = "\n".join(
        (
            method,
            path,
            query,
            *(f"{name}:{' '.join(signed[name].split())}" for name in sorted(signed)),
            "",
            names,
            payload_sha256,
        )
    )
    scope = f"{stamp[:8]}/{key.region}/{key.service}/aws4_request"
    to_sign = "\n".join((_ALGORITHM, stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    signature = hmac.new(_derived_key(key, stamp[:8]), to_sign.encode(), hashlib.sha256).hexdigest()
    signed["authorization"] = (
        f"{_ALGORITHM} Credential={key.access_key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return signed


def _derived_key(key: SigningKey, day: str) -> bytes:
    derived = b"AWS4" + key.secret_access_key.get_secret_value().encode()
    for part in (day, key.region, key.service, "aws4_request"):
        derived = hmac.new(derived, part.encode(), hashlib.sha256).digest()
    return derived


UNREACHABLE_PATIENCE_S = 3600.0
"""Retry a broken connection for this long once the store has answered anything.

AWS credentials are valid for about an hour, and uploaded parts stay in the store.
"""

FIRST_CONTACT_PATIENCE_S = 60.0
"""Retry a connection for this long before the first answer.

If the store never answers, an address or a firewall is probably wrong, and waiting does not help.
"""

FAULT_ATTEMPTS = 8
"""Maximum number of attempts while the store answers that it is temporarily unavailable."""

ANSWER_TIMEOUT_S = 60.0
"""Maximum time without data from the store after a request."""

_BACKOFF = RetryPolicy(base_s=0.5, cap_s=15.0)
_MAX_ANSWER_BYTES = 65_536
_TEMPORARY_STATUSES = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
_TEMPORARY_CODES = frozenset({"RequestTimeout", "BadDigest", "XAmzContentSHA256Mismatch", "IncompleteBody"})
_EXPIRED_CODES = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"})
_WRONG_TIME_CODE = "RequestTimeTooSkewed"

OnNote = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Body:
    """Body of a request; ``chunks`` yields it again for every attempt."""

    size_bytes: int
    sha256: str
    chunks: Callable[[], AsyncIterator[bytes]]


@dataclass(frozen=True, slots=True)
class StoreAnswer:
    """Successful answer. ``attempts`` counts all attempts, including the successful one."""

    headers: httpx.Headers
    text: str
    attempts: int


@dataclass(frozen=True, slots=True)
class _Refusal:
    reason: str
    status: int | None = None
    code: str = ""
    headers: httpx.Headers = field(default_factory=httpx.Headers)


class ObjectStore:
    """Sends requests for the one object that ``credentials`` are for.

    ``http`` must not add anything to requests. ``destinations`` decides which addresses may be connected
    to; None: there is no network. Do not use it for two objects. Raises UploadFailed if the credentials
    are not valid in a request.
    """

    def __init__(
        self,
        http: httpx.AsyncClient,
        credentials: BlobCredentials,
        destinations: Destinations | None,
        *,
        clock: Clock,
        on_note: OnNote | None = None,
        random: Random | None = None,
    ) -> None:
        self._http = http
        self._destinations = destinations
        self._addresses: list[str] = []
        check_credentials(credentials)
        self._endpoint, region, self._is_region_certain = endpoint_of(credentials)
        self._path = f"/{credentials.s3_bucket}/{credentials.s3_key}"
        self._key = SigningKey(
            credentials.creds.aws_access_key_id,
            credentials.creds.aws_secret_access_key,
            credentials.creds.aws_session_token,
            region,
        )
        self._clock = clock
        self._on_note = on_note
        self._random = random or Random()
        self._clock_is_off_by = timedelta()
        self._answered_at: float | None = None
        self._awaiting_response: set[asyncio.Task[Any]] = set()

    def is_awaiting_response(self, task: asyncio.Task[Any]) -> bool:
        """Return True if that task has sent a request's whole body and waits for its answer."""
        return task in self._awaiting_response

    async def send(
        self,
        method: str,
        query: Mapping[str, str],
        *,
        what: str,
        body: Body | None = None,
        attempts: int | None = None,
        answer_timeout_s: float | None = None,
    ) -> StoreAnswer:
        """Send until it is answered; ``what`` names the request in messages. Raises UploadFailed.

        ``attempts`` limits the number of attempts; without it, the limits of this module apply.
        ``answer_timeout_s`` is the maximum time without data, by default ``ANSWER_TIMEOUT_S``.
        """
        silence_s = ANSWER_TIMEOUT_S if answer_timeout_s is None else answer_timeout_s
        began_at = self._clock.monotonic()
        attempt = faults = 0
        corrected: set[str] = set()
        while True:
            attempt += 1
            outcome = await self._attempt(method, query, body, silence_s)
            if isinstance(outcome, tuple):
                if "html" in outcome[0].get("content-type", "").lower():
                    # A proxy's page, for example, which does not prove that the store received anything.
                    raise UploadFailed(f"{what}: got a web page; this is not an object store", method=method)
                return StoreAnswer(outcome[0], outcome[1], attempt)
            if self._corrects(outcome, corrected):
                continue
            faults += outcome.status is not None
            if not self._should_retry(outcome, faults, began_at) or attempt == attempts:
                raise self._failure(method, what, outcome, attempt)
            delay_s = self._delay_s(outcome, attempt)
            if self._on_note is not None:
                self._on_note(f"{what}: {outcome.reason}; retrying in {delay_s:.1f} s")
            await self._clock.sleep(delay_s)

    async def _attempt(
        self, method: str, query: Mapping[str, str], body: Body | None, answer_timeout_s: float
    ) -> tuple[httpx.Headers, str] | _Refusal:
        try:
            host = await self._checked_host(method)
            request = self._request(method, query, body, answer_timeout_s, host)
            response = await self._http.send(request, stream=True)
            try:
                text = await _read(response)
            finally:
                await response.aclose()
        except httpx.TransportError as error:
            self._addresses = self._addresses[1:]  # the next one; after the last, the name is resolved again
            remote = as_remote(self._endpoint)
            line = RequestLine(method, self._path)
            return _Refusal(str(from_exception(error, remote, self._endpoint.netloc, line).error))
        finally:
            self._awaiting_response -= {asyncio.current_task()}
        self._answered_at = self._clock.monotonic()
        # S3 may answer 200 and send an error in the body later.
        code = _element(text, "Code") if "<Error" in text else None
        if response.is_success and code is None:
            return response.headers, text
        words = self._without_secrets(_element(text, "Message") or "")
        status = response.status_code
        reason = f"{self._endpoint.netloc} answered {status}" + (f" {code}" if code else "")
        shown = f"{reason}: {words}" if words else reason
        return _Refusal(self._without_secrets(shown), status, code or "", response.headers)

    async def _checked_host(self, method: str) -> str:
        """Return the host to connect to: a checked address, or the endpoint's name if a proxy resolves it.

        Raises UploadFailed for addresses that a server must not direct us to.
        """
        endpoint, destinations = self._endpoint, self._destinations
        if destinations is None:
            return endpoint.url_host
        try:
            if proxy_of(endpoint.scheme, endpoint.host):
                await asyncio.to_thread(destinations.check_proxied, endpoint.host, endpoint.port)
                return endpoint.url_host
            if not self._addresses:
                self._addresses = await asyncio.to_thread(destinations.resolve, endpoint.host, endpoint.port)
        except AddressRefused as error:
            raise UploadFailed(str(error), method=method, path=self._path) from None
        except OSError as error:
            raise httpx.ConnectError("no such name") from error
        address = self._addresses[0]
        return f"[{address}]" if ":" in address else address

    def _request(
        self, method: str, query: Mapping[str, str], body: Body | None, answer_timeout_s: float, host: str
    ) -> httpx.Request:
        endpoint = self._endpoint
        path = quoted_path(endpoint.prefix + self._path)
        sent_query = quoted_query(query)
        headers = signed_headers(
            method,
            path,
            sent_query,
            {"host": endpoint.netloc},
            payload_sha256=EMPTY_SHA256 if body is None else body.sha256,
            key=self._key,
            at=self._clock.now() + self._clock_is_off_by,
        )
        headers["user-agent"] = user_agent()
        headers["content-length"] = str(0 if body is None else body.size_bytes)
        url = httpx.URL(
            scheme=endpoint.scheme,
            host=host,
            port=endpoint.port,
            raw_path=f"{path}?{sent_query}".rstrip("?").encode("ascii"),
        )
        return httpx.Request(
            method,
            url,
            headers=headers,
            content=None if body is None else self._counted(body),
            extensions={
                "timeout": httpx.Timeout(
                    connect=CONNECT_TIMEOUT_S, write=WRITE_TIMEOUT_S, read=answer_timeout_s, pool=None
                ).as_dict(),
                "sni_hostname": endpoint.host,  # TLS verifies the host name, whatever the address
            },
        )

    async def _counted(self, body: Body) -> AsyncIterator[bytes]:
        """Yield the body; just before the last bytes, record that the task awaits a response."""
        left_bytes = body.size_bytes
        async for chunk in body.chunks():
            left_bytes -= len(chunk)
            task = asyncio.current_task()
            if left_bytes <= 0 and task is not None:
                self._awaiting_response.add(task)
            yield chunk

    def _corrects(self, refusal: _Refusal, corrected: set[str]) -> bool:
        """Correct the region or the time as the answer suggests, once for each; return True to retry."""
        region = refusal.headers.get("x-amz-bucket-region", "")
        if (
            not self._is_region_certain
            and "region" not in corrected
            and region != self._key.region
            and is_region(region)
        ):
            corrected.add("region")
            self._endpoint, self._key = aws_endpoint(region), replace(self._key, region=region)
            self._addresses = []
            return True
        if refusal.code == _WRONG_TIME_CODE and "time" not in corrected:
            try:
                server_now = parsedate_to_datetime(refusal.headers.get("date", ""))
                self._clock_is_off_by = server_now - self._clock.now()
            except (ValueError, TypeError):
                return False
            corrected.add("time")
            return True
        return False

    def _should_retry(self, refusal: _Refusal, faults: int, began_at: float) -> bool:
        if refusal.status is None:
            answered_at = self._answered_at
            now = self._clock.monotonic()
            if answered_at is None:
                return now - began_at < FIRST_CONTACT_PATIENCE_S
            return now - max(answered_at, began_at) < UNREACHABLE_PATIENCE_S
        is_temporary = (
            refusal.status >= HTTPStatus.INTERNAL_SERVER_ERROR
            or refusal.status in _TEMPORARY_STATUSES
            or refusal.code in _TEMPORARY_CODES
            # An error inside a successful answer is a fault of the store.
            or refusal.status < HTTPStatus.MULTIPLE_CHOICES
        )
        return is_temporary and faults < FAULT_ATTEMPTS

    def _delay_s(self, refusal: _Refusal, attempt: int) -> float:
        wanted_wait_s = parse_retry_after(refusal.headers.get("retry-after"), now=self._clock.now())
        if wanted_wait_s is not None:
            return min(wanted_wait_s, _BACKOFF.retry_after_cap_s)
        ceiling_s = _BACKOFF.longest_delay_s(attempt)
        # Never immediately: a connection that was interrupted is often interrupted again.
        return self._random.uniform(ceiling_s / 2, ceiling_s)

    def _failure(self, method: str, what: str, refusal: _Refusal, attempts: int) -> UploadFailed:
        reason = refusal.reason
        if refusal.code in _EXPIRED_CODES:
            reason = f"the upload credentials have expired ({reason})"
        error = UploadFailed(f"{what}: {reason}", method=method, path=self._path, attempts=attempts)
        error.status, error.code = refusal.status, refusal.code or None
        error.retryable = refusal.status is None or refusal.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        return error

    def _without_secrets(self, text: str) -> str:
        for secret in (self._key.secret_access_key, self._key.session_token):
            value = secret.get_secret_value()
            if value:
                text = text.replace(value, "[secret]")
        return clean(text, as_remote(self._endpoint))


async def _read(response: httpx.Response) -> str:
    """Read the beginning of the body; a longer one is not S3's."""
    content = b""
    async for part in response.aiter_bytes():
        content += part
        if len(content) > _MAX_ANSWER_BYTES:
            break
    return content[:_MAX_ANSWER_BYTES].decode("utf-8", errors="replace")


def _element(text: str, name: str) -> str | None:
    """Return the text of the first element with that name; these answers are too simple for an XML parser."""
    found = re.search(rf"<{name}>([^<]*)</{name}>", text)
    return unescape(found[1]).strip() or None if found else None


def element(answer: StoreAnswer, name: str) -> str | None:
    """Return the text of the first element with that name in an answer, or None."""
    return _element(answer.text, name)
