"""Parse the ``training_job`` of a create-job request, tolerantly.

Preflight checks parse the request to send, the emulator parses the received request. Unknown fields are
ignored; missing fields and fields of a wrong type get the API's default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api_client.definitions.jobs import CACHE_FOLDER, LOADED_CHECKPOINTS_FOLDER
from api_client.vocabulary import normal_gpu_type

_UNIT_BYTES = {
    **{"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12},
    **{"Ki": 1024, "Mi": 1024**2, "Gi": 1024**3, "Ti": 1024**4},
}


@dataclass(frozen=True, slots=True)
class SecretUse:
    """A secret that the job refers to, and the field with the reference."""

    name: str
    field: str


@dataclass(frozen=True, slots=True)
class Artifact:
    """An uploaded archive that is unpacked into the working directory."""

    bucket: str
    key: str


@dataclass(frozen=True, slots=True)
class CheckpointSource:
    """A checkpoint to load; a ``name`` of None means the latest checkpoint."""

    project_name: str | None
    job_id: str | None
    name: str | None
    is_loops: bool = False
    is_nameless: bool = False


@dataclass(frozen=True, slots=True)
class JobRequest:
    """Resources, runtime and data of a job.

    ``gpu_type`` is normalized, and None for a CPU job; ``gpu_count`` is per node. A value of ``environment``
    that is a mapping refers to a secret by name. ``load_from`` is None if no checkpoints are to be loaded.
    """

    name: str | None
    priority: int
    node_count: int
    gpu_type: str | None
    gpu_count: int
    cpu_count: int
    memory: str
    availability_model: str
    start_commands: tuple[str, ...]
    environment: Mapping[str, str | Mapping[str, Any]]
    secrets: tuple[SecretUse, ...]
    artifacts: tuple[Artifact, ...]
    weights: Sequence[Any]
    checkpointing: bool
    checkpoint_path: str | None
    caching: bool
    cache_mount: str
    legacy_hf_mount: bool
    requires_cache_affinity: bool
    load_from: tuple[CheckpointSource, ...] | None
    load_folder: str
    session_trigger: str | None
    uses_workdir: bool

    @property
    def spot(self) -> bool:
        """True if the job may be preempted."""
        return self.availability_model == "spot"

    @property
    def memory_mib(self) -> float | None:
        """The requested memory in MiB; None if it is not a valid quantity."""
        return quantity_mib(self.memory)

    @property
    def total_gpus(self) -> int:
        """Number of GPUs of all nodes."""
        return self.node_count * self.gpu_count

    @property
    def machine(self) -> str:
        """The requested machines as text: ``2 × H100:8``, ``H100:8`` or ``CPU``."""
        node = f"{self.gpu_type}:{self.gpu_count}" if self.gpu_type else "CPU"
        return f"{self.node_count} × {node}" if self.node_count > 1 else node


def read_job_request(training_job: Mapping[str, Any]) -> JobRequest:
    """Parse a request. Never raises."""
    compute, runtime = _mapping(training_job, "compute"), _mapping(training_job, "runtime")
    accelerator = _mapping(compute, "accelerator")
    gpu_type = _text(accelerator, "accelerator")
    gpu_count = _number(accelerator, "count", 1) if gpu_type else 0
    cache, checkpointing = _mapping(runtime, "cache_config"), _mapping(runtime, "checkpointing_config")
    deprecated_cache = runtime.get("enable_cache") is True  # sets both switches of the cache
    loading = _mapping(runtime, "load_checkpoint_config")
    return JobRequest(
        name=_text(training_job, "name"),
        priority=_number(training_job, "priority", 0),
        node_count=_number(compute, "node_count", 1),
        gpu_type=normal_gpu_type(gpu_type) if gpu_type and gpu_count else None,
        gpu_count=gpu_count,
        cpu_count=_number(compute, "cpu_count", 1),
        memory=_text(compute, "memory") or "2Gi",
        availability_model=(_text(compute, "availability_model") or "dedicated").lower(),
        start_commands=tuple(str(command) for command in _items(runtime, "start_commands")),
        environment=_mapping(runtime, "environment_variables"),
        secrets=tuple(_secret_uses(training_job)),
        artifacts=tuple(
            Artifact(str(item.get("s3_bucket")), str(item.get("s3_key")))
            for item in _items(runtime, "artifacts")
            if isinstance(item, Mapping)
        ),
        weights=_items(training_job, "weights"),
        checkpointing=checkpointing.get("enabled") is True,
        checkpoint_path=_text(checkpointing, "checkpoint_path"),
        caching=cache.get("enabled") is True or deprecated_cache,
        cache_mount=_text(cache, "mount_base_path") or CACHE_FOLDER,
        legacy_hf_mount=cache.get("enable_legacy_hf_mount") is True or deprecated_cache,
        requires_cache_affinity=cache.get("require_cache_affinity", True) is not False,
        load_from=_load_from(loading),
        load_folder=_text(loading, "download_folder") or LOADED_CHECKPOINTS_FOLDER,
        session_trigger=_text(_mapping(training_job, "interactive_session"), "trigger"),
        uses_workdir=training_job.get("enable_baseten_workdir") is True,
    )


def quantity_mib(quantity: str) -> float | None:
    """Convert a Kubernetes quantity to MiB: ``64Gi`` to 65536; None for any other text."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(Ki|Mi|Gi|Ti|k|K|M|G|T|)B?\s*", quantity)
    return None if match is None else float(match[1]) * _UNIT_BYTES[match[2]] / 1024**2


