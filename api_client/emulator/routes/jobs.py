"""Training jobs: list, search, get, create, update, stop, recreate, delete, download."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api_client.emulator.answers import JsonAnswer, job_fields, jobs_answer
from api_client.emulator.faults import ApiFault, invalid
from api_client.emulator.parameters import Parameters, read_object
from api_client.emulator.platform import AVAILABILITY_MODELS, Platform
from api_client.emulator.routes.access import JOB, PROJECT, job_of, objects_url_of, platform_of
from api_client.emulator.routes.projects import project_fields
from api_client.models import TrainingJob

LOWEST_PRIORITY = -(2**31)
HIGHEST_PRIORITY = 2**31 - 1


def _list(request: Request) -> Response:
    platform = platform_of(request)
    project = platform.project(request.path_params["project_id"])
    jobs = platform.project_jobs(project.id)
    return JsonAnswer(
        {"training_project": project_fields(project), "training_jobs": [job_fields(job) for job in jobs]}
    )


def _get(request: Request) -> Response:
    job = job_of(request)
    project = platform_of(request).project(job.project_id)
    return JsonAnswer({"training_project": project_fields(project), "training_job": job_fields(job)})


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
    return jobs_answer("training_jobs", jobs)


def _is_ascending(order_by: Any) -> bool:
    """Only ``created_at`` can be sorted by; newest first unless told otherwise (API facts, 2.2)."""
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
        for name in platform.stores.artifacts.of(job.id)
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
    return JsonAnswer({"training_job": job_fields(job)})


ROUTES = [
    Route("/v1/training_jobs/search", _search, methods=["POST"]),
    Route(PROJECT + "/jobs", _list, methods=["GET"]),
    Route(PROJECT + "/jobs", _create, methods=["POST"]),
    Route(JOB, _get, methods=["GET"]),
    Route(JOB, _update, methods=["PATCH"]),
    Route(JOB, _delete, methods=["DELETE"]),
    Route(JOB + "/stop", _stop, methods=["POST"]),
    Route(JOB + "/recreate", _recreate, methods=["POST"]),
    Route(JOB + "/download", _download, methods=["GET"]),
]
