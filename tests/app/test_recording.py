"""The dashboard on recordings: the moment is marked, can be chosen, and nothing can be changed."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from api_client.clock import epoch_ns
from api_client.recordings.playback import Playback
from api_client.recordings.reading import CHECKPOINTS, JOB, Recording
from api_client.replay import Replay
from support.dashboard import settle, text_of
from support.fake_baseten import FakeBaseten, job
from support.fake_runs import finished_run, iso, training_log
from support.recorded import DOCUMENTS, at, by_hand, line, ndjson, sample
from support.waiting import POLL_EVERY_S, dashboard_on, sees, to_screen, until
from tui.actions.table import JOB_TABS
from tui.analysis.connection import LOG
from tui.analysis.node_metrics import MetricsFold
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.run.verdict import is_all_checked
from tui.app import BtTuiApp
from tui.commands.app.open import recording_settings
from tui.commands.support.options import CommandSettings
from tui.readers.recorded_runs import OpenRecordings, RecordedRun
from tui.readers.recorder import Recorder
from tui.screens.compare import CompareRunsScreen
from tui.screens.files.screen import FilesScreen
from tui.screens.home.screen import HomeScreen
from tui.screens.job.screen import JobScreen
from tui.screens.job.time_bar import TimeBar
from tui.widgets.log_view.view import LogView
from tui.widgets.status_footer import Badge

LINES = [line(60 + 5 * number, f"step {number}/600 loss=1.5") for number in range(600)]
ERROR = line(2000.5, "RuntimeError: CUDA out of memory", level="ERROR")
RUN = {
    "logs.ndjson": ndjson(*LINES[:389], ERROR, *LINES[389:]),
    "metrics.ndjson": ndjson(*(sample(60 * minute, use=0.9) for minute in range(2, 58))),
}


@asynccontextmanager
async def dashboard(
    paths: Sequence[Path], moment: datetime | None, elapsed: Any = lambda: 0.0
) -> AsyncIterator[tuple[BtTuiApp, Pilot[Any]]]:
    with ExitStack() as files:
        recordings = [files.enter_context(Recording(path)) for path in paths]
        clock = Playback(recordings[0].begin, recordings[0].until, at=moment, elapsed=elapsed)
        replay = Replay(recordings, clock)
        with OpenRecordings(recordings, replay) as opened:
            app = BtTuiApp(
                replay.remote,
                job_id="job1" if len(paths) == 1 else None,
                settings=recording_settings(CommandSettings(), paths),
                recordings=opened,
            )
            async with app.run_test(size=(120, 36)) as pilot:
                yield app, pilot


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return by_hand(tmp_path / "run.btrun", RUN)


@pytest.mark.proves("docs/recordings.md", "Recordings")
async def test_the_moment_is_marked_and_changes_are_refused(path: Path) -> None:
    async with dashboard([path], at(1060)) as (app, pilot):
        await until(pilot, lambda: _step(app) == 200)
        assert app.screen.query_one("#connection", Badge).label[0] == "recording run 2026-03-01 12:17:40"
        await pilot.press("s")
        await until(pilot, lambda: bool(list(app._notifications)))
        notices = [notice.message for notice in app._notifications]
        assert notices == ["This dashboard is read-only (recording run.btrun)."]
        await pilot.press("o")
        await until(pilot, lambda: len(app._notifications) > 1)
        notices = [notice.message for notice in app._notifications]
        assert notices[-1] == "A recording has no page in the browser."
        assert app.screen.query_one(LogView)._times._now_s() == at(1060).timestamp()
        await sees(pilot, "checkpoint-1", after=("4",))
        await pilot.press("enter")
        await to_screen(pilot, FilesScreen)
        assert app.screen._now_s() == at(1060).timestamp()


async def test_what_was_not_recorded_is_no_error(tmp_path: Path) -> None:
    async with dashboard([by_hand(tmp_path / "run.btrun", {CHECKPOINTS: None})], None) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, JobScreen))
        await sees(pilot, "The checkpoints were not recorded.", after=("4",))
        assert "Stale" not in text_of(app)


async def test_home_below_a_recorded_job_is_read_once_it_is_shown(path: Path) -> None:
    async with dashboard([path], at(2500)) as (app, pilot):
        await until(pilot, lambda: _is_read(app, at(2500)))
        home = next(screen for screen in app.screen_stack if isinstance(screen, HomeScreen))
        assert home.snapshot is None
        await pilot.press("escape")
        await until(pilot, lambda: home.snapshot is not None and len(home.snapshot.jobs) == 1)


def test_kept_metrics_are_known_at_earlier_moments_only(path: Path) -> None:
    with Recording(path) as recording:
        run = RecordedRun(recording, Playback(recording.begin, recording.until, at=at(2000)))
        samples = MetricsFold().fold(recording.metrics.select(0, epoch_ns(at(2000)), step_s=60))
        run.keep_metrics(RunSnapshot(run.job, run.at, run.at, metrics=samples, metrics_at=run.at))
        assert run.metrics == samples
        run.seek(at(1000))
        assert run.metrics is not None and run.metrics.at == at(960).timestamp()
        run.seek(at(2500))
        assert run.metrics is None


@pytest.mark.proves("docs/recordings.md", "What was known at a point in time")
async def test_going_back_and_forth_shows_what_opening_at_that_moment_shows(path: Path) -> None:
    shown: dict[str, str] = {}
    async with dashboard([path], at(2500)) as (app, pilot):
        await until(pilot, lambda: _is_read(app, at(2500)) and _has_marks(app))
        for tab in reversed(JOB_TABS):
            await _show_tab(app, pilot, tab)
            shown[tab] = await _at_rest(app, pilot)
    async with dashboard([path], at(3500)) as (app, pilot):
        for before, tabs in ((3500, JOB_TABS), (1060, ("logs", "live"))):
            await _seek(app, pilot, before)
            await until(pilot, lambda: _has_marks(app))
            await _seek(app, pilot, 2500)
            for tab in reversed(tabs):
                await _show_tab(app, pilot, tab)
                await until(pilot, lambda: text_of(app) == shown[tab])  # noqa: B023


async def test_another_moment_is_read_at_once_and_shown_when_it_is_complete(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = list[RunSnapshot]()
    receive = JobScreen.receive

    def kept(screen: JobScreen, snapshot: RunSnapshot) -> None:
        shown.append(snapshot)
        receive(screen, snapshot)

    async with dashboard([path], None) as (app, pilot):
        await until(pilot, lambda: _is_read(app, at(3500)) and _has_marks(app))
        monkeypatch.setattr(JobScreen, "receive", kept)
        monkeypatch.setattr("tui.feeds.run.FIRST_PUBLISH_INTERVAL_S", 1e6)
        monkeypatch.setattr("tui.screens.job.time_bar.READ_DELAY_S", 1e6)
        await pilot.press("ctrl+left")
        await until(pilot, lambda: any(run.at == at(3440) for run in shown))
    first = next(run for run in shown if run.at == at(3440))
    assert first.progress.step is not None and first.metrics_at == first.at


async def _seek(app: BtTuiApp, pilot: Pilot[Any], moment: float) -> None:
    await until(pilot, lambda: bool(app.screen.query(TimeBar)))
    bar = app.screen.query_one(TimeBar)
    bar._run.seek(at(moment))
    bar._show_and_read()
    await until(pilot, lambda: _is_read(app, at(moment)))


@pytest.mark.proves("docs/recordings.md", "Recordings")
async def test_keys_and_clicks_go_through_the_run(path: Path) -> None:
    async with dashboard([path], None) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, JobScreen) and _has_marks(app))
        bar = app.screen.query_one(TimeBar)
        assert "; play  ^← back" in text_of(app).splitlines()[-1]
        await pilot.press("ctrl+left", "ctrl+left", "ctrl+right")
        assert bar._run.at == at(3440)
        marks = [one.at for one in bar._moments]
        error = marks.index(at(2000.500001))
        await pilot.press(*"8" * (len(marks) - error + 1))
        assert bar._run.at == marks[error - 1] == at(2000)
        await sees(pilot, "× RuntimeError: CUDA out of memory", after=("9",))
        await until(pilot, lambda: _step(app) == 388)
        start, cells = app.screen.query_one(TimeBar)._track
        await pilot.click(TimeBar, offset=(start + cells - 1, 0))
        await until(pilot, lambda: _step(app) == 599)
        await pilot.click(TimeBar, offset=(start, 0))
        await until(pilot, lambda: app.screen.query_one(TimeBar)._run.at == at(0) and _step(app) is None)


async def test_dragging_along_the_bar_goes_through_the_run(path: Path) -> None:
    async with dashboard([path], None) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, JobScreen) and _has_marks(app))
        bar = app.screen.query_one(TimeBar)
        for move, part in ((pilot.mouse_down, 4), (pilot.hover, 2)):
            await until(pilot, lambda: text_of(app) != "" and bar._shown_at == bar._run.at)
            start, cells = bar._track
            await move(TimeBar, offset=(start + cells // part, 0))
            assert abs(bar._run.at - at(3500 * (cells // part) / (cells - 1))) < timedelta(seconds=1)
        await pilot.hover(offset=(0, 3))  # above the bar and left of it
        assert bar._run.at == at(0)
        await pilot.mouse_up(offset=(60, 3))
        middle = bar._run.at
        await pilot.hover(TimeBar, offset=(start, 0))
        assert at(0) < bar._run.at == middle
        await until(pilot, lambda: _is_read(app, middle))


@pytest.mark.proves("docs/recordings.md", "Recordings")
async def test_playing_advances_at_the_chosen_speed_and_begins_again_after_the_end(path: Path) -> None:
    elapsed = [0.0]
    async with dashboard([path], at(1060), lambda: elapsed[0]) as (app, pilot):
        await until(pilot, lambda: _step(app) == 200)
        await pilot.press("7", "7", "6", "semicolon")
        elapsed[0] += 50
        await until(pilot, lambda: _step(app) == 220)
        await sees(pilot, "▶ 2×", "; pause")
        elapsed[0] += 5000
        await until(pilot, lambda: _step(app) == 599 and "‖" in text_of(app) and "; play " in text_of(app))
        await pilot.press("semicolon")
        await until(pilot, lambda: _step(app) is None and "▶" in text_of(app))


@pytest.mark.proves("docs/recordings.md", "Recordings")
async def test_several_recordings_are_listed_and_compared(path: Path, tmp_path: Path) -> None:
    other = DOCUMENTS[JOB] | {"id": "job2", "name": "second"}
    second = by_hand(tmp_path / "second.btrun", {**RUN, JOB: other})
    async with dashboard([path, second], None) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, HomeScreen) and "second" in text_of(app))
        assert (
            app.screen.query_one("#connection", Badge)
            .label[0]
            .startswith("recording run and 1 more 2026-03-01")
        )
        await pilot.press("space", "space", "c")
        await until(pilot, lambda: isinstance(app.screen, CompareRunsScreen) and "1.5" in text_of(app))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where recordings are written."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def running() -> Iterator[FakeBaseten]:
    """A server with a running job of 50 lines."""
    begin_s = time.time() - 900
    with FakeBaseten() as baseten:
        baseten.jobs = [job("run1", "RUNNING", created_at=iso(begin_s), updated_at=iso(begin_s))]
        training_log(baseten, "run1", begin_s, [2.0] * 50)
        yield baseten


@asynccontextmanager
async def recording(baseten: FakeBaseten) -> AsyncIterator[tuple[BtTuiApp, Pilot[Any]]]:
    """The job's screen, asked to record it."""
    async with dashboard_on(baseten, size=(120, 36), job_id="run1") as (app, pilot):
        await to_screen(pilot, JobScreen)
        await pilot.press("ctrl+r")
        yield app, pilot


