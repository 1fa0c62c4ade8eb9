"""The machines that a job asks for."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import field_serializer

from api_client.definitions.accelerators import AcceleratorSpec
from api_client.definitions.base import StrictDefinition, TextEnum, members_only


class AvailabilityModel(TextEnum):
    """Whether the capacity is kept (dedicated) or may be taken away at any time (spot)."""

    DEDICATED = "dedicated"
    SPOT = "spot"


class Compute(StrictDefinition):
    """Nodes, and what each of them has. ``memory`` is a Kubernetes quantity such as ``"64Gi"``."""

    node_count: int = 1
    cpu_count: int = 1
    memory: str = "2Gi"
    accelerator: AcceleratorSpec | None = None
    availability_model: Annotated[AvailabilityModel, members_only(AvailabilityModel)] = (
        AvailabilityModel.DEDICATED
    )

    @field_serializer("accelerator")
    def _accelerator_as_object(self, spec: AcceleratorSpec | None) -> dict[str, Any] | None:
        # The API wants the two fields, never the short form (API facts, 3.3).
        if spec is None or spec.accelerator is None:
            return None
        return {"accelerator": spec.accelerator.value, "count": spec.count}
