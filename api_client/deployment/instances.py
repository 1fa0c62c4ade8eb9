"""The machines that checkpoints can be deployed on: which there are, which fits, how much memory it takes."""

from __future__ import annotations

from api_client.deployment.gpu_memory import memory_hint, needed_gpu_bytes
from api_client.deployment.instance_choice import (
    ListedInstance,
    fitting_instances,
    gpu_name,
    smallest_instance,
)
from api_client.deployment.instance_listing import InstanceDirectory, listed_instances

__all__ = [
    "InstanceDirectory",
    "ListedInstance",
    "fitting_instances",
    "gpu_name",
    "listed_instances",
    "memory_hint",
    "needed_gpu_bytes",
    "smallest_instance",
]
