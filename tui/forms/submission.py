"""The submit form: which values of a config can be overridden, and a summary to check before submitting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from api_client.definitions import (
    AvailabilityModel,
    CacheConfig,
    SecretReference,
    TrainingJob,
    TrainingProject,
)
from api_client.submission.archive import ArchivePlan
from api_client.submission.payload import Overrides
from api_client.words import listed
from tui.forms.question import parse_number
from tui.text.sanitize import sanitize_beginning
from tui.text.units import bytes_iec, counted, node_hardware


@dataclass(frozen=True, slots=True)
class OverrideField:
    """A value of the job that can be overridden before it is submitted."""

    name: str
    """Name of the field of ``Overrides`` that the typed value is stored in."""
    label: str
    config_value: Callable[[TrainingJob], str]
    """Returns the value in the config, which is used if the field is empty."""
    is_number: bool = False
    suggestions: tuple[str, ...] = ()


def _accelerator(job: TrainingJob) -> str:
    accelerator_spec = job.compute.accelerator
    return (
        f"{accelerator_spec.accelerator.value}:{accelerator_spec.count}"
        if accelerator_spec is not None and accelerator_spec.accelerator
        else ""
    )


FIELDS = (
    OverrideField("job_name", "name", lambda job: job.name or ""),
    OverrideField("accelerator", "accelerator", _accelerator),
    OverrideField("node_count", "nodes", lambda job: str(job.compute.node_count), is_number=True),
    OverrideField("entrypoint", "command", lambda job: " && ".join(job.runtime.start_commands)),
    OverrideField(
        "priority", "priority", lambda job: "" if job.priority is None else str(job.priority), is_number=True
    ),
    OverrideField(
        "availability",
        "availability",
        lambda job: job.compute.availability_model.value,
        suggestions=tuple(model.value for model in AvailabilityModel),
    ),
)


def overrides_of(typed: Mapping[str, str]) -> Overrides:
    """Return the overrides typed into the fields, by field name.

    An empty field overrides nothing, nor does a number that is incomplete, such as ``-``.
    """
    values: dict[str, Any] = {}
    for field in FIELDS:
        text = typed[field.name].strip()
        value = parse_number(text) if field.is_number else text
        values[field.name] = None if value == "" or (field.is_number and isinstance(value, str)) else value
    return Overrides(**values)


def summary(project: TrainingProject, plan: ArchivePlan | None) -> list[tuple[str, str]]:
    """Return the facts to check before submitting, as names and sanitized values."""
    return [(name, sanitize_beginning(value)) for name, value in _unsanitized_facts(project, plan) if value]


def _unsanitized_facts(project: TrainingProject, plan: ArchivePlan | None) -> Iterator[tuple[str, str]]:
    job, runtime = project.job, project.job.runtime
    yield "project", project.name + (f"  (team {project.team_name})" if project.team_name else "")
    yield "job", job.name or "(unnamed)"
    yield "hardware", hardware(job)
    yield "image", job.image.base_image
    for index, command in enumerate(runtime.start_commands):
        yield ("command" if index == 0 else ""), command
    variables = (
        f"{name} (secret {value.name})" if isinstance(value, SecretReference) else name
        for name, value in runtime.environment_variables.items()
    )
    yield "environment", ", ".join(variables)
    checkpointing, cache = runtime.checkpointing_config, runtime.cache_config or CacheConfig(enabled=False)
    yield "checkpoints", _on_off_text(checkpointing.enabled, checkpointing.checkpoint_path)
    yield "cache", _on_off_text(cache.enabled, cache.mount_base_path)
    load_config = runtime.load_checkpoint_config
    if load_config is not None and load_config.enabled:
        yield "resume from", counted(len(load_config.checkpoints), "checkpoint")
    yield "weights", ", ".join(weights.source for weights in job.weights)
    if plan is not None:
        yield "archive", f"{counted(len(plan.files), 'file')}, {bytes_iec(plan.size_bytes)}"
        yield "excluded", listed([entry.name for entry in plan.dropped], 4)


def _on_off_text(is_on: bool, path: str | None) -> str:
    return "on" + (f", at {path}" if path else "") if is_on else "off"


def hardware(job: TrainingJob) -> str:
    """Return the hardware, such as ``2×8 H100, spot``; of a CPU job, its cores and memory."""
    compute, accelerator_spec = job.compute, job.compute.accelerator
    machine = f"{compute.cpu_count} CPU, {compute.memory}"
    if accelerator_spec is not None and accelerator_spec.accelerator is not None:
        machine = f"{accelerator_spec.count} {accelerator_spec.accelerator.value}"
    spot = ", spot" if compute.availability_model is AvailabilityModel.SPOT else ""
    return node_hardware(compute.node_count, machine) + spot
