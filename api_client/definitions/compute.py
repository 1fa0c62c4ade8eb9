"""The hardware of a job: GPU types and counts, nodes, CPU and memory, dedicated or spot."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import Field, field_serializer, field_validator, model_serializer, model_validator

from api_client.definitions.base import OpenDefinition, StrictDefinition, TextEnum, members_only


class Accelerator(TextEnum):
    """GPU types known to the platform."""

    _B10 = "B10"  # internal to the platform: accepted, but not among the choices
    T4 = "T4"
    L4 = "L4"
    A10G = "A10G"
    V100 = "V100"
    A100 = "A100"
    A100_40GB = "A100_40GB"
    H100 = "H100"
    H200 = "H200"
    H100_40GB = "H100_40GB"
    B200 = "B200"
    L40S = "L40S"
    RTX_PRO_6000 = "RTX_PRO_6000"
    B300 = "B300"
    GB300 = "GB300"


def offered_accelerators() -> tuple[str, ...]:
    """Return the values that a user can choose from."""
    return tuple(member.value for member in Accelerator if not member.name.startswith("_"))


class AcceleratorSpec(OpenDefinition):
    """GPU type and number of GPUs per node.

    Where a spec is expected, the short form is accepted too: ``"H100:8"`` or ``"H100"``.
    """

    accelerator: Accelerator | None = None
    count: int = Field(default=1, ge=0)

    @model_validator(mode="before")
    @classmethod
    def _read_short_form(cls, value: Any) -> Any:
        if isinstance(value, str):
            return _parse_short_form(value)
        if value is None:
            return {}
        if isinstance(value, dict):
            return value
        raise ValueError(
            'an accelerator must be a string such as "H100:8", an AcceleratorSpec or a dict of its fields'
        )

    @field_validator("accelerator", mode="before")
    @classmethod
    def _explain_choices(cls, value: Any) -> Any:
        return (
            _parse_gpu_type(value) if isinstance(value, str) and not isinstance(value, Accelerator) else value
        )

    @model_serializer(mode="plain")
    def _short_form(self) -> str | None:
        return str(self) or None

    def __str__(self) -> str:
        if self.accelerator is None or self.count <= 0:
            return ""
        return self.accelerator.value if self.count == 1 else f"{self.accelerator.value}:{self.count}"


def _parse_short_form(text: str) -> dict[str, Any]:
    match = re.fullmatch(r"(?P<type>[^:]+)(?::(?P<count>[0-9]+))?", text.strip(), re.ASCII)
    if match is None:
        # The official SDK reads "H100:2:3" as one H100; raise an error instead, so that no job runs on too
        # few GPUs.
        raise ValueError(f'"{text}" is not an accelerator; write TYPE or TYPE:COUNT, e.g. "H100:8"')
    accelerator = _parse_gpu_type(match["type"])
    count = int(match["count"] or "1")
    if count < 1:
        raise ValueError(f'"{text}" requests {count} GPUs; the count must be at least 1')
    return {"accelerator": accelerator, "count": count}


def _parse_gpu_type(name: str) -> Accelerator:
    try:
        return Accelerator(name)
    except ValueError:
        choices = ", ".join(offered_accelerators())
        raise ValueError(f'unknown accelerator "{name}"; known: {choices}') from None


class AvailabilityModel(TextEnum):
    """Type of capacity: dedicated, or spot (may be taken away at any time)."""

    DEDICATED = "dedicated"
    SPOT = "spot"


class Compute(StrictDefinition):
    """Number of nodes, and the resources of a node.

    ``memory`` is a Kubernetes quantity such as ``"64Gi"``.
    """

    node_count: int = 1
    cpu_count: int = 1
    memory: str = "2Gi"
    accelerator: AcceleratorSpec | None = None
    availability_model: Annotated[AvailabilityModel, members_only(AvailabilityModel)] = (
        AvailabilityModel.DEDICATED
    )

    @field_serializer("accelerator")
    def _accelerator_as_object(self, spec: AcceleratorSpec | None) -> dict[str, Any] | None:
        # The API expects the two fields, never the short form.
        if spec is None or spec.accelerator is None:
            return None
        return {"accelerator": spec.accelerator.value, "count": spec.count}
