"""What Home asks for: every line of a job's log once, and all jobs the seldomer the more there are."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from api_client.clock import Clock, SystemClock
from api_client.models import TrainingJob
from api_client.streams.logs import LATENESS_MS
from api_client.streams.pages import MAX_PAGE_LINES
from support.fake_baseten import Answer, FakeBaseten, ReceivedRequest, job, line, project
from support.fake_runs import iso
from support.followed_fleet import followed
from support.log_server import FastClock
from support.remotes import remote_of
from tui.analysis.connection import Connection
from tui.analysis.fleet.snapshot import FleetSnapshot
from tui.analysis.progress.fold import ProgressFold
from tui.readers.log_reader import FLOOD_LINES, LogReader
from tui.readers.session import Session

NOW_MS = int(time.time() * 1000)
EVERY_MS = 100
OLD = 2 * MAX_PAGE_LINES + 300
"""More than two pages, three lines of each millisecond that has any."""


@asynccontextmanager
async def tail(clock: Clock | None = None) -> AsyncIterator[tuple[LogReader, FakeBaseten]]:
    """What Home reads of the log of a job that has run for two hours."""
    with FakeBaseten() as baseten:
        baseten.jobs = [job("runs", "RUNNING", created_at=iso(NOW_MS / 1000 - 7200))]
        session = Session(remote_of(baseten), clock=clock or SystemClock())
        try:
            running = TrainingJob.model_validate(baseten.jobs[0])
            yield LogReader(session.client, running, ProgressFold()), baseten
        finally:
            await session.client.aclose()


def counted(log: LogReader) -> int:
    """Number of lines that counted: each has a step and a loss."""
    return sum(view.readings for view in log.fold.snapshot().streams) // 2


class ImpatientClock(SystemClock):
    """A clock that never ends a pause of a second or more."""

    async def sleep(self, seconds: float) -> None:
        await (super().sleep(seconds) if seconds < 1.0 else asyncio.Event().wait())


async def test_once_all_is_read_it_is_published_without_a_pause() -> None:
    with FakeBaseten() as baseten:
        baseten.jobs = [job(f"job{number}", "RUNNING") for number in range(2)]
        async with followed(baseten, ImpatientClock()) as (_, wait_for):
            snapshot = await wait_for(lambda snapshot: snapshot.is_read)
    assert not any(row.preview.reading for row in snapshot.jobs)


def shows(step: int) -> Callable[[FleetSnapshot], bool]:
    def is_shown(snapshot: FleetSnapshot) -> bool:
        progress = snapshot.jobs[0].preview.progress if snapshot.jobs else None
        return snapshot.is_read and progress is not None and progress.step == step

    return is_shown


async def test_running_jobs_are_read_behind_another_screen_for_their_alerts() -> None:
    with FakeBaseten() as baseten:
        baseten.jobs = [job("run", "RUNNING", created_at=iso(NOW_MS / 1000 - 7200))]
        baseten.logs["run"] = [line("step=10/90 loss=2.0", at_ms=NOW_MS - 9000)]
        async with followed(baseten, FastClock(begin_s=NOW_MS / 1000, pause_s=0.001)) as (feed, wait_for):
            await wait_for(shows(10))
            feed.is_shown = False
            baseten.logs["run"].append(line("step=20/90 loss=1.5", at_ms=NOW_MS - 1000))
            await wait_for(shows(20))


async def test_a_job_that_starts_behind_another_screen_is_read_whole_so_that_it_can_be_judged() -> None:
    with FakeBaseten() as baseten:
        async with followed(baseten, FastClock(begin_s=NOW_MS / 1000, pause_s=0.001)) as (feed, wait_for):
            await wait_for(lambda snapshot: snapshot.is_read)
            feed.is_shown = False
            baseten.jobs = [job("run", "RUNNING", created_at=iso(NOW_MS / 1000 - 7200))]
            await wait_for(lambda snapshot: any(row.preview.log_read for row in snapshot.jobs))


async def test_older_lines_that_are_read_give_way_to_another_screen() -> None:
    async with tail() as (log, baseten):
        baseten.logs["runs"] = [
            line(f"step={place // 3} loss=1.0", at_ms=NOW_MS - (OLD - place) // 3 * EVERY_MS)
            for place in range(OLD)
        ]
        await log.read_newest()
        is_shown = asyncio.Event()
        await log.read_older(is_shown)
        assert not log.is_read
        is_shown.set()
        await log.read_older(is_shown)
        assert (counted(log), log.is_read) == (OLD, True)


async def test_the_end_of_a_job_is_read_when_it_ends() -> None:
    with FakeBaseten() as baseten:
        baseten.jobs = [job("run", "RUNNING", created_at=iso(NOW_MS / 1000 - 7200))]
        baseten.logs["run"] = [line("step=10/90 loss=2.0", at_ms=NOW_MS - 9000)]
        async with followed(baseten) as (_, wait_for):
            await wait_for(shows(10))
            baseten.logs["run"].append(line("step=20/90 loss=1.5", at_ms=NOW_MS - 1000))
            baseten.jobs[0] |= {"current_status": "TRAINING_JOB_STOPPED", "updated_at": iso(NOW_MS / 1000)}
            ended = await wait_for(shows(20))
    assert ended.jobs[0].preview.log_read, "what was known of the whole run is kept"


async def test_every_line_counts_once() -> None:
    async with tail() as (log, baseten):
        baseten.logs["runs"] = lines = [
            line(f"step={place // 3} loss=1.0", at_ms=NOW_MS - (OLD - place) // 3 * EVERY_MS)
            for place in range(OLD)
        ]
        await log.read_newest()
        assert MAX_PAGE_LINES - 3 <= counted(log) <= MAX_PAGE_LINES, "the newest page at once"
        assert not log.is_read
        # A line that comes, one like it, and a late one between those that are known.
        lines += [line("step=5000 loss=1.0", at_ms=NOW_MS + 5)] * 2
        lines += [line("step=4000 loss=1.0", at_ms=NOW_MS - 1000 + 3)]
        lines.sort(key=lambda one: int(one["timestamp"]))
        await log.read_newest()
        await log.read_older()
        assert (counted(log), log.is_read) == (OLD + 3, True)
        await log.read_newest()
        await log.read_older()
        assert counted(log) == OLD + 3, "nothing comes twice"
    assert log.fold.snapshot().step == 5000


async def test_last_lines_are_the_newest_by_time_whenever_they_arrive() -> None:
    async with tail() as (log, baseten):
        baseten.logs["runs"] = lines = [
            line(f"line {place}", at_ms=NOW_MS - 1000 + place * EVERY_MS) for place in range(9)
        ]
        await log.read_newest()
        lines.insert(8, line("late", at_ms=NOW_MS - 250))
        await log.read_newest()
    assert log.last_lines == (*(f"line {place}" for place in range(2, 8)), "late", "line 8")


@pytest.mark.parametrize("stamp", ["later", "9" * 30, "-5"], ids=["word", "far", "negative"])
async def test_a_stamp_that_is_none_keeps_no_other_line_from_being_read(stamp: str) -> None:
    clock = FastClock(FastClock().begin_s - NOW_MS / 1000)
    async with tail(clock) as (log, baseten):
        odd = line("written at no time", at_ms=NOW_MS) | {"timestamp": stamp}
        known = ((NOW_MS, odd), (NOW_MS - 1000, line("step=7/900 loss=1.0", at_ms=NOW_MS - 1000)))

        def answer(asked: ReceivedRequest) -> Answer:
            start_ms, end_ms = (int(asked.query[name]) for name in ("start_epoch_millis", "end_epoch_millis"))
            return Answer({"logs": [one for at_ms, one in known if start_ms <= at_ms < end_ms]})

        baseten.on("GET", "/v1/training_projects/.*/jobs/runs/logs", answer)
        for _ in range(2):
            await log.read_newest()
    assert log.fold.snapshot().step == 7


async def test_a_flood_is_sampled_until_it_ebbs() -> None:
    async with tail() as (log, baseten):
        begin_ms = NOW_MS - 3_600_000
        baseten.logs["runs"] = lines = [
            line(f"step={place} loss=1.0", at_ms=begin_ms + place) for place in range(12_000)
        ]

        await log.read_newest()
        assert sum(one.path.endswith("/logs") for one in baseten.asked) == 1
        assert log.fold.snapshot().step == 11_999
        await log.read_older()
        assert log.is_read
        assert counted(log) == 12_000
        known = counted(log)
        lines += [line(f"step={place} loss=1.0", at_ms=begin_ms + place) for place in range(12_000, 32_000)]
        await log.read_newest()
        assert log.fold.snapshot().step == 31_999
        assert counted(log) <= known + FLOOD_LINES + 2 * MAX_PAGE_LINES, "not all that came"
        # It ebbs: every line counts from here on, a late one too.
        quiet_ms = begin_ms + 32_000 + LATENESS_MS
        lines += [line("step=50000 loss=1.0", at_ms=quiet_ms)]
        await log.read_newest()
        known = counted(log)
        lines += [line(f"step={step} loss=1.0", at_ms=quiet_ms + step - 50_005) for step in (50_001, 50_009)]
        await log.read_newest()
        assert (log.fold.snapshot().step, counted(log)) == (50_009, known + 2)


ROUNDS = 20
RUNS = "the-one-that-runs"


def searches(baseten: FakeBaseten) -> list[bool]:
    """The searches for jobs so far: whether each was for all of them."""
    return ["statuses" not in each.body for each in baseten.asked if each.path.endswith("/search")]


@pytest.mark.parametrize(("jobs", "between"), [(30, 1), (300, 4), (1_000, 11)])
async def test_the_more_jobs_the_seldomer_all_are_asked_for(jobs: int, between: int) -> None:
    with FakeBaseten() as baseten:
        baseten.jobs = [job(f"job{number:05}") for number in range(jobs - 1)] + [job(RUNS, "RUNNING")]
        async with followed(baseten) as (_, wait_for):
            await wait_for(lambda _: len(searches(baseten)) >= ROUNDS // 2)
            baseten.jobs[-1] = job(RUNS, "FAILED")
            await wait_for(lambda fleet: not fleet.running)
            fleet = await wait_for(lambda _: len(searches(baseten)) >= ROUNDS)
    assert len(fleet.jobs) == jobs, "those that ended long ago stay on the list"
    whole = [place for place, is_whole in enumerate(searches(baseten)[:ROUNDS]) if is_whole]
    assert whole == [*range(0, ROUNDS, between)]


async def test_projects_are_listed_again_for_a_job_of_an_unknown_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.feeds.fleet.PROJECTS_INTERVAL_S", 1e6)

    def listings() -> int:
        return sum(each.path.endswith("/training_projects") for each in baseten.asked)

    with FakeBaseten() as baseten:
        baseten.jobs = [job("one")]
        async with followed(baseten) as (_, wait_for):
            await wait_for(lambda _: len(searches(baseten)) >= 5)
            known = listings()
            baseten.projects = [*baseten.projects, project("p2", "new")]
            baseten.jobs = [*baseten.jobs, job("two", "RUNNING", training_project_id="p2")]
            await wait_for(lambda fleet: any(each.name == "new" for each in fleet.projects))
    assert (known, listings()) == (1, 2)


async def test_screens_learn_of_an_answer_only_if_it_is_seconds_newer() -> None:
    clock, shared = FastClock(), list[Connection]()
    with FakeBaseten() as baseten:
        session = Session(remote_of(baseten), clock=clock, on_connection=shared.append)
        for pause_s in (0.0, 1.0, 2.0):
            await clock.sleep(pause_s)
            await session.check()
        await session.client.aclose()
    answers = [each.answered_at for each in shared if each.answered_at is not None]
    assert [(answer - answers[0]).total_seconds() for answer in answers] == [0, 3]
    assert session.connection.answered_at == answers[-1]


@pytest.mark.parametrize(("jobs_per_second", "interval_s"), [(1000, 1.0), (10, 5.0), (1, 10.0)])
async def test_snapshots_of_more_jobs_are_published_less_often(
    jobs_per_second: int, interval_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.feeds.fleet.JOBS_PER_SECOND", jobs_per_second)
    with FakeBaseten() as baseten:
        baseten.jobs = [job(f"job{number:05}") for number in range(50)]
        async with followed(baseten) as (feed, wait_for):
            await wait_for(lambda fleet: len(fleet.jobs) == 50)
    assert feed._throttle.interval_s == interval_s
