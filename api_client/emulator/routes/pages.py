"""What a browser finds here: a sentence. The emulator has no web pages of its own."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

WELCOME = "This is the bt-tui emulator: Baseten Training's REST API on this machine.\n"


def _welcome(_: Request) -> Response:
    return PlainTextResponse(WELCOME)


def _job(request: Request) -> Response:
    job_id = "".join(c for c in request.path_params["job_id"] if c.isascii() and c.isalnum())
    return PlainTextResponse(f"{WELCOME}It has no web pages; to see this job, run: bt-tui watch {job_id}\n")


def _deployment(_: Request) -> Response:
    return PlainTextResponse(f"{WELCOME}It has no web pages; the API has this deployment's log.\n")


ROUTES = [
    Route("/", _welcome, methods=["GET"]),
    Route("/training/{project_id}/logs/{job_id}", _job, methods=["GET"]),
    Route("/models/{model_id}/logs/{deployment_id}", _deployment, methods=["GET"]),
]
