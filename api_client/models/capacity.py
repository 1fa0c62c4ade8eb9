"""GPU capacity of the organisation and its teams."""

from __future__ import annotations

from api_client.models.base import ApiModel, TolerantList


class GpuCapacity(ApiModel):
    """GPUs of one type: spot use may push ``usage_count`` above ``limit``."""

    gpu_type: str
    baseline: int = 0
    limit: int = 0
    usage_count: int = 0
    dedicated_usage_count: int | None = None
    spot_usage_count: int | None = None


class TeamGpuCapacity(GpuCapacity):
    """GPUs of one type of one team; the fields are those of ``GpuCapacity``."""

    team_id: str = ""
    team_name: str = ""


class TrainingCapacity(ApiModel):
    """The answer of the capacity route."""

    gpu_capacities: TolerantList[GpuCapacity] = []
    team_gpu_capacities: TolerantList[TeamGpuCapacity] = []
