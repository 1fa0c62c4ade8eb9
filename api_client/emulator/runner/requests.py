"""Checks of a job's request: what can never run on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from pydantic import ValidationError

from api_client.definitions.job_request import JobRequest
from api_client.definitions.weights import WeightsAuthMethod, WeightsSource
from api_client.emulator.answers import first_problem
from api_client.emulator.catalog import GPU_LIMITS
from api_client.emulator.runner.folders import CannotStart
from api_client.emulator.runner.weights import SCHEMES
from api_client.words import counted


def check_request(spec: JobRequest, max_nodes: int) -> None:
    """Raise ``CannotStart`` if the job can never run here."""
    if not any(command.strip() for command in spec.start_commands):
        raise CannotStart("runtime.start_commands is empty: nothing to run")
    if not 1 <= spec.node_count <= max_nodes:
        most = counted(max_nodes, "node")
        raise CannotStart(f"compute.node_count is {spec.node_count}; this emulator runs at most {most}")
    limit = next((limit.limit for limit in GPU_LIMITS if limit.gpu_type == spec.gpu_type), None)
    if limit is not None and spec.total_gpus > limit and not spec.spot:
        raise CannotStart(f"the job requests {spec.total_gpus} × {spec.gpu_type}, but the limit is {limit}")
    parse_weights(spec.weights)
    for source in spec.load_from or ():
        if source.is_loops:
            raise CannotStart("load_checkpoint_config: there are no Loops checkpoints on this machine")
        if source.is_nameless:
            raise CannotStart("load_checkpoint_config: a named checkpoint needs its checkpoint_name")


def parse_weights(items: Sequence[Any]) -> list[WeightsSource]:
    """Parse all entries; raise ``CannotStart`` naming the first one that cannot be delivered."""
    return [_parse(item, f"weights[{index}]") for index, item in enumerate(items)]


def _parse(item: Any, field: str) -> WeightsSource:
    try:
        weights = WeightsSource.model_validate(item)
    except ValidationError as error:
        raise CannotStart(first_problem(field, error)) from error
    if weights.scheme not in SCHEMES:
        supported = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise CannotStart(f"{field}.source {weights.source!r}: the emulator delivers {supported}")
    mount = weights.mount_location
    if ".." in PurePosixPath(mount).parts or "\0" in mount:
        raise CannotStart(f"{field}.mount_location must not contain '..' or NUL: {mount!r}")
    method = weights.auth.auth_method if weights.auth is not None else WeightsAuthMethod.CUSTOM_SECRET
    if method is not WeightsAuthMethod.CUSTOM_SECRET:
        raise CannotStart(
            f"{field}.auth: {method.value} needs the platform's identity; use CUSTOM_SECRET here"
        )
    return weights


def secret_name(weights: WeightsSource) -> str | None:
    return (weights.auth.auth_secret_name if weights.auth is not None else None) or weights.auth_secret_name
