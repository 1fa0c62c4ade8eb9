"""Choose the instance type of a deployment: the smallest single node that fits, as in the official client."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any, TypeVar

from pydantic import ValidationError

from api_client.client import TrainingClient
from api_client.definitions import AcceleratorSpec, Compute
from api_client.definitions.job_request import quantity_mib
from api_client.errors import BadRequest, InvalidAnswer, NotFound
from api_client.models import InstanceType
from api_client.vocabulary import normal_gpu_type


class ListedInstance(InstanceType):
    """Instance type for deployments, with ``node_count`` nodes; ``price`` is USD per minute, if known."""

    node_count: int = 1
    price: float | None = None

    @property
    def gpu(self) -> str:
        """GPUs in the spelling of config files: ``A100_40GB:1``; empty without GPUs."""
        has_gpu = self.gpu_type and self.gpu_count > 0
        return f"{self.normal_gpu_type}:{self.gpu_count}" if has_gpu else ""


Machine = TypeVar("Machine", bound=InstanceType)


def smallest_instance(instances: Iterable[Machine], compute: Compute | None) -> Machine | None:
    """Return the single-node instance type that a deployment with this compute gets; None if none fits."""
    matches = [
        machine
        for machine in instances
        if getattr(machine, "node_count", 1) in (1, None) and _fits(machine, compute)
    ]
    size = attrgetter("millicpu_limit", "memory_limit_mib")
    return min(matches, key=lambda machine: machine.gpu_count or size(machine), default=None)


def _fits(machine: InstanceType, compute: Compute | None) -> bool:
    compute = compute or Compute(cpu_count=0, memory="0Mi")
    spec = compute.accelerator or AcceleratorSpec()
    return machine.fits(
        gpu_type=normal_gpu_type(spec.accelerator.value) if spec.accelerator else None,
        gpu_count=max(spec.count, 1),
        cpu_count=compute.cpu_count,
        memory_mib=quantity_mib(compute.memory) or 0,
    )


LISTED_INSTANCES_QUERY = """
query Instances {
    listedInstances: listed_instances {
        id
        name
        millicpuLimit: millicpu_limit
        memoryLimit: memory_limit
        gpuCount: gpu_count
        gpuType: gpu_type
        gpuMemory: gpu_memory
        default
        displayName: display_name
        nodeCount: node_count
        price
        limitedCapacity: limited_capacity
    }
}
"""
"""The official client's query. Deployments refer to instance types by the ids in its response."""

_FIELD_NAMES = {
    "millicpuLimit": "millicpu_limit",
    "memoryLimit": "memory_limit_mib",
    "gpuCount": "gpu_count",
    "gpuType": "gpu_type",
    "gpuMemory": "gpu_memory_limit_mib",
    "nodeCount": "node_count",
}


async def listed_instances(client: TrainingClient) -> tuple[ListedInstance, ...]:
    """Return the instance types for deployments, in the server's order.

    Falls back to REST if the server does not know the GraphQL query. Raises RequestError.
    """
    try:
        response = await client.graphql.execute(LISTED_INSTANCES_QUERY)
    except (BadRequest, InvalidAnswer, NotFound):
        instance_types = await client.account.instance_types()
        return tuple(ListedInstance.model_validate(described.model_dump()) for described in instance_types)
    items = response.get("listedInstances")
    instances = (_parse(item) for item in (items if isinstance(items, list) else []))
    return tuple(instance for instance in instances if instance is not None)


def _parse(item: Any) -> ListedInstance | None:
    if not isinstance(item, dict):
        return None
    try:
        return ListedInstance.model_validate(
            {_FIELD_NAMES.get(name, name): field_value for name, field_value in item.items()}
        )
    except ValidationError:
        return None
