"""The GraphQL calls that training clients make: teams, instances, who am I (API facts, 2.4)."""

from __future__ import annotations

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api_client.emulator.answers import JsonAnswer
from api_client.emulator.catalog import INSTANCE_TYPES, PRICES_USD_PER_MINUTE
from api_client.emulator.graphql_query import QueryError, parse, select
from api_client.emulator.parameters import Parameters, read_object
from api_client.emulator.platform import EMULATOR_USER_EMAIL, Platform
from api_client.emulator.routes.access import platform_of
from api_client.models import InstanceType

ORGANISATION_ID = "emulator"


def _root(platform: Platform) -> dict[str, Any]:
    """Everything that can be asked for."""
    return {
        "teams": [team.model_dump(mode="json") for team in platform.stores.teams.all()],
        "listed_instances": [_listed_instance(machine) for machine in INSTANCE_TYPES],
        "organization": {"id": ORGANISATION_ID, "workspace_name": platform.workspace_name},
        "user": {"email": EMULATOR_USER_EMAIL},
    }


def _listed_instance(machine: InstanceType) -> dict[str, Any]:
    return {
        "id": machine.id,
        "name": machine.name,
        "millicpu_limit": machine.millicpu_limit,
        "memory_limit": machine.memory_limit_mib,
        "gpu_count": machine.gpu_count,
        "gpu_type": machine.gpu_type,
        "gpu_memory": machine.gpu_memory_limit_mib,
        "default": machine is INSTANCE_TYPES[0],
        "display_name": machine.name,
        "node_count": 1,
        "price": PRICES_USD_PER_MINUTE.get(machine.id),
        "limited_capacity": None,
    }


def _answer(platform: Platform, query: str) -> Response:
    try:
        operation = parse(query)
        if operation.kind == "mutation":
            names = ", ".join(field.name for field in operation.fields)
            return _errors(f"the emulator does not serve {names} yet", "NOT_IMPLEMENTED")
        return JsonAnswer({"data": select(_root(platform), operation.fields)})
    except QueryError as error:
        return _errors(str(error), "GRAPHQL_VALIDATION_FAILED")


def _errors(message: str, code: str) -> Response:
    """Errors are answered with status 200 (API facts, 2.4)."""
    extensions = {"code": code, "description": message}
    return JsonAnswer({"data": None, "errors": [{"message": message, "extensions": extensions}]})


async def _post(request: Request) -> Response:
    query = Parameters(await read_object(request)).required_text("query")
    return await run_in_threadpool(_answer, platform_of(request), query)


ROUTES = [Route(path, _post, methods=["POST"]) for path in ("/graphql/", "/graphql")]
