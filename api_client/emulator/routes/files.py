"""The files behind presigned URLs, and the web pages that the answers link to.

Files need a valid signature in the URL instead of the key.
"""

from __future__ import annotations

import base64
import os
import re
from contextlib import suppress
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from api_client.emulator.answers import ApiFault, xml_fault
from api_client.emulator.backend import StoredFile
from api_client.emulator.formats import iso
from api_client.emulator.platform import Platform
from api_client.emulator.presign import EXPIRES_PARAMETER, SIGNATURE_PARAMETER
from api_client.emulator.routes.calls import platform_of
from api_client.emulator.stored_bytes import (
    SINGLE_PART_BYTES,
    StoredBytes,
    answer_bytes,
    bytes_of_file,
    tag_of_content,
    tag_of_parts,
)


def refusal(request: Request, platform: Platform) -> Response | None:
    """Return the refusal for an unauthorized read, or None if the URL is presigned and still valid.

    The errors are those of S3, which distinguish an expired URL from an invalid one.
    """
    path = request.scope["raw_path"].decode("ascii", "replace")
    expires = request.query_params.get(EXPIRES_PARAMETER, "")
    signature = request.query_params.get(SIGNATURE_PARAMETER, "")
    if platform.signer.presigned_is_ours(path, expires, signature):
        if int(expires) >= platform.now_s():
            return None
        details = {
            "X-Amz-Expires": str(platform.signer.lifetime_s),
            "Expires": iso(datetime.fromtimestamp(int(expires), UTC)),
            "ServerTime": iso(platform.now()),
        }
        return xml_fault(403, "AccessDenied", "Request has expired", details=details)
    if not signature:
        return xml_fault(403, "AccessDenied", "Access Denied")
    return xml_fault(403, "SignatureDoesNotMatch", "The request signature does not match the one we made")


PREFIX = "/checkpoint-files"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def file_path(job_id: str, node_rank: int, relative_name: str) -> str:
    """Return the URL path of a checkpoint file; any name works: dots, line breaks, invalid Unicode.

    The name is encoded because clients and proxies normalize paths. The last segment is for humans only.
    """
    encoded = base64.urlsafe_b64encode(os.fsencode(relative_name)).decode().rstrip("=")
    label = _UNSAFE.sub("_", relative_name.rpartition("/")[2]).lstrip(".") or "file"
    return f"{PREFIX}/{job_id}/{node_rank}/{encoded}/{label}"


def _get(request: Request) -> Response:
    platform = platform_of(request)
    refused = refusal(request, platform)
    if refused is not None:
        return refused
    job_id, rank, name = request.path_params["job_id"], request.path_params["rank"], _decoded(request)
    files: list[StoredFile] = []
    with suppress(ApiFault):
        files = platform.backend_of(job_id).checkpoint_files(job_id)
    file = next((file for file in files if (file.relative_name, str(file.node_rank)) == (name, rank)), None)
    content = None if file is None else _content(platform, file)
    if content is None:
        return xml_fault(404, "NoSuchKey", "The specified key does not exist.")
    return answer_bytes(request, content)


def _decoded(request: Request) -> str | None:
    encoded = request.path_params["encoded"]
    try:
        padded = encoded + "=" * (-len(encoded) % 4)
        return os.fsdecode(base64.b64decode(padded, altchars=b"-_", validate=True))
    except ValueError:
        return None


def _content(platform: Platform, file: StoredFile) -> StoredBytes | None:
    """Return the file's bytes, but none from outside the data folder: a job may have created symlinks."""
    if file.path is not None:
        real = file.path.resolve()
        with suppress(OSError):
            is_inside = real.is_file() and real.is_relative_to(platform.data_dir.resolve())
            return bytes_of_file(real) if is_inside else None
    if file.generate is None:
        return None
    if file.size_bytes <= SINGLE_PART_BYTES:
        etag = tag_of_content(file.generate(0, file.size_bytes))
    else:
        etag = tag_of_parts(f"{file.relative_name}:{file.modified}", file.size_bytes)
    return StoredBytes(file.size_bytes, file.generate, etag)


FILES_ROUTES = [Route(PREFIX + "/{job_id}/{rank}/{encoded}/{label}", _get, methods=["GET"])]


WELCOME = """This is the bt-tui emulator: Baseten Training's REST API on this machine.
It has no web pages: watch its jobs in the dashboard.
"""


PAGES_ROUTES = [
    Route(path, lambda _: PlainTextResponse(WELCOME), methods=["GET"])
    for path in (
        "/",
        "/training/{project_id}/logs/{job_id}",
        "/models/{model_id}/logs/{deployment_id}",
    )
]
