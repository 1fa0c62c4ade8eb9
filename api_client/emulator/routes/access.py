"""Helpers that give routes access to the platform, the job in the path and their own URLs."""

from __future__ import annotations

from starlette.requests import Request

from api_client.emulator.platform import Platform
from api_client.models import TrainingJob

PROJECT = "/v1/training_projects/{project_id}"
JOB = PROJECT + "/jobs/{job_id}"


def platform_of(request: Request) -> Platform:
    platform = request.app.state.platform
    assert isinstance(platform, Platform)
    return platform


def job_of(request: Request) -> TrainingJob:
    """Return the job in the path; raise a 404 if its project does not have it."""
    return platform_of(request).job(request.path_params["project_id"], request.path_params["job_id"])


def objects_url_of(request: Request) -> str:
    """Return the base of presigned URLs: the object store's port on the host name the client used.

    If the client came through a forwarded port, or the platform has no separate port for objects, return
    the client's own base URL: objects can be read there too.
    """
    base = base_url_of(request)
    port = platform_of(request).objects_port
    host, _, asked_port = base.removeprefix("http://").rpartition(":")
    if port is None or not host or asked_port != str(request.scope["server"][1]):
        return base
    return f"http://{host}:{port}"


def base_url_of(request: Request) -> str:
    """Return this emulator's base URL, for URLs that others will fetch.

    Prefer the host name the client used, because it also works through a forwarded port.
    ``api.localhost`` does not resolve everywhere (API facts, 4), so replace it by the socket's own
    address.
    """
    host = request.headers.get("host", "")
    if host.startswith("api.") or not host:
        address, port = request.scope["server"]
        host = f"{address}:{port}"
    return f"http://{host}"