def _secret_uses(training_job: Mapping[str, Any]) -> list[SecretUse]:
    uses = []
    authentication = _mapping(_mapping(training_job, "image"), "docker_auth")
    for method in authentication:
        for field, value in _mapping(authentication, method).items():
            if field.endswith("secret_ref") and isinstance(value, Mapping):
                uses.append((value.get("name"), f"image.docker_auth.{method}.{field}"))
    for variable, value in _mapping(_mapping(training_job, "runtime"), "environment_variables").items():
        if isinstance(value, Mapping):
            uses.append((value.get("name"), f"runtime.environment_variables.{variable}"))
    for index, source in enumerate(_items(training_job, "weights")):
        if isinstance(source, Mapping):
            uses.append((source.get("auth_secret_name"), f"weights[{index}].auth_secret_name"))
            auth_secret_name = _mapping(source, "auth").get("auth_secret_name")
            uses.append((auth_secret_name, f"weights[{index}].auth.auth_secret_name"))
    return [SecretUse(name, field) for name, field in uses if isinstance(name, str) and name]


def _load_from(config: Mapping[str, Any]) -> tuple[CheckpointSource, ...] | None:
    if config.get("enabled") is not True:
        return None
    items = [item for item in _items(config, "checkpoints") if isinstance(item, Mapping)]
    if not items:
        return (CheckpointSource(None, None, None),)
    return tuple(
        CheckpointSource(
            _text(item, "project_name"),
            _text(item, "job_id"),
            None if item.get("typ") == "baseten_latest_checkpoint" else _text(item, "checkpoint_name"),
            is_loops=item.get("typ") == "loops_checkpoint",
            is_nameless=item.get("typ") == "baseten_named_checkpoint" and not _text(item, "checkpoint_name"),
        )
        for item in items
    )


def _mapping(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = parent.get(key)
    return value if isinstance(value, Mapping) else {}


def _items(parent: Mapping[str, Any], key: str) -> list[Any]:
    value = parent.get(key)
    return list(value) if isinstance(value, list | tuple) else []


def _text(parent: Mapping[str, Any], key: str) -> str | None:
    value = parent.get(key)
    return value if isinstance(value, str) and value else None


def _number(parent: Mapping[str, Any], key: str, default: int) -> int:
    value = parent.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else default
