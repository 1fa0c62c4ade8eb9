"""Training projects: list, get, upsert, delete, and a project's cache."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api_client.emulator.answers import ApiFault, JsonAnswer, complete_job, not_found
from api_client.emulator.parameters import PROJECT, Parameters, platform_of, read_object
from api_client.emulator.platform import Platform
from api_client.models import Team, TrainingProject


def complete_project(project: TrainingProject) -> TrainingProject:
    """Return the project with the fields that the schema requires of its newest job."""
    latest = project.latest_job
    return project if latest is None else project.model_copy(update={"latest_job": complete_job(latest)})


def _list(request: Request) -> Response:
    projects = platform_of(request).projects()
    return JsonAnswer({"training_projects": [complete_project(project) for project in projects]})


def _get(request: Request) -> Response:
    project = platform_of(request).project(request.path_params["project_id"])
    return JsonAnswer({"training_project": complete_project(project)})


async def _upsert(request: Request) -> Response:
    platform = platform_of(request)
    fields = Parameters(Parameters(await read_object(request)).object("training_project"))
    name = fields.required_text("name")
    team = _team(platform, request.path_params.get("team_id"), fields.text("team_name"))
    return JsonAnswer({"training_project": complete_project(platform.upsert_project(name, team))})


def _team(platform: Platform, team_id: str | None, team_name: str | None) -> Team:
    """Return the team in the path, else the one named in the body, else the default team.

    truss sends the name in the body (API facts, 2.2).
    """
    if team_id is not None:
        return platform.team(team_id)
    if team_name is None:
        return platform.stores.teams.default()
    named = platform.stores.teams.named(team_name)
    if named is None:
        raise not_found("Team", team_name)
    return named


async def _delete(request: Request) -> Response:
    project_id = request.path_params["project_id"]
    await platform_of(request).delete_project(project_id)
    return JsonAnswer({"id": project_id, "deleted": True})


def _cache(request: Request) -> Response:
    platform = platform_of(request)
    project_id = platform.stored_project(request.path_params["project_id"]).id
    found = [backend.cache_files(project_id) for backend in platform.backends]
    known = [files for files in found if files is not None]
    if not known:
        raise ApiFault(404, "NOT_FOUND", "this project has no cache: none of its jobs used one")
    files = [file for files in known for file in files]
    return JsonAnswer({"timestamp": platform.now(), "project_id": project_id, "file_summaries": files})


PROJECTS_ROUTES = [
    Route("/v1/training_projects", _list, methods=["GET"]),
    Route("/v1/training_projects", _upsert, methods=["POST"]),
    Route("/v1/teams/{team_id}/training_projects", _upsert, methods=["POST"]),
    Route(PROJECT, _get, methods=["GET"]),
    Route(PROJECT, _delete, methods=["DELETE"]),
    Route(PROJECT + "/cache/summary", _cache, methods=["GET"]),
]
