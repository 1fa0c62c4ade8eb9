"""The GraphQL calls of training clients: teams, instances, who am I, deploy (API facts, 2.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api_client.emulator.answers import JsonAnswer
from api_client.emulator.catalog import INSTANCE_TYPES, PRICES_USD_PER_MINUTE
from api_client.emulator.faults import ApiFault
from api_client.emulator.graphql_query import Field, QueryError, parse, resolve, select
from api_client.emulator.parameters import Parameters, read_object
from api_client.emulator.platform import EMULATOR_USER_EMAIL, Platform
from api_client.emulator.routes.access import platform_of
from api_client.emulator.serving.deploying import deploy
from api_client.models import InstanceType

ORGANISATION_ID = "emulator"
DEPLOY = "create_model_version_from_inference_template"
FAULT_CODES = {"NOT_FOUND": "RESOURCE_NOT_FOUND"}
"""GraphQL has another word for it than REST has."""


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


def _deploy(platform: Platform, field: Field, variables: Mapping[str, Any]) -> Any:
    """Deploy, or only render; what is wanted of the answer is checked before anything is made."""
    answer: dict[str, Any] = {
        "model_version": {"id": "", "name": "", "model_id": ""},
        "truss_config": "",
    }
    select(answer, field.fields, where=field.name)
    if "request" not in field.arguments:
        raise QueryError(f"{DEPLOY} needs the argument 'request'")
    made = deploy(platform, resolve(field.arguments["request"], variables))
    version = made.deployment
    answer["truss_config"] = made.truss_config
    answer["model_version"] = (
        None if version is None else {"id": version.id, "name": version.name, "model_id": version.model_id}
    )
    return select(answer, field.fields, where=field.name)


def _mutate(platform: Platform, fields: tuple[Field, ...], variables: Mapping[str, Any]) -> Response:
    if [field.name for field in fields] != [DEPLOY]:
        names = ", ".join(field.name for field in fields)
        return _errors(f"the emulator does not serve {names}", "NOT_IMPLEMENTED")
    try:
        return JsonAnswer({"data": {fields[0].key: _deploy(platform, fields[0], variables)}})
    except ApiFault as fault:
        return _errors(fault.message, FAULT_CODES.get(fault.code, fault.code))


def _answer(platform: Platform, query: str, variables: Mapping[str, Any]) -> Response:
    try:
        operation = parse(query)
        if operation.kind == "mutation":
            return _mutate(platform, operation.fields, variables)
        return JsonAnswer({"data": select(_root(platform), operation.fields)})
    except QueryError as error:
        return _errors(str(error), "GRAPHQL_VALIDATION_FAILED")


def _errors(message: str, code: str) -> Response:
    """Errors are answered with status 200 (API facts, 2.4)."""
    extensions = {"code": code, "description": message}
    return JsonAnswer({"data": None, "errors": [{"message": message, "extensions": extensions}]})


async def _post(request: Request) -> Response:
    content = await read_object(request)
    query = Parameters(content).required_text("query")
    variables = content.get("variables")
    given = variables if isinstance(variables, dict) else {}
    return await run_in_threadpool(_answer, platform_of(request), query, given)


ROUTES = [Route(path, _post, methods=["POST"]) for path in ("/graphql/", "/graphql")]
