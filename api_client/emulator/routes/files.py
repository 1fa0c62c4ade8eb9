"""Routes for bytes: checkpoint files, the object store for archives, and web pages that responses link to.

Requests for files need a valid signature in the URL instead of the API key. The object store has S3's calls
for one object or a multipart upload; S3 clients use ``aws-chunked`` framing only over TLS, so bodies need no
decoding.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from api_client import routes
from api_client.emulator.backend import StoredFile
from api_client.emulator.platform import Platform
from api_client.emulator.responses import ApiFault, new_id, xml_error_response, xml_response
from api_client.emulator.routes.calls import Call, base_url_of, platform_of, read_body, starlette_routes
from api_client.emulator.store.blobs import (
    BUCKET,
    EXPIRES_PARAMETER,
    MAX_PARTS,
    SIGNATURE_PARAMETER,
    IncomingObject,
)
from api_client.files import why_not_written


class UnsatisfiableRange(Exception):
    pass


def parse_range(header: str | None, size_bytes: int) -> tuple[int, int] | None:
    """Parse a ``Range`` header into ``(start, end)``, end exclusive; None: send the whole content.

    The result is None if there is no header or its form is not supported. Raises ``UnsatisfiableRange`` if
    no byte of the content is in the range (RFC 9110, 14.1.2).
    """
    match = re.fullmatch(r"bytes=(\d{0,18})-(\d{0,18})", (header or "").strip(), re.ASCII)
    if match is None or match.group(0) == "bytes=-":
        return None
    first_text, last_text = match.groups()
    if last_text and first_text and int(last_text) < int(first_text):
        return None
    start = int(first_text) if first_text else max(0, size_bytes - int(last_text))
    end = min(size_bytes, int(last_text) + 1) if first_text and last_text else size_bytes
    if start >= size_bytes or start >= end:
        raise UnsatisfiableRange
    return start, end


SINGLE_PART_BYTES = 8 * 1024 * 1024
"""Largest object whose entity tag is its MD5, as for single-part uploads to S3.

