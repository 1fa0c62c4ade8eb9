"""A job's checkpoints and their files, with a presigned URL each."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api_client.emulator.answers import UNKNOWN_TIME, JsonAnswer, job_fields
from api_client.emulator.backend import StoredFile
from api_client.emulator.parameters import Parameters
from api_client.emulator.routes.access import JOB, job_of, objects_url_of, platform_of
from api_client.emulator.routes.files import file_path
from api_client.emulator.timestamps import iso
from api_client.models import Checkpoint

DEFAULT_PAGE_SIZE = 1000
MAXIMUM_OFFSET = 2**53


def _list(request: Request) -> Response:
    job = job_of(request)
    checkpoints = platform_of(request).backend_of(job.id).checkpoints(job.id)
    return JsonAnswer(
        {
            "training_job": job_fields(job),
            "checkpoints": [_checkpoint_fields(checkpoint, job.id) for checkpoint in checkpoints],
        }
    )


def _checkpoint_fields(checkpoint: Checkpoint, job_id: str) -> dict[str, Any]:
    fields = checkpoint.model_dump(mode="json")
    fields["created_at"] = fields["created_at"] or iso(UNKNOWN_TIME)
    fields["checkpoint_type"] = fields["checkpoint_type"] or "full"
    fields["size_bytes"] = fields["size_bytes"] or 0
    fields["training_job_id"] = fields["training_job_id"] or job_id
    return fields


def _files(request: Request) -> Response:
    """A page of files; the token is an offset, null at the end (API facts, 2.2)."""
    platform = platform_of(request)
    job = job_of(request)
    parameters = Parameters(request.query_params)
    size = parameters.integer("page_size", minimum=1, maximum=MAXIMUM_OFFSET, default=DEFAULT_PAGE_SIZE)
    offset = parameters.integer("page_token", maximum=MAXIMUM_OFFSET, default=0)
    assert size is not None
    assert offset is not None
    files = platform.backend_of(job.id).checkpoint_files(job.id)
    end = offset + size
    base = objects_url_of(request)
    now_s = platform.now_s()

    def fields(file: StoredFile) -> dict[str, Any]:
        path = file_path(job.id, file.node_rank, file.relative_name)
        return {
            "url": base + platform.signer.presigned(path, now_s=now_s),
            "relative_file_name": file.relative_name,
            "node_rank": file.node_rank,
            "size_bytes": file.size_bytes,
            "last_modified": file.modified,
        }

    return JsonAnswer(
        {
            "presigned_urls": [fields(file) for file in files[offset:end]],
            "next_page_token": end if end < len(files) else None,
            "total_count": len(files),
        }
    )


ROUTES = [
    Route(JOB + "/checkpoints", _list, methods=["GET"]),
    Route(JOB + "/checkpoint_files", _files, methods=["GET"]),
]