def recorded_lines(path: Path) -> int:
    with Recording(path) as recording:
        return len(list(recording.log.entries()))


async def test_it_is_recorded_to_a_file_alone(folder: Path) -> None:
    path = folder / "run1.btrun"
    path.mkdir()
    with FakeBaseten() as baseten:
        finished_run(baseten, "run1", losses=[2.0] * 50, total=50)
        async with recording(baseten) as (app, pilot):
            await until(pilot, lambda: _was_told(app, "Can't record"))
            assert not _was_told(app, "Recording to")
            path.rmdir()
            for start in (f"Recorded {number} new lines to {path}" for number in (50, 0)):
                await pilot.press("ctrl+r")
                await until(pilot, lambda: _was_told(app, start))  # noqa: B023
    assert recorded_lines(path) == 50


async def test_quitting_writes_the_lines_that_a_recording_holds(
    folder: Path, running: FakeBaseten, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorders = list[Recorder]()

    def made(*given: Any, **options: Any) -> Recorder:
        recorders.append(Recorder(*given, **options))
        return recorders[0]

    monkeypatch.setattr("tui.readers.recorder.Recorder", made)
    async with recording(running) as (app, pilot):
        await until(pilot, lambda: _was_told(app, "Recording to"))
        # the notice may be gone before a busy machine has read the log
        await until(pilot, lambda: recorders[0].line_count == 50)
        app.exit()
    assert recorded_lines(folder / "run1.btrun") == 50


@pytest.mark.proves("docs/recordings.md", "Recordings")
async def test_a_running_job_is_recorded_until_told(folder: Path, running: FakeBaseten) -> None:
    path = folder / "run1.btrun"
    async with recording(running) as (app, pilot):
        await until(pilot, lambda: _was_told(app, "Recording to") and path.exists())
        await sees(pilot, "● rec")
        await pilot.press("ctrl+r")
        await until(pilot, lambda: _was_told(app, "Recording stopped"))
        await until(pilot, lambda: not _is_recording(app) and "● rec" not in text_of(app))
        with Recording(path) as stopped:
            assert not stopped.manifest.ended
        running.jobs[0] |= {"current_status": "TRAINING_JOB_COMPLETED", "updated_at": iso(time.time())}
        await until(pilot, lambda: isinstance(app.screen, JobScreen) and app.screen.job.is_finished)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: _was_told(app, "Recorded "))
    with Recording(path) as complete:
        assert complete.manifest.ended
    assert recorded_lines(path) == 50


