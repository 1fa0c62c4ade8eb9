"""A small world with something for every page to show, and the way to each of them from Home."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from api_client.clock import SystemClock
from api_client.emulator.backend import StoredFile
from api_client.models import CachedFile, JobStatus, TrainingJob
from api_client.remotes import Remote
from support.dashboard import text_of
from support.fake_backend import START, START_MS, FakeBackend
from support.faulty import FaultyServer, faulty_server
from support.pages import all_of
from support.remotes import remote_of
from support.served_platform import Served, counting_bytes, served_platform
from support.waiting import until
from tui.analysis.checkpoints.facts import checkpoint_facts
from tui.analysis.health.registry import KINDS
from tui.analysis.run.finding import HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.app import BtTuiApp
from tui.readers.session import Session
from tui.screens.base import OpenPage, Page
from tui.screens.cache import CachePage
from tui.screens.capacity import CapacityPage
from tui.screens.compare import ComparePage
from tui.screens.deploy.screen import DeployPage
from tui.screens.differences import CompareCheckpointsPage, DifferencesPage
from tui.screens.downloads import DownloadsPage
from tui.screens.files.screen import FilesPage
from tui.screens.home.screen import HomePage, HomeScreen
from tui.screens.job.page import JobPage
from tui.screens.submit import SubmitPage
from tui.screens.why import WhyPage

SIZE = (120, 30)
LONGEST_PAUSE_S = 0.2
TICK_S = 1.0
"""The pauses up to this one pace what is painted; only longer ones, until a next try, are cut short."""
CHECKPOINT_FILES = ("checkpoint-100/a.txt", "checkpoint-100/weights.bin")
CONFIG = """
from truss_train import definitions

training_project = definitions.TrainingProject(
    name="from-the-screen",
    job=definitions.TrainingJob(
        image=definitions.Image(base_image="python:3.12-slim"),
        compute=definitions.Compute(cpu_count=1),
        runtime=definitions.Runtime(start_commands=["true"]),
    ),
)
"""


class QuickRetryClock(SystemClock):
    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds if seconds <= TICK_S else LONGEST_PAUSE_S)


class QuickRetryApp(BtTuiApp):
    def session_with(self, remote: Remote) -> Session:
        return Session(remote, clock=QuickRetryClock(), on_connection=partial(setattr, self, "connection"))


def furnish(served: Served, folder: Path) -> None:
    """Add an ended job to the running one, logs, checkpoints, a cache, and a config file in the folder."""
    backend, job_id = served.backend, served.job_id
    now = datetime.now(UTC) - timedelta(minutes=1)
    backend.by_id[job_id] = backend.by_id[job_id].model_copy(update={"created_at": now, "updated_at": now})
    backend.add("job00000", served.project_id, JobStatus.COMPLETED)
    stamp = int(now.timestamp() * 1e9)
    for each in (job_id, "job00000"):
        begin = stamp if each == job_id else START_MS * 1_000_000
        backend.lines[each] = [
            {"timestamp": str(begin + step), "message": f"{{'loss': {step}.5}}", "replica": "r0"}
            for step in (1, 2, 3)
        ]
        backend.stored_files[each] = [
            StoredFile(name, 0, 7, START.isoformat(), generate=counting_bytes) for name in CHECKPOINT_FILES
        ]
    backend.caches[served.project_id] = [CachedFile(path="hub/model.bin", size_bytes=3)]
    (folder / "config.py").write_text(CONFIG, encoding="utf-8")


@contextmanager
def faulty_world(folder: Path) -> Iterator[tuple[FaultyServer, pytest.MonkeyPatch]]:
    """The small world behind a server with faults on request; working directory and state are ``folder``."""
    with (
        faulty_server() as server,
        served_platform(server, folder) as served,
        pytest.MonkeyPatch.context() as patch,
    ):
        furnish(served, folder)
        patch.chdir(folder)
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        yield server, patch


Go = Callable[[BtTuiApp, Pilot[Any]], Awaitable[object]]


@dataclass(frozen=True)
class Walk:
    """How to come to a page from Home, and words that are on it when all is well.

    ``asks``: the screen keeps asking, or asks again on ``r``, so that it hears of a refusal itself. Those
    that do not learn of trouble with the server from what the app asks meanwhile.
    """

    words: str
    go: Go
    asks: bool = True
    opens_asking: bool = False
    """Whether it comes up at once, with nothing to show until its first answer."""
    tabs: tuple[tuple[str, str], ...] = ()
    """Keys of the screen's tabs, and words that are on each."""


