"""What a job would be, as facts to read. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from api_client.definitions import SecretReference, TrainingJob, TrainingProject
from api_client.submission.archive import ArchivePlan
from tui.insight.text import inert
from tui.insight.units import bytes_iec, count

SHOWN_NAMES = 4


def facts(project: TrainingProject, plan: ArchivePlan | None) -> list[tuple[str, str]]:
    """Name and value of everything that a reader should check before money is spent."""
    return [(name, inert(value)) for name, value in _facts(project, plan) if value]


def _facts(project: TrainingProject, plan: ArchivePlan | None) -> Iterator[tuple[str, str]]:
    job = project.job
    yield "project", project.name + (f"  (team {project.team_name})" if project.team_name else "")
    yield "job", job.name or "(unnamed)"
    yield "hardware", hardware(job)
    yield "image", job.image.base_image
    for number, command in enumerate(job.runtime.start_commands):
        yield ("runs" if number == 0 else ""), command
    yield "environment", _environment(job)
    yield "checkpoints", _checkpoints(job)
    cache = job.runtime.cache_config
    yield "cache", f"on, at {cache.mount_base_path}" if cache is not None and cache.enabled else "off"
    loading = job.runtime.load_checkpoint_config
    if loading is not None and loading.enabled:
        yield "loads", f"{len(loading.checkpoints)} checkpoint(s)"
    yield "weights", ", ".join(weights.source for weights in job.weights)
    if plan is not None:
        files = len(plan.files)
        unit = "file" if files == 1 else "files"
        yield "archive", f"{count(files)} {unit}, {bytes_iec(plan.size_bytes)}"
        yield "left out", _dropped(plan)


def hardware(job: TrainingJob) -> str:
    """``2 nodes × 8 H100, spot``, or cores and memory of a CPU job."""
    compute = job.compute
    spec = compute.accelerator
    if spec is not None and spec.accelerator is not None:
        machine = f"{spec.count} {spec.accelerator.value}"
    else:
        machine = f"{compute.cpu_count} CPU, {compute.memory}"
    nodes = f"{compute.node_count} nodes × " if compute.node_count > 1 else ""
    return nodes + machine + (", spot" if compute.availability_model.value == "spot" else "")


def _environment(job: TrainingJob) -> str:
    variables = job.runtime.environment_variables
    told = [
        f"{name} (secret {value.name})" if isinstance(value, SecretReference) else name
        for name, value in variables.items()
    ]
    return ", ".join(told)


def _checkpoints(job: TrainingJob) -> str:
    config = job.runtime.checkpointing_config
    if not config.enabled:
        return "off"
    return "on" + (f", at {config.checkpoint_path}" if config.checkpoint_path else "")


def _dropped(plan: ArchivePlan) -> str:
    names = [entry.name for entry in plan.dropped]
    more = f" and {count(len(names) - SHOWN_NAMES)} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(names[:SHOWN_NAMES]) + more
