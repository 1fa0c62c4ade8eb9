"""Routes of the account: teams, secrets, instance types, prices, the bill, the key's owner, GPU capacity."""

from __future__ import annotations

from typing import Any

from api_client import routes
from api_client.emulator.answers import invalid, not_found
from api_client.emulator.billing import usage_summary
from api_client.emulator.capacity import queue_context, training_capacity
from api_client.emulator.catalog import INSTANCE_TYPES, PRICES
from api_client.emulator.routes.calls import Answers, Call, api_route
from api_client.models.account import EMULATOR_USER_EMAIL

EMULATOR_USER_ID = "emulator"


def _teams(call: Call) -> Any:
    name = call.parameters.text("name")
    return {"teams": [team for team in call.platform.stores.teams.all() if name in (None, "", team.name)]}


async def _upsert_secret(call: Call) -> Any:
    team, name, value = call.team, call.parameters.required_text("name"), call.parameters.text("value")
    if value is None:
        raise invalid("value is required")
    return call.platform.stores.secrets.upsert(team, name, value, call.platform.now())


def _delete_secret(call: Call) -> Any:
    name = call.path["name"]
    if not call.platform.stores.secrets.delete(call.team, name):
        raise not_found("Secret", name)
    return {"name": name}


def _me(call: Call) -> Any:
    return {
        "user_id": EMULATOR_USER_ID,
        "email": EMULATOR_USER_EMAIL,
        "name": "You",
        "workspace_name": call.platform.workspace_name,
    }


MAXIMUM_GPUS = 100_000


async def _set_limit(call: Call) -> Any:
    team = call.platform.team(call.parameters.required_text("team_id"))
    gpu_type = call.parameters.required_text("gpu_type")
    max_gpus = call.parameters.integer("max_gpus", maximum=MAXIMUM_GPUS)
    gpu_types = {item.gpu_type for item in training_capacity(call.platform).gpu_capacities}
    if gpu_type not in gpu_types:
        raise not_found("GPU type", gpu_type)
    if max_gpus is not None:
        call.platform.stores.teams.set_gpu_limit(team.id, gpu_type, max_gpus, call.platform.now())
    changed = next(
        item
        for item in training_capacity(call.platform).team_gpu_capacities
        if (item.team_id, item.gpu_type) == (team.id, gpu_type)
    )
    return {"team_gpu_capacity": changed}


async def _preempt(call: Call) -> Any:
    return {"training_job": await call.platform.preempt_job(call.path["job_id"])}


ACCOUNT: Answers = {
    routes.TEAMS: _teams,
    routes.SECRETS: lambda call: {"secrets": call.platform.stores.secrets.names(call.team)},
    routes.SET_SECRET: _upsert_secret,
    routes.DELETE_SECRET: _delete_secret,
    routes.INSTANCE_TYPES: lambda _: {"instance_types": INSTANCE_TYPES},
    routes.PRICES: lambda _: {"instance_types": PRICES},
    routes.BILL: lambda call: usage_summary(
        call.platform, call.parameters.moment("start_date"), call.parameters.moment("end_date")
    ),
    routes.ME: _me,
    routes.LOG_OUT: lambda _: {},  # there is no login to end
    routes.CAPACITY: lambda call: training_capacity(call.platform),
    routes.UPDATE_CAPACITY: _set_limit,
    routes.JOB_QUEUE: lambda call: queue_context(call.platform, call.path["job_id"]),
}
OTHER_ROUTES = [
    api_route("GET", "/v1/teams/{team_id}", lambda call: call.team),
    api_route("POST", "/emulator/jobs/{job_id}/preempt", _preempt),
]
