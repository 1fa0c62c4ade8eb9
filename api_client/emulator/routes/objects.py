"""The object store: S3's calls for one object or a multipart upload, for the archives that clients send.

S3 clients sign streams in ``aws-chunked`` framing over TLS only, so bodies come as they are.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api_client import routes
from api_client.emulator.answers import xml_answer, xml_fault
from api_client.emulator.formats import new_id
from api_client.emulator.platform import Platform
from api_client.emulator.routes.calls import MAXIMUM_BODY_BYTES, Answers, Call, base_url_of, platform_of
from api_client.emulator.routes.files import refusal
from api_client.emulator.store.blobs import BUCKET, MAXIMUM_PARTS, IncomingObject, ObjectTooLarge
from api_client.emulator.stored_bytes import answer_bytes, bytes_of_file
from api_client.files import why_not_written

OBJECT = "/" + BUCKET + "/{key:path}"
REGION = "us-east-1"
_PART_NUMBER = re.compile(rb"<PartNumber>\s*(\d{1,5})\s*</PartNumber>")


def _credentials(call: Call) -> Any:
    """Return new credentials for a new key.

    boto3 takes the two extra fields as arguments.
    """
    platform = call.platform
    key = f"training/{new_id()}/archive.tgz"
    creds = {
        "aws_access_key_id": f"EMULATOR{new_id().upper()}",
        "aws_secret_access_key": f"emulator-{new_id()}{new_id()}",
        "aws_session_token": platform.signer.upload_token(f"{BUCKET}/{key}", now_s=platform.now_s()),
        "endpoint_url": call.base_url,
        "region_name": REGION,
    }
    return {"s3_bucket": BUCKET, "s3_key": key, "creds": creds}


def _storing(handle: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Answer with the reason if the object can't be stored, such as on a full disk.

    The status is 400: S3 clients repeat all of 5xx, for minutes.
    """

    async def answer(request: Request) -> Response:
        try:
            return await handle(request)
        except OSError as error:
            reason = why_not_written(error)
            return xml_fault(400, "StorageFailed", f"the emulator can't store the object: {reason}")

    return answer


def _may_write(request: Request) -> bool:
    platform = platform_of(request)
    token = request.headers.get("x-amz-security-token", "")
    name = f"{BUCKET}/{request.path_params['key']}"
    return platform.signer.upload_token_is_valid(name, token, now_s=platform.now_s())


def _denied() -> Response:
    return xml_fault(403, "AccessDenied", "these credentials or this URL do not grant access to this object")


def _get(request: Request) -> Response:
    platform = platform_of(request)
    if not _may_write(request):
        refused = refusal(request, platform)
        if refused is not None:
            return refused
    path = platform.stores.blobs.path(BUCKET, request.path_params["key"])
    if path is None:
        return xml_fault(404, "NoSuchKey", "no such object")
    return answer_bytes(request, bytes_of_file(path))


@_storing
async def _put(request: Request) -> Response:
    if not _may_write(request):
        return _denied()
    blobs = platform_of(request).stores.blobs
    upload_id = request.query_params.get("uploadId")
    if upload_id is None:
        return await _receive(request, blobs.receive(BUCKET, request.path_params["key"]))
    number = request.query_params.get("partNumber", "")
    if not (number.isascii() and number.isdigit() and 1 <= int(number[:6]) <= MAXIMUM_PARTS):
        return xml_fault(400, "InvalidArgument", f"partNumber must be between 1 and {MAXIMUM_PARTS}")
    part = blobs.receive_part(upload_id, int(number))
    if part is None:
        return xml_fault(404, "NoSuchUpload", "no such upload")
    return await _receive(request, part)


async def _receive(request: Request, incoming: IncomingObject) -> Response:
    with incoming:
        if "aws-chunked" in request.headers.get("content-encoding", ""):
            return xml_fault(501, "NotImplemented", "the emulator does not accept aws-chunked bodies")
        try:
            async for chunk in request.stream():
                await run_in_threadpool(incoming.write, chunk)
        except ObjectTooLarge as error:
            return xml_fault(400, "EntityTooLarge", str(error))
        incoming.keep()
    return Response(headers={"ETag": f'"{incoming.md5}"'})


@_storing
async def _post(request: Request) -> Response:
    if not _may_write(request):
        return _denied()
    platform = platform_of(request)
    key = request.path_params["key"]
    if "uploads" in request.query_params:
        upload_id = platform.stores.blobs.start_upload()
        fields = {"Bucket": BUCKET, "Key": key, "UploadId": upload_id}
        return xml_answer("InitiateMultipartUploadResult", fields)
    return await _complete(request, platform, key)


async def _complete(request: Request, platform: Platform, key: str) -> Response:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAXIMUM_BODY_BYTES:
            return xml_fault(400, "MalformedXML", "the list of parts is too long")
    numbers = [int(number) for number in _PART_NUMBER.findall(bytes(body))]
    if not numbers or numbers != sorted(set(numbers)):
        return xml_fault(400, "InvalidPartOrder", "the parts must be listed once each, in rising order")
    upload_id = request.query_params.get("uploadId", "")
    blobs = platform.stores.blobs
    try:
        etag = await run_in_threadpool(blobs.complete_upload, upload_id, numbers, BUCKET, key)
    except ObjectTooLarge as error:
        return xml_fault(400, "EntityTooLarge", str(error))
    if etag is None:
        return xml_fault(404, "NoSuchUpload", "no such upload, or a part of it is missing")
    fields = {
        "Bucket": BUCKET,
        "Key": key,
        "ETag": f'"{etag}"',
        "Location": f"{base_url_of(request)}/{BUCKET}/{quote(key)}",
    }
    return xml_answer("CompleteMultipartUploadResult", fields)


def _delete(request: Request) -> Response:
    if not _may_write(request):
        return _denied()
    if not platform_of(request).stores.blobs.abort_upload(request.query_params.get("uploadId", "")):
        return xml_fault(404, "NoSuchUpload", "no such upload")
    return Response(status_code=204)


READING_ROUTES = [Route(OBJECT, _get, methods=["GET"])]
CREDENTIALS: Answers = {routes.UPLOAD_CREDENTIALS: _credentials}
OBJECTS_ROUTES = [
    *READING_ROUTES,
    Route(OBJECT, _put, methods=["PUT"]),
    Route(OBJECT, _post, methods=["POST"]),
    Route(OBJECT, _delete, methods=["DELETE"]),
]
