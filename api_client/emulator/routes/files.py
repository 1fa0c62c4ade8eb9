"""Files of checkpoints behind presigned URLs: from disk, or made on demand in the demo world."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route

from api_client.emulator.backend import StoredFile
from api_client.emulator.byte_ranges import UnsatisfiableRange, parse_range
from api_client.emulator.faults import ApiFault
from api_client.emulator.platform import Platform, ReadSynthetic
from api_client.emulator.presign import EXPIRES_PARAMETER, SIGNATURE_PARAMETER
from api_client.emulator.routes.access import platform_of
from api_client.emulator.xml_answers import xml_fault

PREFIX = "/checkpoint-files"
CHUNK_BYTES = 256 * 1024
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def file_path(job_id: str, node_rank: int, relative_name: str) -> str:
    """The path of a checkpoint file's URL, for any name: dots, line breaks, no valid Unicode.

    The name travels encoded, as clients and proxies tidy up paths; what follows it is for people.
    """
    encoded = base64.urlsafe_b64encode(os.fsencode(relative_name)).decode().rstrip("=")
    label = _UNSAFE.sub("_", relative_name.rpartition("/")[2]).lstrip(".") or "file"
    return f"{PREFIX}/{job_id}/{node_rank}/{encoded}/{label}"


def _decoded(encoded: str) -> str | None:
    try:
        padded = encoded + "=" * (-len(encoded) % 4)
        return os.fsdecode(base64.b64decode(padded, altchars=b"-_", validate=True))
    except ValueError:
        return None


def has_valid_signature(request: Request, platform: Platform) -> bool:
    """Whether the URL was presigned by us for this path, and has not expired."""
    return platform.signer.presigned_is_valid(
        request.scope["raw_path"].decode("ascii", "replace"),
        request.query_params.get(EXPIRES_PARAMETER, ""),
        request.query_params.get(SIGNATURE_PARAMETER, ""),
        now_s=platform.now_s(),
    )


def _get(request: Request) -> Response:
    platform = platform_of(request)
    if not has_valid_signature(request, platform):
        return xml_fault(403, "AccessDenied", "the URL's signature is wrong or has expired")
    path = request.path_params
    file = _find(platform, path["job_id"], path["rank"], _decoded(path["encoded"]))
    if file is None:
        return xml_fault(404, "NoSuchKey", "there is no such file any more")
    if file.path is not None:
        return _from_disk(file.path, platform.data_dir)
    if platform.read_synthetic is None:
        return xml_fault(404, "NoSuchKey", "there is no such file any more")
    return _made_on_demand(request, platform.read_synthetic, file)


def _find(platform: Platform, job_id: str, rank: str, name: str | None) -> StoredFile | None:
    try:
        files = platform.backend_of(job_id).checkpoint_files(job_id)
    except ApiFault:
        return None
    return next((file for file in files if str(file.node_rank) == rank and file.relative_name == name), None)


def _from_disk(path: Path, data_dir: Path) -> Response:
    """The file's bytes, if it lies in the data folder: a job may have left a link to anywhere."""
    real = path.resolve()
    if not real.is_file() or not real.is_relative_to(data_dir.resolve()):
        return xml_fault(404, "NoSuchKey", "there is no such file any more")
    return FileResponse(real, media_type="application/octet-stream")


def _made_on_demand(request: Request, read: ReadSynthetic, file: StoredFile) -> Response:
    headers = {"Accept-Ranges": "bytes"}
    try:
        span = parse_range(request.headers.get("range"), file.size_bytes)
    except UnsatisfiableRange:
        headers["Content-Range"] = f"bytes */{file.size_bytes}"
        return xml_fault(416, "InvalidRange", "the range lies outside the file", headers=headers)
    start, end = span or (0, file.size_bytes)
    headers["Content-Length"] = str(end - start)
    if span is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{file.size_bytes}"
    body: Iterator[bytes] = iter(()) if request.method == "HEAD" else _chunks(read, file, start, end)
    return StreamingResponse(
        body, status_code=200 if span is None else 206, headers=headers, media_type="application/octet-stream"
    )


def _chunks(read: ReadSynthetic, file: StoredFile, start: int, end: int) -> Iterator[bytes]:
    for offset in range(start, end, CHUNK_BYTES):
        yield read(file, offset, min(end, offset + CHUNK_BYTES))


ROUTES = [Route(PREFIX + "/{job_id}/{rank}/{encoded}/{label}", _get, methods=["GET"])]
