"""Configurations, archives and accounts in a line each, for the pre-flight's tests."""

from dataclasses import dataclass, field
from pathlib import Path

from api_client import definitions as d
from api_client.models import (
    GpuCapacity,
    InstanceType,
    InstanceTypePrice,
    Team,
    TeamGpuCapacity,
    TrainingCapacity,
)
from api_client.submission.findings import Finding

PLAIN, EXECUTABLE = 0o644, 0o755


@dataclass
class Listing:
    """An archive's listing."""

    files: list[tuple[Path, str, int]] = field(default_factory=list)
    dropped: list[tuple[str, str]] = field(default_factory=list)
    size_bytes: int = 10_240
    warnings: list[str] = field(default_factory=list)


def listing(folder: Path, *names: str, mode: int = PLAIN, **more: object) -> Listing:
    """An archive of empty files of those names, which lie in ``folder``."""
    files = []
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
        path.chmod(mode)
        files.append((path, name, 0))
    return Listing(files=files, **more)


def project(*commands: str, gpus: str | None = None, nodes: int = 1, **more: object) -> d.TrainingProject:
    """A project whose job runs ``commands``; ``more`` are fields of Runtime, Compute or TrainingJob."""
    of = {
        part: {name: more.pop(name) for name in list(more) if name in part.model_fields}
        for part in (d.Runtime, d.Compute, d.TrainingJob, d.TrainingProject)
    }
    job = d.TrainingJob(
        image=d.Image(base_image="python:3.12-slim"),
        compute=d.Compute(
            node_count=nodes,
            accelerator=d.AcceleratorSpec.model_validate(gpus) if gpus else None,
            **of[d.Compute],
        ),
        runtime=d.Runtime(start_commands=list(commands), **of[d.Runtime]),
        **of[d.TrainingJob],
    )
    assert not more
    return d.TrainingProject(name="ring", job=job, **of[d.TrainingProject])


def cached(**more: object) -> d.CacheConfig:
    return d.CacheConfig(enabled=True, **more)


SAVED = d.CheckpointingConfig(enabled=True)


def machine(gpu_type: str | None, gpu_count: int = 0, cores: int = 26, memory_gib: int = 234) -> InstanceType:
    name = f"{gpu_type}:{gpu_count}" if gpu_type else f"{cores}x{memory_gib}"
    return InstanceType(
        id=name.lower(),
        name=name,
        gpu_type=gpu_type,
        gpu_count=gpu_count,
        millicpu_limit=cores * 1000,
        memory_limit_mib=memory_gib * 1024,
    )


def price(of: InstanceType, usd_per_minute: float) -> InstanceTypePrice:
    return InstanceTypePrice(instance_type=of, price=usd_per_minute)


def capacity(
    gpu_type: str, *, limit: int, used=0, spot: int | None = None, team: tuple[Team, int] | None = None
) -> TrainingCapacity:
    of_all = GpuCapacity(gpu_type=gpu_type, limit=limit, usage_count=used, spot_usage_count=spot)
    of_team = [
        TeamGpuCapacity(gpu_type=gpu_type, limit=most, usage_count=used, team_id=each.id, team_name=each.name)
        for each, most in ([team] if team else [])
    ]
    return TrainingCapacity(gpu_capacities=[of_all], team_gpu_capacities=of_team)


def problems(findings: tuple[Finding, ...], severity: str) -> list[str]:
    """``field: problem`` of the findings of that severity."""
    return [f"{each.field}: {each.problem}" for each in findings if each.severity == severity]
