"""Home, the job screen and ``bt-tui health`` say the same of a run, whatever it suffers from."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import pytest

from api_client.emulator.processes import EmulatorChild
from api_client.models import TrainingJob
from support.remotes import remote_of
from support.run_snapshots import first_snapshot
from tui.analysis.cost import node_seconds, running_time
from tui.analysis.health.judge import health
from tui.analysis.health.registry import KINDS
from tui.analysis.health.rules import DEFAULT_RULES
from tui.analysis.run.finding import FindingKind, HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.cli import main
from tui.feeds.previews import PreviewFeed
from tui.readers.session import Session, read_status_changes

SAME_MOMENT_S = 150.0
"""Two looks at one onset: samples of the past are a minute apart or two, and their grid moves."""
SICK = {
    "mistral-24b-dpo-2": KINDS["loss-not-finite"],
    "whisper-debug": KINDS["gpu-idle"],
    "qwen3-8b-dpo-4": KINDS["checkpoint-overdue"],
    "embed-multilingual-v1": KINDS["metrics-missing"],
    "whisper-calls-resume": KINDS["restarts"],
}
"""Findings from logs, metrics and checkpoints; that each sick run has its own is tested with the world."""
ON_SCREEN = ("whisper-debug", "whisper-calls-resume")
"""The job screen reads their logs too: the shorter ones, for its parts are those of the command."""

Told = dict[str, float | None]
"""The keys of findings, and since when (epoch seconds)."""


def told(findings: Iterable[HealthFinding]) -> Told:
    return {one.key: one.since.timestamp() if one.since else None for one in findings}


def told_by_command(findings: list[dict[str, str]]) -> Told:
    keys = (f"{one['kind']}:{one['node']}" if one["node"] else one["kind"] for one in findings)
    moments = (datetime.fromisoformat(one["since"]).timestamp() if one["since"] else None for one in findings)
    return dict(zip(keys, moments, strict=True))


async def seen_from_home(feed: PreviewFeed, job: TrainingJob) -> Told:
    """What Home says of a job once it has read all of its log."""
    await feed.poll(job)
    await feed.read_older(job)
    await feed.poll(job)
    return told(feed.previews[job.id].findings)


async def seen_on_the_job_screen(session: Session, job: TrainingJob, kind: FindingKind) -> Told:
    """What the job screen's feed says once it has read everything and found what it should."""

    def is_told(run: RunSnapshot) -> bool:
        known = run.log_read and run.health_metrics is not None and run.checkpoints is not None
        # A picture may hold what came just now beside findings of the moment before: wait for theirs.
        return (
            known
            and kind in [one.kind for one in run.findings]
            and told(run.findings) == told(health(run, DEFAULT_RULES, run.findings))
        )

    return told((await first_snapshot(session, job, is_told, span=timedelta(hours=1))).findings)


async def seen_on_screens(session: Session) -> tuple[list[str], list[Told]]:
    """The ids of the sick runs, and what is said of each on Home, then of some on their screens."""
    try:
        jobs = {job.name: job for job in await session.client.jobs.search() if job.name in SICK}
        is_shown = asyncio.Event()
        is_shown.set()
        feed = PreviewFeed(session, is_shown=is_shown)
        home = [seen_from_home(feed, jobs[name]) for name in SICK]
        screens = [seen_on_the_job_screen(session, jobs[name], SICK[name]) for name in ON_SCREEN]
        return [jobs[name].id for name in SICK], await asyncio.gather(*home, *screens)
    finally:
        await session.client.aclose()


@pytest.fixture(scope="module")
def demo() -> Iterator[EmulatorChild]:
    with EmulatorChild() as emulator:
        yield emulator


@pytest.mark.proves("docs/health.md", "Health and cost")
def test_home_the_job_screen_and_the_command_agree_on_sick_runs(
    demo: EmulatorChild, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ids, seen = asyncio.run(seen_on_screens(Session(remote_of(demo))))
    for name, value in demo.remote_environ().items():
        monkeypatch.setenv(name, value)
    main(("health", "-o", "json", *ids))
    command = {one["name"]: told_by_command(one["findings"]) for one in json.loads(capsys.readouterr().out)}
    for name, found in zip((*SICK, *ON_SCREEN), seen, strict=True):
        assert any(key.startswith(str(SICK[name])) for key in found), (name, found)
        assert found == pytest.approx(command[name], abs=SAME_MOMENT_S), name


async def times_on_home_and_by_history(session: Session) -> dict[str, tuple[float, float]]:
    """The seconds that a running and an ended job have run, by Home and by its status history."""
    try:
        jobs = {job.name: job for job in await session.client.jobs.search()}
        chosen = [jobs["llama-70b-longctx-v1"], jobs["flux-lora-products"]]
        is_shown = asyncio.Event()
        is_shown.set()
        is_read = asyncio.Event()

        def note() -> None:
            if feed.is_read:
                is_read.set()

        feed = PreviewFeed(session, is_shown=is_shown, on_change=note)
        feed.watch(chosen[:1], chosen[1:], {job.id for job in chosen})
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(feed.run())
            await is_read.wait()
            reading.cancel()
        times = {}
        for job in chosen:
            history, now = await read_status_changes(session.client, job), session.clock.now()
            used = node_seconds(job, now, feed.previews[job.id].idle_s)
            assert history is not None and used is not None
            ran = running_time(job, history.events, now)
            times[job.name or ""] = (used / (job.node_count or 1), ran.seconds)
        return times
    finally:
        await session.client.aclose()


def test_home_counts_the_time_that_a_job_has_run(demo: EmulatorChild) -> None:
    times = asyncio.run(times_on_home_and_by_history(Session(remote_of(demo))))
    for name, (on_home, by_history) in times.items():
        assert on_home == pytest.approx(by_history, abs=2.0) and by_history > 60, name
