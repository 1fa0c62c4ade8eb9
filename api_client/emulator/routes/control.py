"""What only an emulator can do: routes below ``/emulator/``, which the published API does not have."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api_client.emulator.answers import JsonAnswer, job_fields
from api_client.emulator.routes.access import platform_of


async def _preempt(request: Request) -> Response:
    """Take a spot job's machine away, as the platform may at any time."""
    job = await platform_of(request).preempt_job(request.path_params["job_id"])
    return JsonAnswer({"training_job": job_fields(job)})


ROUTES = [Route("/emulator/jobs/{job_id}/preempt", _preempt, methods=["POST"])]
