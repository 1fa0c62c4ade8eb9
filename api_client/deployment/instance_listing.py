"""The machines that the account can deploy on, as the server lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pydantic import ValidationError

from api_client.deployment.instance_choice import ListedInstance
from api_client.errors import BadRequest, InvalidAnswer, NotFound

if TYPE_CHECKING:
    from api_client.resources.account import Account
    from api_client.resources.graphql import Graphql

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
"""As the official client asks (API facts, 2.4); the ids are those that a deployment names."""

_FIELDS = {
    "millicpuLimit": "millicpu_limit",
    "memoryLimit": "memory_limit_mib",
    "gpuCount": "gpu_count",
    "gpuType": "gpu_type",
    "gpuMemory": "gpu_memory_limit_mib",
    "nodeCount": "node_count",
}


class InstanceDirectory(Protocol):
    """The parts of a client that know the account's machines."""

    @property
    def graphql(self) -> Graphql:
        """Lists those to deploy on."""
        ...

    @property
    def account(self) -> Account:
        """Lists all."""
        ...


async def listed_instances(client: InstanceDirectory) -> tuple[ListedInstance, ...]:
    """The machines that can be deployed on, in the server's order.

    A server that does not know the GraphQL query is asked by REST. Raises RequestError.
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
    """One machine as GraphQL answers it; None for what is none."""
    if not isinstance(item, dict):
        return None
    try:
        return ListedInstance.model_validate({_FIELDS.get(name, name): each for name, each in item.items()})
    except ValidationError:
        return None
