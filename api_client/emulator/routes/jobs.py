"""Routes of projects and their caches, and of jobs: actions, logs, metrics, checkpoints, sessions.

SSH certificates only have the right format, and no server accepts them: the emulator has no SSH proxy.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, Literal, get_args
from urllib.parse import quote

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from api_client import routes
from api_client.definitions.job_request import read_job_request
from api_client.emulator.backend import StoredFile
from api_client.emulator.job_spec import AvailabilityModel, Int32
from api_client.emulator.responses import ApiFault, found_or_404, invalid, not_found
from api_client.emulator.routes.calls import (
    OBJECT_ADAPTER,
    TEXT_ADAPTER,
    TEXT_LIST_ADAPTER,
    Call,
    Handlers,
    Parameters,
    api_route,
    read_log_query,
    read_time_range,
    starlette_routes,
)
from api_client.emulator.routes.files import file_path
from api_client.models.logs import MS_PER_S


async def _upsert_project(call: Call) -> Any:
    """Upsert in the team in the path, else in the team that the body names, as truss sends it."""
    fields = Parameters(call.parameters.required("training_project", OBJECT_ADAPTER))
    name, team, team_name = (
        fields.required("name", TEXT_ADAPTER),
        call.team,
        fields.get("team_name", TEXT_ADAPTER),
    )
    if team_name is not None and "team_id" not in call.path_parameters:
        team = found_or_404(call.platform.stores.teams.named(team_name), "Team", team_name)
    return {"training_project": call.platform.upsert_project(name, team)}


async def _delete_project(call: Call) -> Any:
    project_id = call.path_parameters["project_id"]
    await call.platform.delete_project(project_id)
    return {"id": project_id, "deleted": True}


def _project_cache(call: Call) -> Any:
    project_id = call.platform.stored_project(call.path_parameters["project_id"]).id
    listings = [backend.cache_files(project_id) for backend in call.platform.backends]
    caches = [files for files in listings if files is not None]
    if not caches:
        raise ApiFault(404, "NOT_FOUND", "this project has no cache: none of its jobs used one")
    files = [file for files in caches for file in files]
    return {"timestamp": call.platform.now(), "project_id": project_id, "file_summaries": files}


def _checkpoint_files(call: Call) -> Any:
    """Return a page of files; the page token is an offset, null at the end."""
    job, integer = call.job, call.parameters.integer
    size = integer("page_size", minimum=1, maximum=2**53) or 1000
    offset = integer("page_token", maximum=2**53) or 0
    files, end = call.backend.checkpoint_files(job.id), offset + size

    def fields(file: StoredFile) -> dict[str, Any]:
        return {
            "url": call.presigned_url(file_path(job.id, file.node_rank, file.relative_name)),
            "relative_file_name": file.relative_name,
            "node_rank": file.node_rank,
            "size_bytes": file.size_bytes,
            "last_modified": file.modified,
        }

    return {
        "presigned_urls": [fields(file) for file in files[offset:end]],
        "next_page_token": end if end < len(files) else None,
        "total_count": len(files),
    }


class SortOrder(TypedDict):
    """A field to sort by; the default is newest first."""

    field: Literal["created_at"]
    order: Literal["asc", "desc"]


def _search_jobs(call: Call) -> Any:
    project_id, job_id = (
        call.parameters.get("project_id", TEXT_ADAPTER),
        call.parameters.get("job_id", TEXT_ADAPTER),
    )
    statuses = call.parameters.get("statuses", TEXT_LIST_ADAPTER) or []
    orders = call.parameters.get("order_by", TypeAdapter(list[SortOrder])) or [
        SortOrder(field="created_at", order="desc")
    ]
    jobs = [
        job
        for job in call.platform.jobs()
        if project_id in (None, job.project_id)
        and job_id in (None, job.id)
        and (not statuses or job.current_status in statuses)
    ]
    return {"training_jobs": jobs[::-1] if orders[0]["order"] == "asc" else jobs}


async def _create_job(call: Call) -> Any:
    fields = call.parameters.required("training_job", OBJECT_ADAPTER)
    return {"training_job": await call.platform.create_job(call.path_parameters["project_id"], fields)}


async def _update_job(call: Call) -> Any:
    changes: dict[str, Any] = {}
    priority = call.parameters.get("priority", TypeAdapter(Int32))
    if priority is not None:
        changes["priority"] = priority
    availability_model = call.parameters.get("availability_model", TEXT_ADAPTER)
    if availability_model is not None:
        if availability_model.lower() not in get_args(AvailabilityModel):
            raise invalid(f"availability_model must be one of {', '.join(get_args(AvailabilityModel))}")
        changes["availability_model"] = availability_model.lower()
    return {"training_job": await call.platform.update_job(*call.ids, changes)}


async def _stop_job(call: Call) -> Any:
    return {"training_job": await call.platform.stop_job(*call.ids)}


async def _recreate_job(call: Call) -> Any:
    return {"training_job": await call.platform.recreate_job(*call.ids)}


async def _delete_job(call: Call) -> Any:
    project_id, job_id = call.ids
    await call.platform.delete_job(project_id, job_id)
    return {"id": job_id, "deleted": True, "training_project_id": project_id}


def _job_code(call: Call) -> Any:
    job, platform = call.job, call.platform
    urls = [
        call.presigned_url(f"/{quote(artifact.bucket)}/{quote(artifact.key)}")
        for artifact in read_job_request(platform.backend_of(job.id).spec(job.id)).artifacts
        if platform.stores.blobs.path(artifact.bucket, artifact.key) is not None
    ]
    if not urls:
        raise ApiFault(404, "NOT_FOUND", f"training job {job.id!r} was created without an uploaded archive")
    return {"artifact_presigned_urls": urls}


def _logs(call: Call) -> Any:
    job = call.job
    query = read_log_query(call.parameters, int(call.platform.now_s() * MS_PER_S))
    backend = call.backend
    # Checked before reading the lines: if it is complete now, no line is missing.
    is_complete = backend.log_is_complete(job.id)
    lines = backend.logs(job.id, query)
    return {"logs": lines, "complete": True} if is_complete else {"logs": lines}


def _metrics(call: Call) -> Any:
    """Return samples. The backend has defaults for missing bounds, because it knows when the job ended."""
    job = call.job
    start_ms, end_ms = read_time_range(call.parameters)
    return call.backend.metrics(
        job.id,
        start_s=None if start_ms is None else start_ms / MS_PER_S,
        end_s=None if end_ms is None else end_ms / MS_PER_S,
        step_s=call.parameters.integer("step_seconds", minimum=1, maximum=7 * 24 * 3600),
    )


PUBLIC_KEY = re.compile(r"\s*(sk-)?(ssh|ecdsa)-\S+\s+[A-Za-z0-9+/=]{16,}(\s.*)?", re.ASCII | re.DOTALL)


FOREVER_MINUTES = 10 * 365 * 24 * 60
"""Session timeout for a request of -1, which means no timeout."""


def _auth_codes(call: Call) -> Any:
    sessions = call.platform.stores.sessions.get(call.job.id) or ()
    return {
        "auth_codes": [
            {
                "session_id": session.id,
                "replica_id": f"g{rank:02d}r0",
                "auth_code": session.auth_code or "",
                "auth_url": session.auth_url or "",
                "generated_at": session.auth_code_generated_at,
                "tunnel_name": session.tunnel_name,
                "expires_at": session.expires_at,
                "working_directory": session.working_directory,
                "trigger": session.trigger,  # missing in the schema, but truss reads it
            }
            for rank, session in enumerate(sessions)
        ]
    }


async def _update_session(call: Call) -> Any:
    platform, job, parameters = call.platform, call.job, call.parameters
    session_id = call.path_parameters["session_id"]
    sessions = {session.id: session for session in platform.stores.sessions.get(job.id) or ()}
    session = found_or_404(sessions.get(session_id), "Interactive session", session_id)
    trigger = parameters.choice("trigger", ("on_startup", "on_failure", "on_demand")) or session.trigger
    minutes = parameters.integer("timeout_minutes", minimum=-1, maximum=FOREVER_MINUTES) or 0
    is_on_startup = session.trigger == "on_startup"
    if is_on_startup and trigger != session.trigger:
        raise invalid("the trigger of an on_startup session cannot be changed")
    added_minutes = FOREVER_MINUTES if minutes == -1 else minutes
    changes = {
        "trigger": trigger,
        "timeout_minutes": session.timeout_minutes + (0 if is_on_startup else added_minutes),
        "expires_at": (session.expires_at or platform.now()) + timedelta(minutes=added_minutes),
    }
    changed_session = session.model_copy(update=changes)
    platform.stores.sessions.put(job.id, tuple((sessions | {session_id: changed_session}).values()))
    return {"interactive_session": changed_session, "message": "Interactive session updated"}


async def _sign_ssh_key(call: Call) -> Any:
    job, parameters = call.job, call.parameters
    if PUBLIC_KEY.fullmatch(parameters.required("public_key", TEXT_ADAPTER)) is None:
        raise invalid("public_key is not an OpenSSH public key")
    replica_id = parameters.required("replica_id", TEXT_ADAPTER)
    if replica_id not in {str(rank) for rank in range(job.node_count or 1)}:
        raise not_found("Replica", replica_id)
    if job.is_finished:
        raise invalid(f"the job is not running: {job.current_status}")
    return {
        "ssh_certificate": "ssh-ed25519-cert-v01@openssh.com bm90LXJlYWw= bt-tui-emulator",
        "jwt": "e30.e30.ZW11bGF0b3I",
        "proxy_address": "ssh-proxy.emulator.invalid:443",
        "ssh_cert_expires_at": call.platform.now() + timedelta(minutes=5),
    }


HANDLERS: Handlers = {
    routes.PROJECTS: lambda call: {"training_projects": call.platform.projects()},
    routes.PROJECT: lambda call: {
        "training_project": call.platform.project(call.path_parameters["project_id"])
    },
    routes.UPSERT_PROJECT: _upsert_project,
    routes.DELETE_PROJECT: _delete_project,
    routes.PROJECT_CACHE: _project_cache,
    routes.SEARCH_JOBS: _search_jobs,
    routes.JOBS: lambda call: {
        "training_project": call.platform.project(call.path_parameters["project_id"]),
        "training_jobs": call.platform.project_jobs(call.path_parameters["project_id"]),
    },
    routes.JOB: lambda call: {
        "training_project": call.platform.project(call.path_parameters["project_id"]),
        "training_job": call.job,
    },
    routes.CREATE_JOB: _create_job,
    routes.UPDATE_JOB: _update_job,
    routes.DELETE_JOB: _delete_job,
    routes.STOP_JOB: _stop_job,
    routes.RECREATE_JOB: _recreate_job,
    routes.JOB_CODE: _job_code,
    routes.JOB_LOGS: _logs,
    routes.JOB_METRICS: _metrics,
    routes.CHECKPOINTS: lambda call: {
        "training_job": call.job,
        "checkpoints": call.backend.checkpoints(call.path_parameters["job_id"]),
    },
    routes.CHECKPOINT_FILES: _checkpoint_files,
    routes.AUTH_CODES: _auth_codes,
    routes.UPDATE_SESSION: _update_session,
    routes.SIGN_SSH: _sign_ssh_key,
}
ROUTES = [
    *starlette_routes(HANDLERS),
    api_route("POST", routes.JOB_LOGS.path, _logs),
    api_route("POST", routes.JOB_METRICS.path, _metrics),
]
