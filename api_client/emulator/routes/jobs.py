"""Routes of a job: itself, its actions, logs, metrics and checkpoints."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api_client.definitions.job_request import read_job_request
from api_client.emulator.answers import (
    UNKNOWN_TIME,
    ApiFault,
    JsonAnswer,
    complete_job,
    complete_metrics,
    invalid,
)
from api_client.emulator.backend import StoredFile
from api_client.emulator.parameters import (
    JOB,
    PROJECT,
    Parameters,
    job_of,
    objects_url_of,
    platform_of,
    read_log_query,
    read_object,
    read_values,
)
from api_client.emulator.platform import AVAILABILITY_MODELS, Platform
from api_client.emulator.routes.files import file_path
from api_client.emulator.routes.projects import complete_project
from api_client.models import Checkpoint, TrainingJob

DEFAULT_PAGE_SIZE = 1000
MAXIMUM_OFFSET = 2**53


def _list_checkpoints(request: Request) -> Response:
    job = job_of(request)
    checkpoints = platform_of(request).backend_of(job.id).checkpoints(job.id)
    return JsonAnswer(
        {
            "training_job": complete_job(job),
            "checkpoints": [_complete_checkpoint(checkpoint, job.id) for checkpoint in checkpoints],
        }
    )


def _complete_checkpoint(checkpoint: Checkpoint, job_id: str) -> Checkpoint:
    required = {"created_at": UNKNOWN_TIME, "checkpoint_type": "full", "size_bytes": 0}
    given = {**required, "training_job_id": job_id}
    return checkpoint.model_copy(update={name: getattr(checkpoint, name) or given[name] for name in given})


def _files(request: Request) -> Response:
    """Return a page of files; the page token is an offset, null at the end (API facts, 2.2)."""
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


LOWEST_PRIORITY = -(2**31)
HIGHEST_PRIORITY = 2**31 - 1


def _list(request: Request) -> Response:
    platform = platform_of(request)
    project = platform.project(request.path_params["project_id"])
    jobs = platform.project_jobs(project.id)
    return JsonAnswer(
        {"training_project": complete_project(project), "training_jobs": [complete_job(job) for job in jobs]}
    )


def _get(request: Request) -> Response:
    job = job_of(request)
    project = platform_of(request).project(job.project_id)
    return JsonAnswer({"training_project": complete_project(project), "training_job": complete_job(job)})


async def _search(request: Request) -> Response:
    fields = await read_object(request)
    return await run_in_threadpool(_found, platform_of(request), fields)


def _found(platform: Platform, fields: dict[str, Any]) -> Response:
    parameters = Parameters(fields)
    project_id = parameters.text("project_id")
    job_id = parameters.text("job_id")
    statuses = parameters.texts("statuses")
    ascending = _is_ascending(fields.get("order_by"))
    jobs = [
        job
        for job in platform.jobs()
        if (project_id is None or job.project_id == project_id)
        and (job_id is None or job.id == job_id)
        and (not statuses or job.current_status in statuses)
    ]
    if ascending:
        jobs.reverse()
    return JsonAnswer({"training_jobs": [complete_job(job) for job in jobs]})


def _is_ascending(order_by: Any) -> bool:
    """Return True for ascending order; the default is newest first.

    Only ``created_at`` is sortable (API facts, 2.2).
    """
    if not order_by:
        return False
    first = order_by[0] if isinstance(order_by, list) else None
    if not isinstance(first, dict) or first.get("field") != "created_at":
        raise invalid("order_by: only created_at can be sorted by")
    if first.get("order") not in ("asc", "desc"):
        raise invalid("order_by: order must be asc or desc")
    return bool(first["order"] == "asc")


async def _create(request: Request) -> Response:
    fields = Parameters(await read_object(request)).object("training_job")
    return _job_answer(await platform_of(request).create_job(request.path_params["project_id"], fields))


async def _update(request: Request) -> Response:
    parameters = Parameters(await read_object(request))
    changes: dict[str, Any] = {}
    priority = parameters.integer("priority", minimum=LOWEST_PRIORITY, maximum=HIGHEST_PRIORITY)
    if priority is not None:
        changes["priority"] = priority
    model = parameters.text("availability_model")
    if model is not None:
        if model.lower() not in AVAILABILITY_MODELS:
            raise invalid(f"availability_model must be one of {', '.join(AVAILABILITY_MODELS)}")
        changes["availability_model"] = model.lower()
    return _job_answer(await platform_of(request).update_job(*_ids(request), changes))


async def _stop(request: Request) -> Response:
    return _job_answer(await platform_of(request).stop_job(*_ids(request)))


async def _recreate(request: Request) -> Response:
    return _job_answer(await platform_of(request).recreate_job(*_ids(request)))


async def _delete(request: Request) -> Response:
    project_id, job_id = _ids(request)
    await platform_of(request).delete_job(project_id, job_id)
    return JsonAnswer({"id": job_id, "deleted": True, "training_project_id": project_id})


def _download(request: Request) -> Response:
    platform = platform_of(request)
    job = job_of(request)
    names = [
        name
        for name in read_job_request(platform.backend_of(job.id).spec(job.id)).artifacts
        if platform.stores.blobs.path(name.bucket, name.key) is not None
    ]
    if not names:
        raise ApiFault(404, "NOT_FOUND", f"training job {job.id!r} was created without an uploaded archive")
    base = objects_url_of(request)
    now_s = platform.now_s()
    urls = [
        base + platform.signer.presigned(f"/{quote(name.bucket)}/{quote(name.key)}", now_s=now_s)
        for name in names
    ]
    return JsonAnswer({"artifact_presigned_urls": urls})


def _ids(request: Request) -> tuple[str, str]:
    return request.path_params["project_id"], request.path_params["job_id"]


def _job_answer(job: TrainingJob) -> Response:
    return JsonAnswer({"training_job": complete_job(job)})


async def _logs(request: Request) -> Response:
    parameters = await read_values(request)
    return await run_in_threadpool(_logs_answer, request, parameters)


def _logs_answer(request: Request, parameters: Parameters) -> Response:
    platform = platform_of(request)
    job = job_of(request)
    wanted = read_log_query(parameters, int(platform.now_s() * 1000))
    backend = platform.backend_of(job.id)
    # Checked before reading the lines, so that it is true of them.
    is_complete = backend.log_is_complete(job.id)
    lines = backend.logs(job.id, wanted)
    return JsonAnswer({"logs": lines, "complete": True} if is_complete else {"logs": lines})


MAXIMUM_STEP_S = 7 * 24 * 3600
MS_PER_S = 1000


async def _metrics(request: Request) -> Response:
    parameters = await read_values(request)
    return await run_in_threadpool(_metrics_answer, request, parameters)


def _metrics_answer(request: Request, parameters: Parameters) -> Response:
    """Return the samples. The backend chooses missing bounds, because it knows when the job ended."""
    job = job_of(request)
    start_ms = parameters.integer("start_epoch_millis")
    end_ms = parameters.integer("end_epoch_millis")
    if start_ms is not None and end_ms is not None and start_ms > end_ms:
        raise invalid("start_epoch_millis must not be after end_epoch_millis")
    metrics = (
        platform_of(request)
        .backend_of(job.id)
        .metrics(
            job.id,
            start_s=None if start_ms is None else start_ms / MS_PER_S,
            end_s=None if end_ms is None else end_ms / MS_PER_S,
            step_s=parameters.integer("step_seconds", minimum=1, maximum=MAXIMUM_STEP_S),
        )
    )
    return JsonAnswer(complete_metrics(metrics, job))


JOBS_ROUTES = [
    Route("/v1/training_jobs/search", _search, methods=["POST"]),
    Route(PROJECT + "/jobs", _list, methods=["GET"]),
    Route(PROJECT + "/jobs", _create, methods=["POST"]),
    Route(JOB, _get, methods=["GET"]),
    Route(JOB, _update, methods=["PATCH"]),
    Route(JOB, _delete, methods=["DELETE"]),
    Route(JOB + "/stop", _stop, methods=["POST"]),
    Route(JOB + "/recreate", _recreate, methods=["POST"]),
    Route(JOB + "/download", _download, methods=["GET"]),
    Route(JOB + "/logs", _logs, methods=["GET", "POST"]),
    Route(JOB + "/metrics", _metrics, methods=["GET", "POST"]),
    Route(JOB + "/checkpoints", _list_checkpoints, methods=["GET"]),
    Route(JOB + "/checkpoint_files", _files, methods=["GET"]),
]