Larger objects get a tag like multipart uploads, which is not a digest of the content.
"""


ReadBytes = Callable[[int, int], bytes]
"""A function that returns the bytes from ``start`` to ``end`` (exclusive)."""


def bytes_response(request: Request, identity: str, size: int, read: ReadBytes) -> Response:
    """Return a response with the object or the requested range; for several ranges the object, as S3 does.

    The entity tag of a large object is derived from ``identity``.
    """
    headers = {"Accept-Ranges": "bytes", "ETag": f'"{entity_tag(identity, size, read)}"'}
    try:
        span = parse_range(request.headers.get("range"), size)
    except UnsatisfiableRange:
        headers["Content-Range"] = f"bytes */{size}"
        return xml_error_response(
            416, "InvalidRange", "The requested range is not satisfiable", headers=headers
        )
    start, end = span or (0, size)
    headers |= {"Content-Length": str(end - start), "Content-Type": "application/octet-stream"}
    if span is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    status = 200 if span is None else 206
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers)
    return StreamingResponse(_chunks(read, start, end), status_code=status, headers=headers)


async def _chunks(read: ReadBytes, start: int, end: int) -> AsyncIterator[bytes]:
    for offset in range(start, end, 2**20):
        chunk = await run_in_threadpool(read, offset, min(end, offset + 2**20))
        if not chunk:
            # The file was truncated: end early, which breaks the connection because fewer bytes than the
            # Content-Length were sent.
            return
        yield chunk


def file_response(request: Request, path: Path) -> Response:
    """Return a response with a file on disk; raise OSError if it cannot be read."""
    status = path.stat()

    def read(start: int, end: int) -> bytes:
        with path.open("rb", buffering=0) as file:
            return os.pread(file.fileno(), end - start, start)

    return bytes_response(request, f"{path}:{status.st_mtime_ns}", status.st_size, read)


def entity_tag(identity: str, size_bytes: int, read: ReadBytes) -> str:
    if size_bytes <= SINGLE_PART_BYTES:
        return _md5(read(0, size_bytes))
    part_count = -(-size_bytes // SINGLE_PART_BYTES)
    return f"{_md5(f'{identity}:{size_bytes}'.encode(errors='surrogateescape'))}-{part_count}"


def _md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def access_error(request: Request, platform: Platform) -> Response | None:
    """Return S3's error for an unauthorized read, or None if the URL is presigned and still valid.

    Like S3, refuse a presigned request that also has an API key, which catches clients that send their key to
    every URL.
    """
    path = request.scope["raw_path"].decode("ascii", "replace")
    expires = request.query_params.get(EXPIRES_PARAMETER, "")
    signature = request.query_params.get(SIGNATURE_PARAMETER, "")
    if signature and "authorization" in request.headers:
        return xml_error_response(400, "InvalidArgument", "Only one auth mechanism allowed")
    if platform.signer.is_valid_signature("GET", path, expires, signature):
        if int(expires) >= platform.now_s():
            return None
        return xml_error_response(403, "AccessDenied", "Request has expired")
    if not signature:
        return xml_error_response(403, "AccessDenied", "Access Denied")
    return xml_error_response(
        403, "SignatureDoesNotMatch", "The request signature does not match the one we made"
    )


FILES_PATH = "/checkpoint-files"


def file_path(job_id: str, node_rank: int, relative_name: str) -> str:
    """Return the URL path of a checkpoint file, for any name: dots, line breaks, invalid Unicode.

    The name is encoded because clients and proxies normalize paths. The last segment only makes the URL
    readable.
    """
    encoded = base64.urlsafe_b64encode(os.fsencode(relative_name)).decode().rstrip("=")
    label = re.sub(r"[^A-Za-z0-9._-]+", "_", relative_name.rpartition("/")[2]).lstrip(".") or "file"
    return f"{FILES_PATH}/{job_id}/{node_rank}/{encoded}/{label}"


def _get_file(request: Request) -> Response:
    platform = platform_of(request)
    error = access_error(request, platform)
    if error is not None:
        return error
    job_id, rank, name = request.path_params["job_id"], request.path_params["rank"], _file_name(request)
    files: list[StoredFile] = []
    with suppress(ApiFault):
        files = platform.backend_of(job_id).checkpoint_files(job_id)
    for file in files:
        if (file.relative_name, str(file.node_rank)) == (name, rank):
            with suppress(OSError):
                return _stored_file_response(request, platform, file)
    return xml_error_response(404, "NoSuchKey", "The specified key does not exist.")


def _stored_file_response(request: Request, platform: Platform, file: StoredFile) -> Response:
    """Return a response with a file; raise OSError if it is a symlink of a job to outside the data folder."""
    if file.generate is not None:
        identity = f"{file.relative_name}:{file.modified}"
        return bytes_response(request, identity, file.size_bytes, file.generate)
    real_path = (file.path or platform.data_dir).resolve()
    if not (real_path.is_file() and real_path.is_relative_to(platform.data_dir.resolve())):
        raise FileNotFoundError(real_path)
    return file_response(request, real_path)


def _file_name(request: Request) -> str | None:
    encoded_name = request.path_params["encoded"]
    try:
        padded_name = encoded_name + "=" * (-len(encoded_name) % 4)
        return os.fsdecode(base64.b64decode(padded_name, altchars=b"-_", validate=True))
    except ValueError:
        return None


OBJECT_PATH = "/" + BUCKET + "/{key:path}"


def _credentials(call: Call) -> Any:
    """Return upload credentials for a new object key.

    ``endpoint_url`` and ``region_name`` are extra fields, which boto3 takes as arguments.
    """
    platform = call.platform
    key = f"training/{new_id()}/archive.tgz"
    credentials = {
        "aws_access_key_id": f"EMULATOR{new_id().upper()}",
        "aws_secret_access_key": f"emulator-{new_id()}{new_id()}",
        "aws_session_token": platform.signer.upload_token(f"{BUCKET}/{key}", now_s=platform.now_s()),
        "endpoint_url": call.base_url,
        "region_name": "us-east-1",
    }
    return {"s3_bucket": BUCKET, "s3_key": key, "creds": credentials}


def _has_upload_token(request: Request) -> bool:
    platform = platform_of(request)
    token = request.headers.get("x-amz-security-token", "")
    name = f"{BUCKET}/{request.path_params['key']}"
    return platform.signer.upload_token_is_valid(name, token, now_s=platform.now_s())


def _get_object(request: Request) -> Response:
    platform = platform_of(request)
    error = None if _has_upload_token(request) else access_error(request, platform)
    if error is not None:
        return error
    path = platform.stores.blobs.path(BUCKET, request.path_params["key"])
    return _not_found("NoSuchKey") if path is None else file_response(request, path)


def _not_found(code: str) -> Response:
    return xml_error_response(404, code, "no such object, upload, or part of it")


async def _change_object(request: Request) -> Response:
    if not _has_upload_token(request):
        return xml_error_response(403, "AccessDenied", "these credentials do not grant access to this object")
    blobs, key, query = platform_of(request).stores.blobs, request.path_params["key"], request.query_params
    upload_id = query.get("uploadId")
    try:
        if request.method == "PUT" and upload_id is None:
            return await _receive(request, blobs.receive(BUCKET, key))
        if request.method == "PUT":
            number = query.get("partNumber", "")
            if not (number.isascii() and number.isdigit() and 1 <= int(number[:6]) <= MAX_PARTS):
                return xml_error_response(
                    400, "InvalidArgument", f"partNumber must be between 1 and {MAX_PARTS}"
                )
            part = blobs.receive_part(upload_id or "", int(number))
            return _not_found("NoSuchUpload") if part is None else await _receive(request, part)
        if request.method == "DELETE":
            was_aborted = blobs.abort_upload(upload_id or "")
            return Response(status_code=204) if was_aborted else _not_found("NoSuchUpload")
        if "uploads" in query:
            fields = {"Bucket": BUCKET, "Key": key, "UploadId": blobs.start_upload()}
            return xml_response("InitiateMultipartUploadResult", fields)
        numbers = [
            int(number)
            for number in re.findall(rb"<PartNumber>\s*(\d{1,5})\s*</PartNumber>", await read_body(request))
        ]
        if not numbers or numbers != sorted(set(numbers)):
            return xml_error_response(
                400, "InvalidPartOrder", "each part must be listed once, in ascending order"
            )
        etag = await run_in_threadpool(blobs.complete_upload, upload_id or "", numbers, BUCKET, key)
        if etag is None:
            return _not_found("NoSuchUpload")
        location = f"{base_url_of(request)}/{BUCKET}/{quote(key)}"
        fields = {"Bucket": BUCKET, "Key": key, "ETag": f'"{etag}"', "Location": location}
        return xml_response("CompleteMultipartUploadResult", fields)
    except OSError as error:  # such as a full disk; not 5xx, which S3 clients retry for minutes
        reason = why_not_written(error)
        return xml_error_response(400, "StorageFailed", f"the emulator can't store the object: {reason}")


async def _receive(request: Request, incoming: IncomingObject) -> Response:
    with incoming:
        if "aws-chunked" in request.headers.get("content-encoding", ""):
            return xml_error_response(
                501, "NotImplemented", "the emulator does not accept aws-chunked bodies"
            )
        async for chunk in request.stream():
            await run_in_threadpool(incoming.write, chunk)
        incoming.commit()
    return Response(headers={"ETag": f'"{incoming.md5}"'})


WELCOME = """This is the bt-tui emulator: Baseten Training's REST API on this machine.
It has no web pages: watch its jobs in the dashboard.
"""


ROUTES = [
    *starlette_routes({routes.UPLOAD_CREDENTIALS: _credentials}),
    Route(FILES_PATH + "/{job_id}/{rank}/{encoded}/{label}", _get_file, methods=["GET"]),
    Route(OBJECT_PATH, _get_object, methods=["GET"]),
    Route(OBJECT_PATH, _change_object, methods=["PUT", "POST", "DELETE"]),
    *(
        Route(path, lambda _: PlainTextResponse(WELCOME), methods=["GET"])
        for path in (
            "/",
            "/training/{project_id}/logs/{job_id}",
            "/models/{model_id}/logs/{deployment_id}",
        )
    ),
]
