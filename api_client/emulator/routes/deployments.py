"""Models and their deployments: created from checkpoints through GraphQL, changed and read through REST.

The emulator only simulates that a deployment starts: it succeeds if its instance type has GPUs.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from api_client import routes
from api_client.definitions.deployment import DEPLOYED_CHECKPOINTS_FOLDER
from api_client.emulator.catalog import INSTANCE_TYPES, PRICES_USD_PER_MINUTE, find_instance_type
from api_client.emulator.platform import Platform
from api_client.emulator.responses import (
    ApiFault,
    first_problem,
    found_or_404,
    invalid,
    new_id,
    not_found,
    not_implemented,
)
from api_client.emulator.routes.calls import (
    TEXT_ADAPTER,
    Call,
    api_route,
    read_log_query,
    read_time_range,
    starlette_routes,
)
from api_client.emulator.store.deployments import (
    StoredDeployment,
    StoredModel,
    deployment_fields,
    log_lines,
    model_fields,
    startup_fields,
)
from api_client.models import Checkpoint, InstanceType
from api_client.models.account import EMULATOR_USER_EMAIL
from api_client.models.logs import MS_PER_S, NS_PER_MS
from api_client.servable import adapter_ranks, check_selection, kind_of, rank_for
from api_client.vocabulary import normal_gpu_type

SERVER_PORT = 8000


class _RequestPart(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True, defer_build=True)


class _Metadata(_RequestPart):
    oracle_name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class CheckpointReference(_RequestPart):
    training_job_id: str
    checkpoint_name: str


class _TrainingSource(_RequestPart):
    checkpoint: CheckpointReference


class _WeightsSource(_RequestPart):
    weight_source_type: Literal["B10_CHECKPOINTING"]
    b10_training_checkpoint_weights_source: _TrainingSource


class EnvironmentVariable(_RequestPart):
    """An environment variable of the server.

    ``value`` is its value or, if it is a secret reference, the name of a secret.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
    value: str
    is_secret_reference: bool = False


class _InferenceStack(_RequestPart):
    stack_type: Literal["VLLM"]
    environment_variables: list[EnvironmentVariable] = []


class TemplateRequest(_RequestPart):
    metadata: _Metadata
    weights_sources: list[_WeightsSource] = Field(min_length=1)
    inference_stack: _InferenceStack
    instance_type_id: str
    dry_run: bool = False


def check_template_request(fields: Any) -> TemplateRequest:
    """Validate the request; raise an ``ApiFault`` that names the first invalid field."""
    try:
        return TemplateRequest.model_validate(fields)
    except ValidationError as error:
        if any(problem["input"] == "B10_LOOPS_CHECKPOINTING" for problem in error.errors(include_url=False)):
            raise not_implemented("the emulator has no Loops checkpoints") from error
        raise invalid(first_problem("request", error)) from error


def find_servable(platform: Platform, references: Sequence[CheckpointReference]) -> list[Checkpoint]:
    """Look up checkpoints; raise an ``ApiFault`` if any is missing or they cannot be served together."""
    checkpoints = [
        _find_checkpoint(platform, reference.training_job_id, reference.checkpoint_name)
        for reference in references
    ]
    if reason := check_selection(checkpoints) or rank_for(adapter_ranks(checkpoints)).refusal:
        raise invalid(reason)
    if kind_of(checkpoints[0]) == "lora" and not checkpoints[0].base_model:
        raise invalid(f"the base model of LoRA checkpoint {checkpoints[0].checkpoint_id!r} is unknown")
    return checkpoints


def _find_checkpoint(platform: Platform, job_id: str, name: str) -> Checkpoint:
    job = platform.job_by_id(job_id)
    for checkpoint in platform.backend_of(job.id).checkpoints(job.id):
        if checkpoint.checkpoint_id == name:
            return checkpoint.model_copy(update={"training_job_id": job.id})
    raise ApiFault(404, "NOT_FOUND", f"Checkpoint {name!r} of training job {job.id!r} not found")


