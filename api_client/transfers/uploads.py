"""Upload archives: request temporary credentials, then send the file to the object store with obstore.

obstore signs the requests, sends a file in parts, a few at a time, and retries each part. By default, obstore
would also read every ``AWS_*`` variable and the environment's proxies; the user's AWS settings must not
affect uploads to the platform's bucket, so this module sets every option. The store's address is checked
once, before obstore connects.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import httpx
import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from api_client import routes
from api_client.addresses import BaseUrl, Destinations, parse_base_url
from api_client.errors import AddressRefused, UploadFailed
from api_client.http.connection import create_tls_context, user_agent
from api_client.http.failures import RequestLine, clean, from_exception
from api_client.models import BlobCredentials
from api_client.resources import Resource
from api_client.transfers.network import CONNECTION_ERRORS, Network
from api_client.transfers.objects import xml_element

PART_BYTES = 5 * 1024 * 1024  # S3's minimum, because obstore holds parts in memory
CONCURRENT_PARTS = 2  # concurrent parts; a third part would take memory, but save no time
CHUNK_BYTES = 64 * 1024  # bytes read from the file at a time; more would save no time
PART_TIMEOUT_S = 300.0  # time limit for one part; two concurrent parts need 35 KiB/s
FIRST_BACKOFF_S = 0.5
MAX_RETRIES = 60
STALLED_AFTER_S = 10.0
"""A stall is reported after this time without a confirmed part; a cancelled upload ends within this time."""
UNREACHABLE_PROXY = "http://127.0.0.1:1"
"""The proxy for all hosts but the store's.

