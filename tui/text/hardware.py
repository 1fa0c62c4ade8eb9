"""Write what a job runs on: ``4×8 H100`` is four nodes of eight GPUs."""

from __future__ import annotations

from api_client.models import TrainingJob
from tui.text.sanitize import sanitize
from tui.text.units import UNKNOWN


def hardware(job: TrainingJob) -> str:
    """Return ``4×8 H100``; ``8 H100`` for one node or an unknown number."""
    machine = job.instance_type
    if not machine.gpu_count and not machine.name:
        return UNKNOWN
    gpus = f"{machine.gpu_count} {sanitize(machine.gpu_type or 'GPU')}" if machine.gpu_count else "CPU"
    return of_nodes(job.node_count or 1, gpus)


def of_nodes(node_count: int, machine: str) -> str:
    return f"{node_count}×{machine}" if node_count > 1 else machine
