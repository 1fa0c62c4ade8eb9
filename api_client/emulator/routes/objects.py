"""The object store: S3's calls for one object or a multipart upload, for the archives that clients send.

S3 clients sign streams in ``aws-chunked`` framing over TLS only, so bodies come as they are.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api_client import routes
from api_client.emulator.answers import xml_answer, xml_fault
from api_client.emulator.formats import new_id
from api_client.emulator.routes.calls import Answers, Call, base_url_of, body_of, platform_of
from api_client.emulator.routes.files import answer_bytes, bytes_of_file, refusal
from api_client.emulator.store.blobs import BUCKET, MAXIMUM_PARTS, IncomingObject, ObjectTooLarge
from api_client.files import why_not_written

OBJECT = "/" + BUCKET + "/{key:path}"
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
        "region_name": "us-east-1",
    }
    return {"s3_bucket": BUCKET, "s3_key": key, "creds": creds}


def _may_write(request: Request) -> bool:
    platform = platform_of(request)
    token = request.headers.get("x-amz-security-token", "")
    name = f"{BUCKET}/{request.path_params['key']}"
    return platform.signer.upload_token_is_valid(name, token, now_s=platform.now_s())


def _get(request: Request) -> Response:
    platform = platform_of(request)
    refused = None if _may_write(request) else refusal(request, platform)
    if refused is not None:
        return refused
    path = platform.stores.blobs.path(BUCKET, request.path_params["key"])
    return _missing("NoSuchKey") if path is None else answer_bytes(request, bytes_of_file(path))


def _missing(code: str) -> Response:
    return xml_fault(404, code, "no such object, upload, or part of it")


async def _change(request: Request) -> Response:
    if not _may_write(request):
        return xml_fault(403, "AccessDenied", "these credentials do not grant access to this object")
    blobs, key, query = platform_of(request).stores.blobs, request.path_params["key"], request.query_params
    upload_id = query.get("uploadId")
    try:
        if request.method == "PUT" and upload_id is None:
            return await _receive(request, blobs.receive(BUCKET, key))
        if request.method == "PUT":
            number = query.get("partNumber", "")
            if not (number.isascii() and number.isdigit() and 1 <= int(number[:6]) <= MAXIMUM_PARTS):
                return xml_fault(400, "InvalidArgument", f"partNumber must be between 1 and {MAXIMUM_PARTS}")
            part = blobs.receive_part(upload_id or "", int(number))
            return _missing("NoSuchUpload") if part is None else await _receive(request, part)
        if request.method == "DELETE":
            is_known = blobs.abort_upload(upload_id or "")
            return Response(status_code=204) if is_known else _missing("NoSuchUpload")
        if "uploads" in query:
            fields = {"Bucket": BUCKET, "Key": key, "UploadId": blobs.start_upload()}
            return xml_answer("InitiateMultipartUploadResult", fields)
        numbers = [int(number) for number in _PART_NUMBER.findall(await body_of(request))]
        if not numbers or numbers != sorted(set(numbers)):
            return xml_fault(400, "InvalidPartOrder", "the parts must be listed once each, in rising order")
        etag = await run_in_threadpool(blobs.complete_upload, upload_id or "", numbers, BUCKET, key)
        if etag is None:
            return _missing("NoSuchUpload")
        location = f"{base_url_of(request)}/{BUCKET}/{quote(key)}"
        fields = {"Bucket": BUCKET, "Key": key, "ETag": f'"{etag}"', "Location": location}
        return xml_answer("CompleteMultipartUploadResult", fields)
    except ObjectTooLarge as error:
        return xml_fault(400, "EntityTooLarge", str(error))
    except OSError as error:  # such as on a full disk; 400, because S3 clients repeat all of 5xx, for minutes
        reason = why_not_written(error)
        return xml_fault(400, "StorageFailed", f"the emulator can't store the object: {reason}")


async def _receive(request: Request, incoming: IncomingObject) -> Response:
    with incoming:
        if "aws-chunked" in request.headers.get("content-encoding", ""):
            return xml_fault(501, "NotImplemented", "the emulator does not accept aws-chunked bodies")
        async for chunk in request.stream():
            await run_in_threadpool(incoming.write, chunk)
        incoming.keep()
    return Response(headers={"ETag": f'"{incoming.md5}"'})


READING_ROUTES = [Route(OBJECT, _get, methods=["GET"])]
CREDENTIALS: Answers = {routes.UPLOAD_CREDENTIALS: _credentials}
OBJECTS_ROUTES = [*READING_ROUTES, Route(OBJECT, _change, methods=["PUT", "POST", "DELETE"])]
