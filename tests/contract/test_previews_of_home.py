"""What Home knows of its jobs while their logs cannot be read, or are not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.fake_baseten import Answer, FakeBaseten
from support.fake_runs import live_run
from support.followed_fleet import followed
from tui.analysis.fleet import snapshot as snapshot_module
from tui.analysis.fleet.snapshot import UNREAD
from tui.feeds import fleet as fleet_module
from tui.readers.stored_health import StoredHealth


@pytest.fixture
def baseten() -> Iterator[FakeBaseten]:
    with FakeBaseten() as baseten:
        baseten.jobs = []
        yield baseten


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, StoredHealth]]:
    kept: list[dict[str, StoredHealth]] = []
    monkeypatch.setattr(fleet_module, "store_health", lambda _server, jobs, _now_s: kept.append(jobs))
    monkeypatch.setattr(fleet_module, "STORE_INTERVAL_S", 0.0)
    monkeypatch.setattr(fleet_module, "SLOW_INTERVAL_S", 0.01)
    monkeypatch.setattr(fleet_module, "PUBLISH_INTERVAL_S", 0.01)
    return kept


async def test_health_is_as_old_as_what_was_read_while_another_screen_is_in_front(
    baseten: FakeBaseten, kept: list[dict[str, StoredHealth]]
) -> None:
    live_run(baseten, "well")
    async with followed(baseten) as (feed, wait_for):
        await wait_for(lambda fleet: fleet.is_read)
        feed.is_shown = False
        read = feed._previews["well"]
        later = await wait_for(lambda fleet: fleet.at.timestamp() > read.at_s + 0.1)
    assert later.jobs[0].preview is read
    assert kept[-1]["well"].at_s == read.at_s < later.at.timestamp()


async def test_cost_is_shown_although_a_log_cannot_be_read(baseten: FakeBaseten) -> None:
    live_run(baseten, "dark")
    baseten.on("GET", ".*/jobs/dark/logs", Answer({"error": "no"}, status=403))
    async with followed(baseten) as (_, wait_for):
        snapshot = await wait_for(lambda fleet: fleet.is_read)
    assert not snapshot.jobs[0].preview.log_read and not snapshot.jobs[0].preview.reading


async def test_job_whose_turn_newer_ones_have_taken_is_not_being_read(
    baseten: FakeBaseten, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_module, "MAX_PREVIEWED_JOBS", 1)
    live_run(baseten, "old")
    baseten.on("GET", ".*/jobs/old/logs", Answer(hangs=True))
    async with followed(baseten) as (feed, wait_for):
        await wait_for(lambda fleet: fleet.jobs[0].preview.reading)
        assert feed._preview_feed is not None
        feed._preview_feed.previews["old"] = UNREAD
        live_run(baseten, "new")
        baseten.jobs[-1]["created_at"] = baseten.jobs[-1]["updated_at"]
        feed.refresh()
        snapshot = await wait_for(lambda fleet: len(fleet.jobs) == 2)
    assert [row.id for row in snapshot.jobs if row.preview.reading] == ["new"]
