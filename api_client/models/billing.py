"""The bill: what the organization's training jobs have cost, in USD and minutes."""

from __future__ import annotations

from pydantic import Field

from api_client.models.base import ApiModel, Day, Number, TolerantList

TRAINING_JOB = "TRAINING_JOB"
"""The ``kind`` of a billed training job."""

Usd = Number
"""Amount of money; servers send a number or a decimal string."""


class DailyUsage(ApiModel):
    """The bill of one UTC day."""

    date: Day
    subtotal: Usd = 0.0
    minutes: Number = 0.0


class BillableResource(ApiModel):
    """A billed resource: for a training job its id, and its project's name in ``model_name``."""

    id: str
    kind: str = ""
    name: str | None = None
    model_name: str | None = None
    instance_type: str | None = None
    is_deleted: bool = False


class BilledItem(ApiModel):
    """The bill of one resource in the requested range, in total and by day."""

    billable_resource: BillableResource
    subtotal: Usd = 0.0
    minutes: Number = 0.0
    daily: TolerantList[DailyUsage] = Field(default_factory=list)


class TrainingUsage(ApiModel):
    """The bill of training; ``subtotal`` has the ``credits_used`` deducted."""

    subtotal: Usd = 0.0
    credits_used: Usd = 0.0
    total: Usd = 0.0
    minutes: Number = 0.0
    breakdown: TolerantList[BilledItem] = Field(default_factory=list)


class UsageSummary(ApiModel):
    """The bill of a range of days. The parts that are not about training are kept, but not parsed."""

    training_usage: TrainingUsage | None = None
