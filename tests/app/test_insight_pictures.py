"""A few pictures of comparing and of capacity, to notice when their looks change."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from api_client.models import TrainingCapacity
from support.dashboard import Dashboard, StubFeed, screen_view, settle
from support.sick_runs import sick_run
from support.worlds import JOBS, ONE_O_CLOCK, run
from tui.analysis.comparison import ComparedRun
from tui.analysis.fleet.capacity import CapacityView, fold_capacity, gpu_allocations
from tui.screens.capacity import CapacityScreen
from tui.screens.compare import CompareRunsScreen

Compare = Callable[..., bool]

RUNS = (
    ComparedRun(JOBS[0], "read", sick_run("healthy")),
    ComparedRun(JOBS[5], "read", run(JOBS[5])),
    ComparedRun(JOBS[1], "reading", run(JOBS[1]), fraction_read=0.4),
)
LIMITS = TrainingCapacity.model_validate(
    {
        "gpu_capacities": [
            {"gpu_type": "H100", "baseline": 32, "limit": 64, "usage_count": 34, "dedicated_usage_count": 32,
             "spot_usage_count": 2},
            {"gpu_type": "H200", "baseline": 16, "limit": 16, "usage_count": 16},
        ],
        "team_gpu_capacities": [
            {"team_id": "t", "team_name": "Research", "gpu_type": "H100", "limit": 48, "usage_count": 32}
        ],
    }
)  # fmt: skip


def compare_view() -> Dashboard:
    feed: Any = partial(StubFeed, RUNS)
    return screen_view(lambda: CompareRunsScreen([one.job for one in RUNS], feed))


def capacity_view() -> Dashboard:
    waiting, holding = gpu_allocations(JOBS, ONE_O_CLOCK + timedelta(minutes=1))
    feed: Any = partial(
        StubFeed, CapacityView("known", fold_capacity(LIMITS), waiting, holding, None, "", True)
    )
    return screen_view(lambda: CapacityScreen("acme", feed))


@pytest.mark.parametrize("size", [(60, 20), (140, 45)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_compare(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert snap_compare(compare_view(), terminal_size=size, run_before=settle)


def test_capacity(snap_compare: Compare) -> None:
    assert snap_compare(capacity_view(), terminal_size=(80, 24), run_before=settle)
