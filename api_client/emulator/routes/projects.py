"""Training projects: list, get, upsert, delete, and a project's cache."""

from __future__ import annotations

from typing import Any

from api_client.emulator.answers import ApiFault, not_found
from api_client.emulator.routes.calls import PROJECT, Call, Parameters, api_route


def _list(call: Call) -> Any:
    return {"training_projects": call.platform.projects()}


def _get(call: Call) -> Any:
    return {"training_project": call.platform.project(call.path["project_id"])}


async def _upsert(call: Call) -> Any:
    """Upsert in the team in the path, else in the one named in the body, as truss does (API facts, 2.2)."""
    fields = Parameters(call.parameters.object("training_project"))
    name, team, team_name = fields.required_text("name"), call.team, fields.text("team_name")
    if team_name is not None and "team_id" not in call.path:
        named = call.platform.stores.teams.named(team_name)
        if named is None:
            raise not_found("Team", team_name)
        team = named
    return {"training_project": call.platform.upsert_project(name, team)}


async def _delete(call: Call) -> Any:
    project_id = call.path["project_id"]
    await call.platform.delete_project(project_id)
    return {"id": project_id, "deleted": True}


def _cache(call: Call) -> Any:
    project_id = call.platform.stored_project(call.path["project_id"]).id
    found = [backend.cache_files(project_id) for backend in call.platform.backends]
    known = [files for files in found if files is not None]
    if not known:
        raise ApiFault(404, "NOT_FOUND", "this project has no cache: none of its jobs used one")
    files = [file for files in known for file in files]
    return {"timestamp": call.platform.now(), "project_id": project_id, "file_summaries": files}


PROJECTS_ROUTES = [
    api_route("GET", "/v1/training_projects", _list),
    api_route("POST", "/v1/training_projects", _upsert),
    api_route("POST", "/v1/teams/{team_id}/training_projects", _upsert),
    api_route("GET", PROJECT, _get),
    api_route("DELETE", PROJECT, _delete),
    api_route("GET", PROJECT + "/cache/summary", _cache),
]
