"""Schema of a job spec (the published ``CreateTrainingJobV1``).

Unknown fields pass, because official clients send fields that the schema lacks. The runner gets the job spec
as the client sent it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from api_client.definitions.job_request import read_job_request
from api_client.emulator.catalog import smallest_instance_type
from api_client.emulator.responses import first_problem, invalid
from api_client.models import InstanceType

Int32 = Annotated[int, Field(ge=-(2**31), lt=2**31)]
"""An integer of 32 bits, which every client can read."""
AvailabilityModel = Literal["dedicated", "spot"]


class _SpecPart(BaseModel):
    model_config = ConfigDict(extra="allow", defer_build=True)


class _Image(_SpecPart):
    base_image: str


class _Accelerator(_SpecPart):
    accelerator: str
    count: Int32 = Field(ge=0)


class _Compute(_SpecPart):
    node_count: int = Field(default=1, ge=1, le=64)
    cpu_count: Int32 = Field(default=1, ge=0)
    memory: str = "2Gi"
    accelerator: _Accelerator | None = None
    availability_model: AvailabilityModel = "dedicated"


class _SecretReference(_SpecPart):
    name: str


class _Artifact(_SpecPart):
    s3_bucket: str
    s3_key: str


class _Runtime(_SpecPart):
    start_commands: list[str] = []
    environment_variables: dict[str, str | _SecretReference] = {}
    artifacts: list[_Artifact] = []
    cache_config: dict[str, Any] | None = None
    checkpointing_config: dict[str, Any] | None = None
    load_checkpoint_config: dict[str, Any] | None = None


class _InteractiveSession(_SpecPart):
    trigger: Literal["on_startup", "on_failure", "on_demand"] = "on_demand"
    timeout_minutes: Int32 = 480
    session_provider: Literal["vs_code", "cursor", "ssh"] = "vs_code"
    auth_provider: Literal["github", "microsoft"] = "github"


class CheckedJobSpec(_SpecPart):
    image: _Image
    compute: _Compute = Field(default_factory=_Compute)
    runtime: _Runtime = Field(default_factory=_Runtime)
    name: str | None = None
    priority: Int32 | None = None
    interactive_session: _InteractiveSession | None = None


def check_job_spec(fields: Mapping[str, Any]) -> CheckedJobSpec:
    """Validate a job spec and fill in defaults; raise a 400 that names the first invalid field."""
    try:
        return CheckedJobSpec.model_validate(fields)
    except ValidationError as error:
        raise invalid(first_problem("training_job", error)) from error


def requested_instance(fields: Mapping[str, Any]) -> InstanceType:
    """Return the instance type for a job spec; build an instance type if none of the catalog fits."""
    request = read_job_request(fields)
    gpu_type = request.gpu_type.replace("_", "-") if request.gpu_type else None
    instance_type = smallest_instance_type(gpu_type, request.gpu_count, request.cpu_count)
    if instance_type is not None:
        return instance_type
    type_name = f"{gpu_type}:{request.gpu_count}" if gpu_type else "CPU"
    return InstanceType(
        id=f"local-{type_name.lower().replace(':', '-')}-{request.cpu_count}",
        name=f"{type_name} {request.cpu_count}x{request.memory}",
        millicpu_limit=request.cpu_count * 1000,
        gpu_count=request.gpu_count,
        gpu_type=gpu_type,
    )
