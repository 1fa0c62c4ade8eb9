"""The runner's view of a create-job payload, parsed tolerantly.

The payload is the value of ``training_job`` in ``POST …/jobs`` (API facts, 3.3). Unknown keys are
ignored. Whatever prevents a job from ever starting raises ``CannotStart``, whose text becomes the job's
``error_message`` with the status DEPLOY_FAILED.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api_client.emulator.runner.folders import CannotStart
from api_client.emulator.runner.weights import parse_weights

DEFAULT_CACHE_MOUNT = "/root/.cache"
DEFAULT_LOAD_FOLDER = "/tmp/loaded_checkpoints"
LATEST_CHECKPOINT, NAMED_CHECKPOINT = "baseten_latest_checkpoint", "baseten_named_checkpoint"
LOOPS_CHECKPOINT = "loops_checkpoint"


@dataclass(frozen=True, slots=True)
class Artifact:
    """An uploaded archive that is unpacked into the working directory."""

    bucket: str
    key: str


@dataclass(frozen=True, slots=True)
class CheckpointSource:
    """A checkpoint to load; a ``name`` of None means the latest one."""

    project_name: str | None
    job_id: str | None
    name: str | None
    is_loops: bool = False
    is_nameless: bool = False


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A job's configuration; a mapping as an ``environment`` value refers to a secret by name."""

    name: str | None
    priority: int
    availability_model: str
    node_count: int
    gpu_count: int
    gpu_type: str | None
    start_commands: tuple[str, ...]
    environment: Mapping[str, str | Mapping[str, Any]]
    artifacts: tuple[Artifact, ...]
    checkpointing: bool
    checkpoint_path: str | None
    caching: bool
    legacy_hf_mount: bool
    cache_mount: str
    load_from: tuple[CheckpointSource, ...] | None
    load_folder: str
    weights: Sequence[Any]


def parse_spec(payload: Mapping[str, Any]) -> JobSpec:
    """Parse a payload; treat a value of the wrong type as missing. Never raises."""
    compute, runtime = _mapping(payload, "compute"), _mapping(payload, "runtime")
    accelerator = _mapping(compute, "accelerator")
    checkpointing, cache = _mapping(runtime, "checkpointing_config"), _mapping(runtime, "cache_config")
    deprecated_cache = runtime.get("enable_cache") is True  # deprecated: sets both switches of the cache
    return JobSpec(
        name=_text(payload, "name"),
        priority=_number(payload, "priority", 0),
        availability_model=(_text(compute, "availability_model") or "dedicated").lower(),
        node_count=_number(compute, "node_count", 1),
        gpu_count=_number(accelerator, "count", 1) if _text(accelerator, "accelerator") else 0,
        gpu_type=_text(accelerator, "accelerator"),
        start_commands=tuple(str(command) for command in _items(runtime, "start_commands")),
        environment=_mapping(runtime, "environment_variables"),
        artifacts=tuple(
            Artifact(str(item.get("s3_bucket")), str(item.get("s3_key")))
            for item in _items(runtime, "artifacts")
            if isinstance(item, Mapping)
        ),
        checkpointing=checkpointing.get("enabled") is True,
        checkpoint_path=_text(checkpointing, "checkpoint_path"),
        caching=cache.get("enabled") is True or deprecated_cache,
        legacy_hf_mount=cache.get("enable_legacy_hf_mount") is True or deprecated_cache,
        cache_mount=_text(cache, "mount_base_path") or DEFAULT_CACHE_MOUNT,
        load_from=_load_from(_mapping(runtime, "load_checkpoint_config")),
        load_folder=_text(_mapping(runtime, "load_checkpoint_config"), "download_folder")
        or DEFAULT_LOAD_FOLDER,
        weights=_items(payload, "weights"),
    )


def check_can_start(spec: JobSpec, *, max_nodes: int) -> None:
    """Raise ``CannotStart`` for a configuration that this machine can never run."""
    if not any(command.strip() for command in spec.start_commands):
        raise CannotStart("runtime.start_commands is empty: nothing to run")
    if spec.node_count < 1:
        raise CannotStart(f"compute.node_count is {spec.node_count}: a job needs at least one node")
    if spec.node_count > max_nodes:
        raise CannotStart(
            f"compute.node_count is {spec.node_count}: this emulator runs at most {max_nodes} nodes at a time"
        )
    parse_weights(spec.weights)
    for source in spec.load_from or ():
        if source.is_loops:
            raise CannotStart("load_checkpoint_config: there are no Loops checkpoints on this machine")
        if source.is_nameless:
            raise CannotStart("load_checkpoint_config: a named checkpoint needs its checkpoint_name")


def _load_from(config: Mapping[str, Any]) -> tuple[CheckpointSource, ...] | None:
    if config.get("enabled") is not True:
        return None
    listed = [item for item in _items(config, "checkpoints") if isinstance(item, Mapping)]
    if not listed:
        return (CheckpointSource(None, None, None),)
    return tuple(
        CheckpointSource(
            _text(item, "project_name"),
            _text(item, "job_id"),
            None if item.get("typ") == LATEST_CHECKPOINT else _text(item, "checkpoint_name"),
            is_loops=item.get("typ") == LOOPS_CHECKPOINT,
            is_nameless=item.get("typ") == NAMED_CHECKPOINT and _text(item, "checkpoint_name") is None,
        )
        for item in listed
    )


def _mapping(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = parent.get(key)
    return value if isinstance(value, Mapping) else {}


def _items(parent: Mapping[str, Any], key: str) -> list[Any]:
    value = parent.get(key)
    return value if isinstance(value, list) else []


def _text(parent: Mapping[str, Any], key: str) -> str | None:
    value = parent.get(key)
    return value if isinstance(value, str) and value else None


def _number(parent: Mapping[str, Any], key: str, default: int) -> int:
    value = parent.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else default
