"""How a route reaches the platform."""

from __future__ import annotations

from starlette.requests import Request

from api_client.emulator.platform import Platform
from api_client.models import TrainingJob

PROJECT = "/v1/training_projects/{project_id}"
JOB = PROJECT + "/jobs/{job_id}"


def platform_of(request: Request) -> Platform:
    """The platform that the application serves."""
    platform = request.app.state.platform
    assert isinstance(platform, Platform)
    return platform


def job_of(request: Request) -> TrainingJob:
    """The job that the path names; 404 if its project has none of that id."""
    return platform_of(request).job(request.path_params["project_id"], request.path_params["job_id"])


def objects_url_of(request: Request) -> str:
    """Where presigned URLs lead: the port of the object store, under the name that the client used.

    A client that came through a forwarded port, or a platform without a port for objects, is led to where it
    came from: reading objects works there too.
    """
    base = base_url_of(request)
    port = platform_of(request).objects_port
    host, _, asked_port = base.removeprefix("http://").rpartition(":")
    if port is None or not host or asked_port != str(request.scope["server"][1]):
        return base
    return f"http://{host}:{port}"


def base_url_of(request: Request) -> str:
    """Where this emulator is reached, for URLs that others will fetch.

    The name the client used is best, as it works through a forwarded port too; ``api.localhost`` alone
    does not resolve everywhere (API facts, 4), so there the socket's own address is given.
    """
    host = request.headers.get("host", "")
    if host.startswith("api.") or not host:
        address, port = request.scope["server"]
        host = f"{address}:{port}"
    return f"http://{host}"