No server listens at its address, so redirects to other hosts fail.
"""

UNUSABLE_NAME_MESSAGE = "the server's name for the archive can't be used"
DEFAULT_REGION = "us-east-1"  # the endpoint that returns the region of any bucket
_REGION = re.compile(r"[a-z]{2}[a-z0-9-]{1,30}")

_HINTS = {
    **dict.fromkeys(
        ("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"),
        "the upload credentials have expired; submit again",
    ),
    "RequestTimeTooSkewed": "this machine's clock is wrong; correct it and submit again",
}

OnBytes = Callable[[int, int], object]
"""Called with the bytes that the store has confirmed, which never decrease, and the total bytes."""

OnNote = Callable[[str], object]


class Blobs(Resource):
    async def training_credentials(self) -> BlobCredentials:
        """Return temporary credentials for uploading one code archive, under a new object key.

        Raises RequestError.
        """
        return await self._transport.request(routes.UPLOAD_CREDENTIALS)

    async def upload(
        self,
        source: Path | IO[bytes],
        credentials: BlobCredentials,
        *,
        on_progress: OnBytes | None = None,
        on_note: OnNote | None = None,
    ) -> None:
        """Upload a file to the object that the credentials are for, without sending the platform's key.

        ``source`` is its path, or the file, open for reading. ``on_note`` is called with a message for every
        stall. If the upload fails or is cancelled, the store is asked to discard the uploaded parts. Raises
        UploadFailed, ReadOnlyError, and ConfigurationError for an unusable endpoint.
        """
        self._transport.check_may_change("uploading an archive")
        with source.open("rb") if isinstance(source, Path) else nullcontext(source) as file:
            await upload_file(file, credentials, self._transport.destinations, on_progress, on_note)


async def upload_file(
    file: IO[bytes],
    credentials: BlobCredentials,
    destinations: Destinations,
    on_progress: OnBytes | None = None,
    on_note: OnNote | None = None,
) -> None:
    """Upload a file as ``Blobs.upload`` does; ``destinations`` decides which addresses may be reached."""
    _check(credentials)
    network = Network(destinations)
    endpoint, region = await _endpoint_of(credentials, network)
    try:  # fail fast, because obstore would retry for minutes
        await network.check_reachable(endpoint)
    except AddressRefused as error:
        raise UploadFailed(str(error), method="PUT", path=credentials.s3_key) from None
    except CONNECTION_ERRORS as error:
        line = RequestLine("PUT", credentials.s3_key)
        problem = from_exception(error, None, endpoint.netloc, line)
        unreached = UploadFailed(str(problem), method="PUT", path=credentials.s3_key)
        unreached.retryable = True
        raise unreached from None
    store = await asyncio.to_thread(_store, credentials, endpoint, region)
    failure: UploadFailed | None = None
    file.seek(0)
    upload = _Upload(store, credentials.s3_key, file, on_progress, on_note)
    try:
        await upload.run()
    except (BaseError, ValueError, TypeError, FileNotFoundError) as error:
        failure = _upload_error(error, credentials, endpoint)
    # If the response to completing the upload is lost, obstore's retry gets a 404, although the object
    # exists.
    if failure and (failure.status != HTTPStatus.NOT_FOUND or not await upload.is_stored()):
        raise failure
    upload.report(upload.total_bytes)


class _Upload:
    def __init__(
        self, store: S3Store, key: str, file: IO[bytes], on_progress: OnBytes | None, on_note: OnNote | None
    ) -> None:
        self.total_bytes = os.fstat(file.fileno()).st_size
        self._store, self._key, self._file = store, key, file
        self._on_progress, self._on_note = on_progress, on_note
        self._read_bytes = self._reported_bytes = 0
        self._is_cancelled = False

    async def run(self) -> None:
        """Send the file. Raises obstore's errors, and UploadFailed if the file became shorter."""
        is_small = self.total_bytes <= PART_BYTES
        if self._on_progress is not None:
            self._on_progress(0, self.total_bytes)
        sending = asyncio.ensure_future(
            obstore.put_async(
                self._store,
                self._key,
                await asyncio.to_thread(self._file.read) if is_small else self._chunks(),
                use_multipart=not is_small,
                chunk_size=PART_BYTES,
                max_concurrency=CONCURRENT_PARTS,
            )
        )
        previous_bytes = -1
        try:
            while not (await asyncio.wait({sending}, timeout=STALLED_AFTER_S))[0]:
                if self._read_bytes == previous_bytes and self._on_note is not None:
                    self._on_note(
                        f"the object store confirmed no data for {STALLED_AFTER_S:.0f} s; still trying"
                    )
                previous_bytes = self._read_bytes
            await sending
        except asyncio.CancelledError:
            # The next chunk raises an error, after which obstore asks the store to discard the parts.
            self._is_cancelled = True
            if not is_small:
                await asyncio.wait({asyncio.gather(sending, return_exceptions=True)}, timeout=STALLED_AFTER_S)
            raise
        finally:
            sending.cancel()

    async def is_stored(self) -> bool:
        try:
            stored = await obstore.head_async(self._store, self._key)
        except (BaseError, FileNotFoundError):
            return False
        return stored["size"] == self.total_bytes

    async def _chunks(self) -> AsyncIterator[bytes]:
        while self._read_bytes < self.total_bytes:
            chunk = await asyncio.to_thread(self._file.read, CHUNK_BYTES)
            if self._is_cancelled or not chunk:
                raise UploadFailed("the archive became shorter during the upload")
            self._read_bytes += len(chunk)
            # The parts being sent, and the part being filled, are not confirmed yet.
            self.report(self._read_bytes - (CONCURRENT_PARTS + 1) * PART_BYTES)
            yield chunk

    def report(self, done_bytes: int) -> None:
        if self._on_progress is not None and done_bytes > self._reported_bytes:
            self._reported_bytes = done_bytes
            self._on_progress(done_bytes, self.total_bytes)


def _store(credentials: BlobCredentials, endpoint: BaseUrl, region: str) -> S3Store:
    creds, proxy = credentials.creds, endpoint.proxy
    client: dict[str, Any] = {
        # Without a setting here, obstore would use the environment's proxy.
        "proxy_url": proxy or UNREACHABLE_PROXY,
        "proxy_excludes": "" if proxy else endpoint.host,
        "user_agent": user_agent(),
        "timeout": timedelta(seconds=PART_TIMEOUT_S),
        "allow_http": endpoint.scheme == "http",
        "allow_invalid_certificates": False,
    }
    # obstore trusts only the system's certificates; add the certificates that our other requests trust.
    certificates = create_tls_context().get_ca_certs(binary_form=True)
    if certificates:
        client["root_certificate"] = "".join(map(ssl.DER_cert_to_PEM_cert, certificates))
    with hidden_variables("AWS_"):
        return S3Store(
            credentials.s3_bucket,
            access_key_id=creds.aws_access_key_id,
            secret_access_key=creds.aws_secret_access_key.get_secret_value(),
            session_token=creds.aws_session_token.get_secret_value(),
            endpoint=str(endpoint),
            region=region,
            virtual_hosted_style_request=False,
            skip_signature=False,
            unsigned_payload=False,
            client_options=client,  # type: ignore[arg-type]
            retry_config={
                "max_retries": MAX_RETRIES,
                "retry_timeout": timedelta(minutes=10),  # a signature is valid for 15
                "backoff": {
                    "init_backoff": timedelta(seconds=FIRST_BACKOFF_S),
                    "max_backoff": timedelta(seconds=15),
                    "base": 2,
                },
            },
        )