CHECKPOINTS = FakeBackend().checkpoints("job00001")


def first_job(app: BtTuiApp) -> TrainingJob:
    assert isinstance(app.screen, HomeScreen)
    assert app.screen.snapshot is not None
    return app.screen.snapshot.jobs[0].job


def keys(*pressed: str) -> Go:
    async def go(_app: BtTuiApp, pilot: Pilot[Any]) -> None:
        await pilot.press(*pressed)

    return go


def opening(page_of: Callable[[TrainingJob], Page]) -> Go:
    async def go(app: BtTuiApp, _pilot: Pilot[Any]) -> None:
        app.post_message(OpenPage(page_of(first_job(app))))

    return go


def why_page(job: TrainingJob) -> WhyPage:
    found = HealthFinding(KINDS["errors"], "warning", "errors in the log", since=START)
    run = RunSnapshot(job, START, START, findings=(found,))
    return WhyPage(run, lambda: None, lambda _at, _view: None)


async def to_review(app: BtTuiApp, pilot: Pilot[Any]) -> None:
    await pilot.press("n")
    await until(pilot, lambda: "config files" in text_of(app))  # once they are found
    await pilot.press("enter")
    # The preview of the file has its words, too; there, a key would narrow the list.
    await until(pilot, lambda: "Overrides" in text_of(app))


JOB_TABS = (
    ("2", "'loss': 3.5"),
    ("3", "GPU memory"),
    ("4", "checkpoint-100"),
    ("5", "someone@example.com"),
    ("1", "'loss': 3.5"),
)
WALKS: dict[type[Page], Walk] = {
    HomePage: Walk("job job00001", keys()),
    JobPage: Walk("'loss': 3.5", keys("enter", "1"), tabs=JOB_TABS),
    CachePage: Walk("model.bin", keys("C"), opens_asking=True),
    FilesPage: Walk("weights.bin", opening(lambda job: FilesPage(job, CHECKPOINTS[0])), opens_asking=True),
    CompareCheckpointsPage: Walk(
        "missing",
        opening(lambda job: CompareCheckpointsPage(job, *checkpoint_facts(CHECKPOINTS))),
        opens_asking=True,
    ),
    ComparePage: Walk("H100:8 208x1872", keys("space", "space", "c")),
    DifferencesPage: Walk(
        "no code archive", opening(lambda job: DifferencesPage(job, job)), opens_asking=True
    ),
    CapacityPage: Walk("16/96", keys("Q"), opens_asking=True),
    DownloadsPage: Walk("No downloads", keys("T"), asks=False),
    DeployPage: Walk("Which checkpoints?", keys("d"), asks=False, opens_asking=True),
    WhyPage: Walk("errors in the log", opening(why_page), opens_asking=True),
    SubmitPage: Walk("from-the-screen", to_review, asks=False),
}
OF_A_JOB: dict[str, Callable[[TrainingJob], str | TrainingJob]] = {
    "job": lambda job: job,
    "job_id": lambda job: job.id,
    "project_id": lambda job: job.project_id,
    "name": lambda job: job.project_name,
}
"""Fields of pages, and what they are for a page that is about the first job, or its project."""


def page_about(page: Callable[..., Page], job: TrainingJob) -> Page:
    return page(**{field.name: OF_A_JOB[field.name](job) for field in fields(page)})  # type: ignore[arg-type]


WALKS |= {
    page: Walk("", opening(partial(page_about, page)), opens_asking=True)
    for page in all_of(Page)
    if page not in WALKS and {field.name for field in fields(page)} <= OF_A_JOB.keys()
}
"""The way to every page that the app can show on a remote; one with no other fields needs none here."""


@asynccontextmanager
async def home_of(faulty: FaultyServer) -> AsyncIterator[tuple[QuickRetryApp, Pilot[Any]]]:
    """The dashboard on Home, while nothing is wrong with the server."""
    faulty.set_faults()
    app = QuickRetryApp(remote_of(faulty))
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: WALKS[HomePage].words in text_of(app))
        yield app, pilot


def words_on(app: QuickRetryApp) -> str:
    return " ".join(text_of(app).split())


def shows(app: QuickRetryApp, *words: str) -> bool:
    text = words_on(app)
    return all(each in text for each in words)
