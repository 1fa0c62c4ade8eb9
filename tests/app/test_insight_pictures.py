"""A few pictures of comparing and of capacity, to notice when their looks change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest
from textual.screen import Screen

from api_client.models import GpuCapacity, TeamGpuCapacity, TrainingCapacity
from support.dashboard import LIVE, Dashboard, home, settle
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
    ComparedRun(JOBS[1], "reading", None, part=0.4),
)
LIMITS = TrainingCapacity(
    gpu_capacities=[
        GpuCapacity(
            gpu_type="H100",
            baseline=32,
            limit=64,
            usage_count=34,
            dedicated_usage_count=32,
            spot_usage_count=2,
        ),
        GpuCapacity(gpu_type="H200", baseline=16, limit=16, usage_count=16),
    ],
    team_gpu_capacities=[
        TeamGpuCapacity(team_id="t", team_name="Research", gpu_type="H100", limit=48, usage_count=32)
    ],
)


class Saying:
    """A feed that says one thing."""

    def __init__(self, said: object, publish: Callable[..., object]) -> None:
        self.said, self.publish = said, publish

    async def run(self) -> None:
        self.publish(self.said)
        await asyncio.Event().wait()


def compare_view() -> Dashboard:
    def first() -> Screen[None]:
        screen = CompareRunsScreen(
            [one.job for one in RUNS],
            lambda publish: Saying(RUNS, publish),  # type: ignore[arg-type,return-value]
        )
        screen.connection = LIVE
        return screen

    return Dashboard(first)


def capacity_view() -> Dashboard:
    waiting, holding = gpu_allocations(JOBS, ONE_O_CLOCK + timedelta(minutes=1))
    view = CapacityView("known", fold_capacity(LIMITS), waiting, holding, None, "", True)

    def first() -> Screen[None]:
        screen = CapacityScreen("acme", lambda publish: Saying(view, publish))  # type: ignore[arg-type,return-value]
        screen.connection = LIVE
        return screen

    return Dashboard(first)


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (140, 45)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_compare(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert snap_compare(compare_view(), terminal_size=size, run_before=settle)


def test_compare_without_colour(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(compare_view(), terminal_size=(80, 24), run_before=settle)


@pytest.mark.parametrize("mode", ["dark", "no-colour"])
def test_capacity(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    if mode == "no-colour":
        monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(capacity_view(), terminal_size=(80, 24), run_before=settle)


def test_home_with_marks(snap_compare: Compare) -> None:
    async def mark(pilot: object) -> None:
        await settle(pilot)  # type: ignore[arg-type]
        await pilot.press("space", "j", "space")  # type: ignore[attr-defined]
        await settle(pilot)  # type: ignore[arg-type]

    assert snap_compare(home(), terminal_size=(80, 24), run_before=mark)
