"""Choose the instance type of a deployment: the smallest single node that fits, as in the official client."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pydantic import ValidationError

from api_client.definitions import Compute
from api_client.errors import BadRequest, InvalidAnswer, NotFound
from api_client.models import InstanceType

if TYPE_CHECKING:
    from api_client.resources.account import Account
    from api_client.resources.graphql import Graphql

_MEMORY = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?)\s*(?P<unit>[KMGT]i?|)B?")
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12} | {
    f"{letter}i": 1024**power for power, letter in enumerate("KMGT", start=1)
}
_BYTES_PER_MIB = 1024**2
_MILLICPU_PER_CPU = 1000


class ListedInstance(InstanceType):
    """Machine that can be deployed on, with ``node_count`` nodes; ``price`` is USD per minute, if known."""

    node_count: int = 1
    price: float | None = None


Machine = TypeVar("Machine", bound=InstanceType)


def gpu_name(gpu_type: str) -> str:
    """Return the definitions' spelling: servers may use a dash, ``A100-40GB`` (API facts, 3.2)."""
    return gpu_type.strip().replace("-", "_")


def fitting_instances(
    instances: Iterable[Machine], gpu_type: str | None, gpu_count: int
) -> tuple[Machine, ...]:
    """Return single-node machines of this GPU type with at least ``gpu_count`` GPUs, smallest first.

    If ``gpu_type`` is None, returns those without a GPU.
    """
    one_node = [each for each in instances if getattr(each, "node_count", 1) in (1, None)]
    if not gpu_type:
        return tuple(sorted((each for each in one_node if not each.gpu_count), key=_cpu_size))
    wanted = gpu_name(gpu_type)
    fitting = (
        each
        for each in one_node
        if each.gpu_count >= max(gpu_count, 1) and each.gpu_type and gpu_name(each.gpu_type) == wanted
    )
    return tuple(sorted(fitting, key=_gpu_count))


def _gpu_count(machine: InstanceType) -> int:
    return machine.gpu_count


def _cpu_size(machine: InstanceType) -> tuple[int, int]:
    return machine.millicpu_limit, machine.memory_limit_mib


def smallest_instance(instances: Iterable[Machine], compute: Compute | None) -> Machine | None:
    """Return the machine that a deployment with this compute gets; None if no machine fits.

    CPU and memory count only if there is no GPU, as in the official client.
    """
    spec = compute.accelerator if compute else None
    if spec is not None and spec.accelerator is not None:
        return next(iter(fitting_instances(instances, spec.accelerator.value, spec.count)), None)
    cpu_count = compute.cpu_count if compute else 0
    memory_bytes = read_memory_bytes(compute.memory) if compute else 0
    for machine in fitting_instances(instances, None, 0):
        has_cpus = machine.millicpu_limit >= cpu_count * _MILLICPU_PER_CPU
        if has_cpus and machine.memory_limit_mib * _BYTES_PER_MIB >= memory_bytes:
            return machine
    return None


def read_memory_bytes(text: str) -> float:
    """Convert a Kubernetes quantity such as ``2Gi`` to bytes; 0 if it is not one."""
    match = _MEMORY.fullmatch(text.strip())
    return float(match["number"]) * _UNITS[match["unit"]] if match else 0.0


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
"""The query of the official client (API facts, 2.4); a deployment refers to these ids."""

_FIELDS = {
    "millicpuLimit": "millicpu_limit",
    "memoryLimit": "memory_limit_mib",
    "gpuCount": "gpu_count",
    "gpuType": "gpu_type",
    "gpuMemory": "gpu_memory_limit_mib",
    "nodeCount": "node_count",
}


class InstanceDirectory(Protocol):
    """The parts of a client that list the account's machines."""

    @property
    def graphql(self) -> Graphql:
        """Lists the machines that can be deployed on."""
        ...

    @property
    def account(self) -> Account:
        """Lists all machines."""
        ...


async def listed_instances(client: InstanceDirectory) -> tuple[ListedInstance, ...]:
    """Return the machines that can be deployed on, in the server's order.

    Falls back to REST if the server does not know the GraphQL query. Raises RequestError.
    """
    try:
        answer = await client.graphql.execute(LISTED_INSTANCES_QUERY)
    except (BadRequest, InvalidAnswer, NotFound):
        rest = await client.account.instance_types()
        return tuple(ListedInstance.model_validate(each.model_dump()) for each in rest)
    items = answer.get("listedInstances")
    read = (_read(item) for item in (items if isinstance(items, list) else []))
    return tuple(instance for instance in read if instance is not None)


def _read(item: Any) -> ListedInstance | None:
    if not isinstance(item, dict):
        return None
    try:
        return ListedInstance.model_validate({_FIELDS.get(name, name): each for name, each in item.items()})
    except ValidationError:
        return None