def render_config(
    model_name: str,
    machine: InstanceType,
    checkpoints: Sequence[Checkpoint],
    environment: Sequence[EnvironmentVariable],
) -> dict[str, Any]:
    """Return the content of the deployment's config.yaml. It has the names of secrets, not their values."""
    secrets, first_checkpoint = (
        [variable for variable in environment if variable.is_secret_reference],
        checkpoints[0],
    )
    example: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello!"}]}
    endpoint = "/v1/chat/completions"
    if kind_of(first_checkpoint) == "whisper":
        example, endpoint = {"file": "speech.wav"}, "/v1/audio/transcriptions"
    resources: dict[str, Any] = {
        "cpu": str(machine.millicpu_limit // 1000),
        "memory": f"{machine.memory_limit_mib // 1024}Gi",
        "use_gpu": machine.gpu_count > 0,
    }
    if machine.gpu_type:
        resources["accelerator"] = f"{normal_gpu_type(machine.gpu_type)}:{machine.gpu_count}"
    return {
        "model_name": model_name,
        "model_metadata": {
            "example_model_input": {"model": first_checkpoint.checkpoint_id} | example,
            "tags": ["openai-compatible"],
        },
        "base_image": {"image": "vllm/vllm-openai:v0.11.0"},
        "docker_server": {
            "start_command": start_command(machine, checkpoints, secrets),
            "server_port": SERVER_PORT,
            "predict_endpoint": endpoint,
            "readiness_endpoint": "/health",
            "liveness_endpoint": "/health",
        },
        "environment_variables": {
            variable.name: variable.value for variable in environment if not variable.is_secret_reference
        },
        "resources": resources,
        "runtime": {"predict_concurrency": 256},
        "secrets": {variable.value: None for variable in secrets},
        "training_checkpoints": {
            "download_folder": DEPLOYED_CHECKPOINTS_FOLDER,
            "artifact_references": [
                {"training_job_id": checkpoint.training_job_id, "paths": [f"{_checkpoint_path(checkpoint)}/"]}
                for checkpoint in checkpoints
            ],
        },
    }


def start_command(
    machine: InstanceType, checkpoints: Sequence[Checkpoint], secrets: Sequence[EnvironmentVariable]
) -> str:
    """Return the container's command: export secrets from their files, then run vLLM."""
    arguments = ["exec", "vllm", "serve", *_weights_arguments(checkpoints)]
    arguments += ["--port", str(SERVER_PORT), "--dtype", "bfloat16"]
    arguments += ["--tensor-parallel-size", str(max(1, machine.gpu_count))]
    exports = [
        f'export {secret.name}="$(cat {shlex.quote(f"/secrets/{secret.value}")})"' for secret in secrets
    ]
    return shlex.join(["sh", "-c", "; ".join([*exports, shlex.join(arguments)])])


def _weights_arguments(checkpoints: Sequence[Checkpoint]) -> list[str]:
    first_checkpoint = checkpoints[0]
    if kind_of(first_checkpoint) != "lora":
        return [_checkpoint_folder(first_checkpoint), "--served-model-name", first_checkpoint.checkpoint_id]
    return [
        first_checkpoint.base_model or "",
        "--enable-lora",
        "--max-lora-rank",
        str(rank_for(adapter_ranks(checkpoints)).default),
        "--max-loras",
        str(len(checkpoints)),
        "--lora-modules",
        *(f"{checkpoint.checkpoint_id}={_checkpoint_folder(checkpoint)}" for checkpoint in checkpoints),
    ]


def _checkpoint_folder(checkpoint: Checkpoint) -> str:
    return str(
        PurePosixPath(DEPLOYED_CHECKPOINTS_FOLDER, checkpoint.training_job_id, _checkpoint_path(checkpoint))
    )


def _checkpoint_path(checkpoint: Checkpoint) -> PurePosixPath:
    return PurePosixPath("rank-0", checkpoint.checkpoint_id)


def deploy(platform: Platform, fields: Any) -> dict[str, Any]:
    """Create the deployment that the mutation's ``request`` describes; create nothing on an ``ApiFault``.

    Returns the configuration as JSON text, and the deployment (None for a dry run). The model belongs to the
    team of the first checkpoint's project.
    """
    request = check_template_request(fields)
    try:
        machine = find_instance_type(request.instance_type_id)
    except LookupError:
        raise not_found("Instance type", request.instance_type_id) from None
    name, environment = request.metadata.oracle_name, request.inference_stack.environment_variables
    sources = (source.b10_training_checkpoint_weights_source for source in request.weights_sources)
    checkpoints = find_servable(platform, [source.checkpoint for source in sources])
    team_id = platform.stores.team_of(platform.job_by_id(checkpoints[0].training_job_id).project_id)
    config = render_config(name, machine, checkpoints, environment)
    if request.dry_run:
        return {"model_version": None, "truss_config": json.dumps(config)}
    now, models = platform.now(), platform.stores.models
    matches = (model for model in models.all() if (model.team_id, model.name) == (team_id, name))
    model = next(matches, None) or StoredModel(new_id(), team_id, name, created_at=now)
    deployment = StoredDeployment(
        id=new_id(),
        model_id=model.id,
        number=model.deployments_made + 1,
        created_at=now,
        machine_name=machine.name,
        config=config,
        warnings=tuple(_missing_secrets(platform, team_id, environment)),
        starts=((now, None),),
    )
    changed_model = replace(
        model,
        deployments=(deployment, *model.deployments),
        deployments_made=deployment.number,
        production_id=(model.production or deployment).id,
    )
    models.put(model.id, changed_model)
    fields = {"id": deployment.id, "name": deployment.name, "model_id": model.id}
    return {"model_version": fields, "truss_config": json.dumps(config)}


def _missing_secrets(
    platform: Platform, team_id: str, environment: list[EnvironmentVariable]
) -> Iterator[str]:
    for variable in environment:
        if variable.is_secret_reference and platform.stores.secrets.value(team_id, variable.value) is None:
            yield f"The workspace has no secret {variable.value!r}: {variable.name} will be empty"


DEPLOY = "create_model_version_from_inference_template"


def top_level_fields(document: str) -> tuple[str, dict[str, str]]:
    """Return a GraphQL document's operation and its top-level fields by their keys in the response.

    Raises ``ApiFault`` if the document has no fields.
    """
    operation = re.fullmatch(r"\s*(?:(query|mutation)\b[^{]*)?\{(.*)\}\s*", document, re.DOTALL)
    text, nested = operation[2] if operation else "", 1
    while nested:
        text, nested = re.subn(r"\([^()]*\)|\{[^{}]*\}", " ", text)
    fields = {
        field[1] or field[2]: field[2] for field in re.finditer(r"(?:(\w+)\s*:\s*)?(\w+)", text, re.ASCII)
    }
    if operation is None or not fields or not {*"{}"}.isdisjoint(text):
        raise ApiFault(400, "GRAPHQL_VALIDATION_FAILED", "the document has no fields that can be read")
    return operation[1] or "query", fields


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


async def _graphql(call: Call) -> Any:
    document, platform = call.parameters.required("query", TEXT_ADAPTER), call.platform
    variables = call.parameters.values.get("variables")
    try:
        operation, fields = top_level_fields(document)
        value_by_field: dict[str, Any] = {
            "teams": platform.stores.teams.all(),
            "listed_instances": [_listed_instance(machine) for machine in INSTANCE_TYPES],
            "organization": {"id": "emulator", "workspace_name": platform.workspace_name},
            "user": {"email": EMULATOR_USER_EMAIL},
        }
        if operation == "mutation":
            value_by_field = {DEPLOY: None}
        unknown_fields = [name for name in fields.values() if name not in value_by_field]
        if unknown_fields:
            raise ApiFault(501, "NOT_IMPLEMENTED", f"the emulator does not serve {', '.join(unknown_fields)}")
        if operation == "mutation":
            value_by_field[DEPLOY] = deploy(
                platform, variables.get("request") if isinstance(variables, dict) else None
            )
        return {"data": {key: value_by_field[name] for key, name in fields.items()}}
    except ApiFault as fault:
        # GraphQL error codes where they differ from those of REST
        code = {"NOT_FOUND": "RESOURCE_NOT_FOUND"}.get(fault.code, fault.code)
        # GraphQL reports errors with status 200.
        extensions = {"code": code, "description": fault.message}
        return {"data": None, "errors": [{"message": fault.message, "extensions": extensions}]}


FAILED, STOPPED_STATUSES = "DEPLOY_FAILED", ("DEACTIVATING", "INACTIVE")


def _model_of(call: Call) -> StoredModel:
    model_id = call.path_parameters["model_id"]
    return found_or_404(call.platform.stores.models.get(model_id), "Model", model_id)


def _deployment_of(call: Call) -> StoredDeployment:
    """Return the deployment in the path, by id or as ``production``; raise a 404 if its model has none."""
    deployment_id, model = call.path_parameters["deployment_id"], _model_of(call)
    if deployment_id == "production":
        deployment_id = model.production_id or deployment_id
    matches = (deployment for deployment in model.deployments if deployment.id == deployment_id)
    return found_or_404(next(matches, None), "Deployment", deployment_id)


def _model_fields(call: Call, model: StoredModel) -> dict[str, Any]:
    team = call.platform.stores.teams.get(model.team_id)
    return model_fields(model, team.name if team else "")


def _deployment_fields(call: Call, deployment: StoredDeployment) -> dict[str, Any]:
    return deployment_fields(_model_of(call), deployment, call.platform.now())


def _models(call: Call) -> Any:
    team_id = call.team.id if "team_id" in call.path_parameters else None
    name = call.parameters.get("name", TEXT_ADAPTER)
    models = [
        _model_fields(call, model)
        for model in reversed(call.platform.stores.models.all())
        if team_id in (None, model.team_id) and name in (None, model.name)
    ]
    return {"models": models}


async def _delete_model(call: Call) -> Any:
    model = _model_of(call)
    call.platform.stores.models.delete(model.id)
    return {"id": model.id, "deleted": True}


def _deployments(call: Call) -> Any:
    name, deployments = call.parameters.get("name", TEXT_ADAPTER), _model_of(call).deployments
    return {
        "deployments": [
            _deployment_fields(call, deployment)
            for deployment in deployments
            if name in (None, deployment.name)
        ]
    }


async def _delete_deployment(call: Call) -> Any:
    model, deployment = _model_of(call), _deployment_of(call)
    remaining = tuple(candidate for candidate in model.deployments if candidate.id != deployment.id)
    call.platform.stores.models.put(model.id, replace(model, deployments=remaining))
    return {"id": deployment.id, "deleted": True, "model_id": model.id}


async def _promote(call: Call) -> Any:
    model, deployment = _model_of(call), _deployment_of(call)
    if _status(call) == FAILED:
        raise invalid("a deployment that failed cannot be promoted")
    call.platform.stores.models.put(model.id, replace(model, production_id=deployment.id))
    return _deployment_fields(call, deployment)


async def _activate(call: Call) -> Any:
    status = _status(call)
    if status == FAILED:
        raise invalid("a deployment that failed cannot be activated; retry it")
    if status in STOPPED_STATUSES:
        _start_now(call)
    return {"success": True, "no_op": status not in STOPPED_STATUSES}


async def _deactivate(call: Call) -> Any:
    status = _status(call)
    if status not in STOPPED_STATUSES:
        *earlier_starts, (started_at, _) = _deployment_of(call).starts
        _change_starts(call, *earlier_starts, (started_at, call.platform.now()))
    return {"success": True, "no_op": status in STOPPED_STATUSES}


async def _retry(call: Call) -> Any:
    can_retry = _status(call) == FAILED
    if can_retry:
        _start_now(call)
    return {
        "retried": can_retry,
        "reason": None if can_retry else "only a deployment that failed can be retried",
        "deployment": _deployment_fields(call, _deployment_of(call)),
    }


def _status(call: Call) -> str:
    return _deployment_of(call).status_at(call.platform.now())


def _start_now(call: Call) -> None:
    _change_starts(call, *_deployment_of(call).starts, (call.platform.now(), None))


def _change_starts(call: Call, *starts: tuple[datetime, datetime | None]) -> None:
    model, deployment = _model_of(call), _deployment_of(call)
    changed_deployments = {deployment.id: replace(deployment, starts=starts)}
    deployments = tuple(changed_deployments.get(candidate.id, candidate) for candidate in model.deployments)
    call.platform.stores.models.put(model.id, replace(model, deployments=deployments))


def _startups(call: Call) -> Any:
    start_ms, end_ms = read_time_range(call.parameters)
    if start_ms is None or end_ms is None:
        raise invalid("start_epoch_millis and end_epoch_millis are required")
    items = [
        startup
        for startup in startup_fields(_deployment_of(call), call.platform.now())
        if start_ms <= startup["started_at_epoch_millis"] < end_ms
    ]
    return {"items": items, "pagination": {"has_more": False, "cursor": None}, "total_count": len(items)}


def _not_supported(_: Call) -> Any:
    raise not_implemented("the emulator only serves models from training checkpoints")


def _logs(call: Call) -> Any:
    deployment, parameters = _deployment_of(call), call.parameters
    filters = ("includes", "excludes", "search_pattern", "replica", "request_id", "component")
    if not parameters.values.keys().isdisjoint(filters):
        raise not_implemented("the emulator's logs of deployments can be filtered only by time and level")
    now_ms = int(call.platform.now_s() * MS_PER_S)
    query = read_log_query(parameters, now_ms)
    lines = [
        line
        for line in log_lines(deployment, until_ns=(now_ms + 1) * NS_PER_MS - 1)
        if query.start_ns <= int(line["timestamp"]) < query.end_ns
        and (query.levels is None or line.get("level") in query.levels)
    ]
    return {"logs": (lines if query.direction == "asc" else lines[::-1])[: query.limit]}


ROUTES = [
    *starlette_routes(
        {
            routes.MODELS: _models,
            routes.MODEL: lambda call: _model_fields(call, _model_of(call)),
            routes.DEPLOYMENTS: _deployments,
            routes.DEPLOYMENT: lambda call: _deployment_fields(call, _deployment_of(call)),
            # The configuration was generated, so there is no text that a user wrote.
            routes.DEPLOYMENT_CONFIG: lambda call: {
                "config": _deployment_of(call).config,
                "raw_config": None,
            },
            routes.DEPLOYMENT_LOGS: _logs,
            routes.STARTUPS: _startups,
            routes.PROMOTE: _promote,
            routes.ACTIVATE: _activate,
            routes.DEACTIVATE: _deactivate,
            routes.RETRY: _retry,
            routes.GRAPHQL_QUERY: _graphql,
            routes.GRAPHQL_MUTATION: _graphql,
        }
    ),
    api_route("POST", "/graphql", _graphql),
    api_route("POST", routes.MODELS.path, _not_supported),
    api_route("POST", "/v1/prepare_model_upload", _not_supported),
    api_route("GET", "/v1/teams/{team_id}/models", _models),
    api_route("DELETE", routes.MODEL.path, _delete_model),
    api_route("POST", routes.DEPLOYMENTS.path, _not_supported),
    api_route("DELETE", routes.DEPLOYMENT.path, _delete_deployment),
    api_route("POST", routes.DEPLOYMENT_LOGS.path, _logs),
]
