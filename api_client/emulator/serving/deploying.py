"""Making a deployment of a checked request, or only saying what it would be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from api_client.emulator.catalog import INSTANCE_TYPES
from api_client.emulator.faults import not_found
from api_client.emulator.platform import Platform
from api_client.emulator.serving.chosen import choose
from api_client.emulator.serving.obstacles import obstacle
from api_client.emulator.serving.template_request import EnvironmentVariable, check_template_request
from api_client.emulator.serving.truss_template import render
from api_client.emulator.store.deployments import DeploymentPlan, StoredDeployment
from api_client.models import InstanceType


@dataclass(frozen=True, slots=True)
class TemplateAnswer:
    """The rendered configuration as JSON text, and the deployment unless it was a dry run."""

    truss_config: str
    deployment: StoredDeployment | None


def deploy(platform: Platform, fields: Any) -> TemplateAnswer:
    """Do what the mutation's ``request`` asks. Raises an ``ApiFault``, and then nothing was made.

    The model belongs to the team of the first checkpoint's project.
    """
    request = check_template_request(fields)
    machine = _machine(request.instance_type_id)
    checkpoints = choose(platform, request.places)
    team_id = platform.stored_project(checkpoints[0].job.project_id).team_id
    config = json.dumps(render(request.model_name, machine, checkpoints, request.environment))
    if request.dry_run:
        return TemplateAnswer(config, None)
    plan = DeploymentPlan(
        instance_type_id=machine.id,
        truss_config=config,
        served_names=tuple(each.name for each in checkpoints),
        warnings=tuple(_missing_secrets(platform, team_id, request.environment)),
        failure=obstacle(machine, checkpoints),
    )
    stored = platform.stores.deployments.add(request.model_name, team_id, plan, platform.now())
    return TemplateAnswer(config, stored)


def _machine(instance_type_id: str) -> InstanceType:
    for machine in INSTANCE_TYPES:
        if machine.id == instance_type_id:
            return machine
    raise not_found("Instance type", instance_type_id)


def _missing_secrets(
    platform: Platform, team_id: str, environment: list[EnvironmentVariable]
) -> Iterator[str]:
    for variable in environment:
        if variable.is_secret_reference and platform.stores.secrets.value(team_id, variable.value) is None:
            yield f"The workspace has no secret {variable.value!r}: {variable.name} will be empty"