async def test_a_feed_that_fails_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("tui.feeds.run.RunFeed._check_health")
    async with dashboard([path], None) as (app, pilot):
        await until(pilot, lambda: _was_told(app, "The run feed stopped"))


def _was_told(app: BtTuiApp, words: str) -> bool:
    return any(words in f"{one.title} {one.message}" for one in app._notifications)


def _is_recording(app: BtTuiApp) -> bool:
    return any(one.group == "record" and not one.is_finished for one in app.workers)


async def _show_tab(app: BtTuiApp, pilot: Pilot[Any], tab: str) -> None:
    app.screen.action_show_tab(tab)
    await pilot.pause()


async def _at_rest(app: BtTuiApp, pilot: Pilot[Any]) -> str:
    before = ""
    while (shown := text_of(app)) != before:
        before = shown
        for _ in range(5):
            await pilot.pause(POLL_EVERY_S)
        await settle(pilot)
    return shown


def _run(app: BtTuiApp) -> RunSnapshot | None:
    return app.screen.snapshot if isinstance(app.screen, JobScreen) else None


def _step(app: BtTuiApp) -> int | None:
    run = _run(app)
    return run.progress.step if run is not None and run.progress is not None else None


def _is_read(app: BtTuiApp, moment: datetime) -> bool:
    run = _run(app)
    if run is None or run.at != moment or run.metrics is None or run.bill is None:
        return False
    return LOG in run.checked_sources and (is_all_checked(run) or run.job.is_finished)


def _has_marks(app: BtTuiApp) -> bool:
    bars = app.screen.query(TimeBar)
    searching = any(one.group == "moments" and not one.is_finished for one in app.workers)
    return bool(bars) and bool(bars.first()._moments) and not searching