def _check(credentials: BlobCredentials) -> None:
    """Raise UploadFailed, which quotes no value, if the credentials are not valid in an HTTP request."""
    creds = credentials.creds
    for header in (creds.aws_access_key_id, creds.aws_session_token.get_secret_value()):
        if not (header.isascii() and header.isprintable() and " " not in header):
            raise UploadFailed(
                "the server's upload credentials contain a character that is invalid in an HTTP header"
            )
    path_bytes = len(f"{credentials.s3_bucket}{credentials.s3_key}".encode(errors="replace"))
    # Limit of a request line; S3's own limit is 1,024.
    if not credentials.s3_key or path_bytes > 16_384:
        raise UploadFailed(UNUSABLE_NAME_MESSAGE)


async def _endpoint_of(credentials: BlobCredentials, network: Network) -> tuple[BaseUrl, str]:
    """Return the store's address and region. Raises ConfigurationError if the address is invalid."""
    extra_fields = credentials.creds.model_extra or {}
    region, url = (str(extra_fields.get(name) or "") for name in ("region_name", "endpoint_url"))
    region = region if _REGION.fullmatch(region) else ""
    if url:
        endpoint = parse_base_url(url, source="the endpoint of the upload credentials")
        return endpoint, region or DEFAULT_REGION
    region = region or await _bucket_region(credentials.s3_bucket, network)
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return BaseUrl("https", f"s3.{region}.{suffix}", 443), region


async def _bucket_region(bucket: str, network: Network) -> str:
    """Request a bucket's region from AWS, which needs no key. Returns DEFAULT_REGION if AWS sends none."""
    site = BaseUrl("https", f"s3.{DEFAULT_REGION}.amazonaws.com", 443)
    region = ""
    try:
        pool = await network.pool_for(site)
        response = await pool.request(
            "HEAD", f"{site}/{quote(bucket, safe='')}", headers={"Host": site.netloc}
        )
        region = httpx.Headers(response.headers).get("x-amz-bucket-region", "")
    except CONNECTION_ERRORS:
        pass  # the upload itself reports the problem
    finally:
        await network.aclose()
    return region if _REGION.fullmatch(region) else DEFAULT_REGION


def _upload_error(error: Exception, credentials: BlobCredentials, endpoint: BaseUrl) -> UploadFailed:
    """Build the error from obstore's text, which quotes the request and the store's response."""
    text = str(error).partition("\n\nDebug source:")[0]
    match = re.search(
        r"(?:status code: (?P<status>\d{3})[^:]*|error response): (?P<body>.*)", text, re.DOTALL
    )
    status = int(match["status"] or HTTPStatus.OK) if match else None
    code = message = ""
    if match is not None:
        code, message = xml_element(match["body"], "Code"), xml_element(match["body"], "Message")
        reason = f"{endpoint.netloc} answered {status}" + f" {code}".rstrip() + f": {message}".rstrip(": .")
    elif isinstance(error, UnicodeError) or text.startswith("Could not parse path"):
        reason = UNUSABLE_NAME_MESSAGE
    elif "redirect" in text:
        reason = f"{endpoint.netloc} redirected the upload; not followed"
    else:
        reason = f"{endpoint.netloc} broke off the upload ({text.rpartition(' - ')[2]})"
    reason = f"{_HINTS[code]} ({reason})" if code in _HINTS else reason
    for secret in (credentials.creds.aws_secret_access_key, credentials.creds.aws_session_token):
        if value := secret.get_secret_value():
            reason, code = reason.replace(value, "[secret]"), code.replace(value, "[secret]")
    reason = clean(reason)
    failure = UploadFailed(f"uploading the archive: {reason}", method="PUT", path=credentials.s3_key)
    failure.status, failure.code = status, code or None
    failure.retryable = status is None or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return failure


_ENVIRONMENT_LOCK = threading.Lock()


@contextmanager
def hidden_variables(*prefixes: str) -> Iterator[None]:
    """Hide the environment variables whose names start with one of the prefixes, in any case.

    obstore reads the user's cloud settings only when a store is created. Some of them (checksums, encryption)
    have no value that turns them off.
    """
    with _ENVIRONMENT_LOCK:
        hidden = {name: os.environ.pop(name) for name in [*os.environ] if name.upper().startswith(prefixes)}
        try:
            yield
        finally:
            os.environ.update(hidden)
