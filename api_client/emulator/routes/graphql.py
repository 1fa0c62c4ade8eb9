"""The GraphQL endpoint, for the operations that training clients use.

Their documents are fixed, so an operation is recognized by its top-level fields. Answers hold every field of
an object, under its own name and in camel case, whatever the document selects.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from api_client import routes
from api_client.emulator.answers import ApiFault
from api_client.emulator.catalog import INSTANCE_TYPES, PRICES_USD_PER_MINUTE
from api_client.emulator.platform import Platform
from api_client.emulator.routes.calls import TEXT, Answers, Call, api_route
from api_client.emulator.routes.deploying import deploy
from api_client.models import InstanceType
from api_client.models.account import EMULATOR_USER_EMAIL

DEPLOY = "create_model_version_from_inference_template"
_OPERATION = re.compile(r"\s*(?:(query|mutation)\b[^{]*)?\{(.*)\}\s*", re.DOTALL)
_NESTED = re.compile(r"\([^()]*\)|\{[^{}]*\}")
_FIELD = re.compile(r"(?:(\w+)\s*:\s*)?(\w+)", re.ASCII)


def top_level_fields(document: str) -> tuple[str, dict[str, str]]:
    """Return the kind of a document's operation and its top-level fields by their keys in the answer.

    Raises ``ApiFault`` if it has none.
    """
    operation = _OPERATION.fullmatch(document)
    text, nested = operation[2] if operation else "", 1
    while nested:
        text, nested = _NESTED.subn(" ", text)
    fields = {field[1] or field[2]: field[2] for field in _FIELD.finditer(text)}
    if operation is None or not fields or not {*"{}"}.isdisjoint(text):
        raise ApiFault(400, "GRAPHQL_VALIDATION_FAILED", "the document has no fields that can be read")
    return operation[1] or "query", fields


def _root(platform: Platform) -> dict[str, Any]:
    return {
        "teams": platform.stores.teams.all(),
        "listed_instances": [_listed_instance(machine) for machine in INSTANCE_TYPES],
        "organization": {"id": "emulator", "workspace_name": platform.workspace_name},
        "user": {"email": EMULATOR_USER_EMAIL},
    }


def _listed_instance(machine: InstanceType) -> dict[str, Any]:
    fields = {
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
    return fields | {re.sub(r"_(\w)", lambda match: match[1].upper(), name): fields[name] for name in fields}


def _deploy(platform: Platform, variables: Mapping[str, Any]) -> dict[str, Any]:
    truss_config, version = deploy(platform, variables.get("request"))
    fields = version and {"id": version.id, "name": version.name, "model_id": version.model_id}
    return {"model_version": fields, "truss_config": truss_config}


def _answer(call: Call) -> Any:
    document, platform = call.parameters.required("query", TEXT), call.platform
    variables = call.parameters.values.get("variables")
    try:
        kind, fields = top_level_fields(document)
        answers: dict[str, Any] = {DEPLOY: None} if kind == "mutation" else _root(platform)
        unknown = [name for name in fields.values() if name not in answers]
        if unknown:
            raise ApiFault(501, "NOT_IMPLEMENTED", f"the emulator does not serve {', '.join(unknown)}")
        if kind == "mutation":
            answers[DEPLOY] = _deploy(platform, variables if isinstance(variables, dict) else {})
        return {"data": {key: answers[name] for key, name in fields.items()}}
    except ApiFault as fault:
        # GraphQL error codes where they differ from those of REST
        code = {"NOT_FOUND": "RESOURCE_NOT_FOUND"}.get(fault.code, fault.code)
        # Errors have status 200.
        extensions = {"code": code, "description": fault.message}
        return {"data": None, "errors": [{"message": fault.message, "extensions": extensions}]}


GRAPHQL: Answers = {routes.GRAPHQL_QUERY: _answer, routes.GRAPHQL_MUTATION: _answer}
OTHER_ROUTES = [api_route("POST", "/graphql", _answer)]
