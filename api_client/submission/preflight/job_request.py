"""What the checks need to know about a job, read tolerantly from the request to send."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_BINARY_MIB = {"Ki": 1 / 1024, "Mi": 1, "Gi": 1024, "Ti": 1024**2}
_DECIMAL_BYTES = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BYTES_PER_MIB = 1024**2
_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(Ki|Mi|Gi|Ti|k|K|M|G|T|)\s*")
_SECRET_REFERENCE_SUFFIX = "secret_ref"


@dataclass(frozen=True, slots=True)
class SecretUse:
    """A secret that the job refers to, and the field with the reference."""

    name: str
    field: str


@dataclass(frozen=True, slots=True)
class JobRequest:
    """Requested resources. ``gpu_count`` is per node, 0 for CPU jobs; ``memory_mib`` None if unreadable."""

    start_commands: tuple[str, ...]
    node_count: int
    gpu_type: str | None
    gpu_count: int
    cpu_count: int
    memory_mib: float | None
    spot: bool
    secrets: tuple[SecretUse, ...]
    checkpointing: bool
    caching: bool
    requires_cache_affinity: bool
    session_trigger: str | None
    uses_workdir: bool

    @property
    def total_gpus(self) -> int:
        """Number of GPUs of all nodes."""
        return self.node_count * self.gpu_count

    @property
    def machine(self) -> str:
        """The machines as text: ``2 × H100:8``, ``H100:8`` or ``CPU``."""
        node = f"{self.gpu_type}:{self.gpu_count}" if self.gpu_type else "CPU"
        return f"{self.node_count} × {node}" if self.node_count > 1 else node


def read_job_request(training_job: Mapping[str, Any]) -> JobRequest:
    """Parse a request; missing fields or wrong types get the API's default. Never raises."""
    compute, runtime = _mapping(training_job, "compute"), _mapping(training_job, "runtime")
    accelerator = _mapping(compute, "accelerator")
    cache = _mapping(runtime, "cache_config")
    gpu_type = _text(accelerator, "accelerator")
    gpu_count = _number(accelerator, "count", 1) if gpu_type else 0
    return JobRequest(
        start_commands=tuple(str(command) for command in _items(runtime, "start_commands")),
        node_count=_number(compute, "node_count", 1),
        gpu_type=normal_gpu_type(gpu_type) if gpu_type and gpu_count else None,
        gpu_count=gpu_count,
        cpu_count=_number(compute, "cpu_count", 1),
        memory_mib=quantity_mib(_text(compute, "memory") or ""),
        spot=str(compute.get("availability_model")).lower() == "spot",
        secrets=tuple(_secret_uses(training_job)),
        checkpointing=_mapping(runtime, "checkpointing_config").get("enabled") is True,
        caching=cache.get("enabled") is True or runtime.get("enable_cache") is True,
        requires_cache_affinity=cache.get("require_cache_affinity", True) is not False,
        session_trigger=_text(_mapping(training_job, "interactive_session"), "trigger"),
        uses_workdir=training_job.get("enable_baseten_workdir") is True,
    )


def normal_gpu_type(name: str) -> str:
    """Normalize a GPU type: ``A100-40GB`` and ``A100_40GB`` are the same (API facts, 3.2)."""
    return name.upper().replace("-", "_")


def quantity_mib(quantity: str) -> float | None:
    """Convert ``64Gi`` to 65536; None for text that is not a quantity."""
    match = _QUANTITY.fullmatch(quantity)
    if match is None:
        return None
    value, unit = float(match[1]), match[2]
    if unit in _BINARY_MIB:
        return value * _BINARY_MIB[unit]
    return value * _DECIMAL_BYTES[unit] / _BYTES_PER_MIB


def _secret_uses(training_job: Mapping[str, Any]) -> list[SecretUse]:
    uses = []
    authentication = _mapping(_mapping(training_job, "image"), "docker_auth")
    for method in authentication:
        for field, value in _mapping(authentication, method).items():
            if field.endswith(_SECRET_REFERENCE_SUFFIX) and isinstance(value, Mapping):
                uses.append((value.get("name"), f"image.docker_auth.{method}.{field}"))
    for variable, value in _mapping(_mapping(training_job, "runtime"), "environment_variables").items():
        if isinstance(value, Mapping):
            uses.append((value.get("name"), f"runtime.environment_variables.{variable}"))
    for index, source in enumerate(_items(training_job, "weights")):
        if isinstance(source, Mapping):
            uses.append((source.get("auth_secret_name"), f"weights[{index}].auth_secret_name"))
            inner = _mapping(source, "auth").get("auth_secret_name")
            uses.append((inner, f"weights[{index}].auth.auth_secret_name"))
    return [SecretUse(name, field) for name, field in uses if isinstance(name, str) and name]


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
