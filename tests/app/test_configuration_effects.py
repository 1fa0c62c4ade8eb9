"""Every setting has an effect that a person sees; notifications have tests of their own."""

import asyncio
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from alert_places import settings
from textual.pilot import Pilot

from api_client.clock import SystemClock
from api_client.models.logs import LogLine
from support.dashboard import Dashboard, home, opened, pressed, settle, text_of
from support.fake_baseten import Answer, FakeBaseten, job as baseten_job
from support.fake_runs import metrics_of, node, serve_metrics
from support.waiting import dashboard_on, until
from support.worlds import ONE_O_CLOCK, StubFleetFeed, StubRunFeed, fleet, job, run
from tui.screens.base import OpenPage
from tui.screens.help import HelpScreen
from tui.screens.home.screen import HomeScreen
from tui.screens.job.log_pane import LogPane, log_options
from tui.screens.job.page import JobPage
from tui.screens.job.screen import JobScreen, first_tab
from tui.settings.loading import load_or_defaults
from tui.settings.model import Loaded
from tui.settings.remembered import JobState, Memory
from tui.widgets.row_table import RowTable

SIZE = (100, 24)


class Opened(Dashboard):
    """Home on a stub, and the job screens that the app opens on stubs too; their feeds' settings are kept."""

    def __init__(self, given: Loaded, memory: Memory | None = None) -> None:
        super().__init__(self._home, settings=given, memory=memory)
        self.use_session(SimpleNamespace(remote_name="acme"))  # type: ignore[arg-type]  # passed on to feeds

    def _home(self) -> HomeScreen:
        return HomeScreen(lambda publish: StubFleetFeed(fleet(), publish), "acme", self.memory)  # type: ignore[arg-type,return-value]

    async def on_unmount(self) -> None:
        self.session = None


@pytest.fixture
def feeds(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []

    def make(
        _session: object, job: Any, *, publish: Any, on_log: Any, on_gone: Any, span: Any, **given: Any
    ) -> Any:
        made.append({"span": span, **given})
        heard = {"publish": publish, "on_log": on_log, "on_gone": on_gone}
        return StubRunFeed(run(job), job, lines=telling_lines(), span=span, **heard)

    monkeypatch.setattr("tui.feeds.run.RunFeed", make)
    return made


async def open_first_job(pilot: Pilot[Any]) -> JobScreen:
    await settle(pilot)
    await pressed(pilot, "enter")
    return pilot.app.screen  # type: ignore[return-value]


@pytest.mark.setting("theme.name", "theme.no_color")
@pytest.mark.parametrize(("theme", "used"), [({"name": "nord"}, "nord"), ({"no_color": True}, "ansi-dark")])
def test_the_theme(theme: dict[str, Any], used: str) -> None:
    assert home(settings=settings(theme=theme)).theme == used


@pytest.mark.setting("keys")
@pytest.mark.proves("docs/configuration.md", "Keys")
async def test_keys_move_in_footer_help_sentences_and_under_the_fingers() -> None:
    own = {"sort": "f6", "filter": "f7,Z", "mark": "f5", "compare": "f4"}
    app = home(settings=settings(keys={"home": own, "app.help": "f1", "screen.back": "f12"}))
    async with opened(app, SIZE) as pilot:
        table = app.screen.query_one("#jobs", RowTable)
        before = [row.name for row in table.rows]
        await pilot.press("S")
        assert [row.name for row in table.rows] == before
        while table.sort_mark != ("name", False):
            await pressed(pilot, "f6")
        await pressed(pilot, "f5")
        assert [row.name for row in table.rows] == sorted(before)
        header, *_, footer = text_of(app).splitlines()
        assert "f4 compares" in header
        assert "f6 sort" in footer
        assert "f7 filter" in footer
        await pressed(pilot, "f5", "Z", *"no such job", "enter")
        header, *below = text_of(app).splitlines()
        assert "f7 no such job" in header
        assert any("f12 clears the filter" in line for line in below)
        await pressed(pilot, "f12", "f1")
        assert isinstance(app.screen, HelpScreen)
        assert "f7 Z" in text_of(app)


def telling_lines() -> tuple[LogLine, ...]:
    """Lines that look different in each way of showing a log."""
    texts = (
        " 10%|#         | 10/100 [00:10<01:30]",
        " 20%|##        | 20/100 [00:20<01:20]",
        "Traceback (most recent call last):",
        '  File "loader.py", line 7, in read',
        "ValueError: no data",
        "a long line " + 130 * "-" + " its end",
    )
    start_ns = int((ONE_O_CLOCK - timedelta(minutes=5)).timestamp() * 1e9)
    grave = [LogLine(start_ns + n, text, "node-0", "WARNING") for n, text in enumerate(texts)]
    return (*grave, LogLine(start_ns + len(texts), "small talk", "node-0", "DEBUG"))


LOG = {
    "time": "elapsed",
    "wrap": True,
    "min_level": "WARNING",
    "max_lines_in_memory": 5_000,
    "collapse_progress": False,
    "fold_tracebacks": False,
}


@pytest.mark.setting(
    "logs.time",
    "logs.wrap",
    "logs.min_level",
    "logs.max_lines_in_memory",
    "logs.collapse_progress",
    "logs.fold_tracebacks",
)
async def test_a_job_has_its_thresholds_prices_patterns_log_and_keys(feeds: list[dict[str, Any]]) -> None:
    app = Opened(
        settings(
            health={"stall_after_s": 99.0, "off": ["straggler"]},
            prices={"H100:8": 0.5},
            patterns=[{"name": "mine", "regex": "it (?P<step>[0-9]+)"}],
            logs=LOG,
            keys={"logs.next_match": "f3", "job.show_metrics": "f4"},
        )
    )
    async with app.run_test(size=SIZE) as pilot:
        screen = await open_first_job(pilot)
        (made,) = feeds
        assert (made["settings"].rules.stall_after_s, made["settings"].rules.off) == (99.0, {"straggler"})
        assert made["settings"].prices == {"H100:8": 0.5}
        assert made["settings"].patterns[0].read("it 12").step == 12

        text = await pressed(pilot, "2")
        assert screen.query_one(LogPane).options.max_lines == 5_000
        # The job was made 3 hours before one o'clock, the lines are of 12:55.
        for words in ("2:55:00 n0", "its end", "10/100", "20/100", "loader.py"):
            assert words in text
        for words in ("12:55:00 n0", "small talk"):
            assert words not in text

        await pressed(pilot, "1", "3")
        assert screen.tab == "live"
        assert "f4 Metrics" in await pressed(pilot, "f4", "n")
        assert screen.tab == "metrics"
        assert screen.metrics.nodes_large  # textual's own keymap would have taken this n away too


class PatientClock(SystemClock):
    """Real time, but waits of an hour's order never end; which there were is kept."""

    waits_s: ClassVar[set[float]] = set()

    async def sleep(self, seconds: float) -> None:
        if seconds >= 1000:
            self.waits_s.add(seconds)
            await asyncio.Event().wait()
        await super().sleep(seconds)


@pytest.mark.setting("refresh.fleet_s", "refresh.status_s", "refresh.metrics_s", "refresh.checkpoints_s")
async def test_the_rates_are_those_of_the_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.readers.session.SystemClock", PatientClock)
    PatientClock.waits_s.clear()
    rates = {"fleet_s": 1111.0, "status_s": 1222.0, "metrics_s": 1333.0, "checkpoints_s": 1444.0}
    with FakeBaseten() as server:
        server.jobs = [baseten_job("job1", "RUNNING")]
        serve_metrics(server, metrics_of(node("node-0", [0.9] * 5, end_s=time.time())))
        of_job = "/v1/training_projects/[^/]+/jobs/job1/checkpoints"
        server.on("GET", of_job, Answer({"training_job": server.jobs[0], "checkpoints": []}))
        async with dashboard_on(server, size=SIZE, settings=settings(refresh=rates)) as (_, pilot):
            await until(pilot, lambda: PatientClock.waits_s == {rates["fleet_s"]})
            await pilot.press("enter")
            await until(pilot, lambda: PatientClock.waits_s >= set(rates.values()))


@pytest.mark.proves("docs/configuration.md", "Configuration")
async def test_a_broken_file_is_told_and_the_dashboard_starts_with_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[theme]\nname = 'nord'\ncolor = 'red'\n")
    app = home(settings=load_or_defaults({"BT_TUI_CONFIG": str(file)}))
    async with opened(app, (140, 24), notifications=True):
        assert app.theme == "bt-dark"
        notice = next(iter(app._notifications))
        assert f"{file}:3: theme.color: no such setting" in notice.message
        assert "bt-tui config edit" in notice.message


async def test_home_and_a_job_are_as_they_were_left(tmp_path: Path, feeds: list[dict[str, Any]]) -> None:
    app = Opened(settings(), Memory(tmp_path / "layout.json"))
    async with opened(app, SIZE) as pilot:
        await pressed(pilot, "S", "V", "p", "slash", *"llama", "enter", "g")
        left = [row.name for row in app.screen.query_one("#jobs", RowTable).rows]
        flipped = app.screen.has_class("-projects-flipped")
        screen = await open_first_job(pilot)
        await pressed(pilot, "2", "w", "t", "l", "3", "plus", "u", "2")
        screen.post_message(JobScreen.Published(screen.snapshot))
        await settle(pilot)
    given = Loaded(settings(logs={"wrap": False}).configuration, {"logs.wrap": "config.toml:2"})
    again = Opened(given, Memory(tmp_path / "layout.json"))
    async with opened(again, SIZE) as pilot:
        assert [row.name for row in again.screen.query_one("#jobs", RowTable).rows] == left
        assert again.screen.has_class("-projects-flipped") == flipped
        assert "llama" in text_of(again).splitlines()[0]
        screen = await open_first_job(pilot)
        assert screen.tab == "logs"
        assert screen.metrics.matrix.memory
        assert screen.metrics.view.window.span is None  # a zoom belongs to the job
        assert feeds[-1]["span"] is None
        options = screen.query_one(LogPane).options
        assert options.time == "utc"
        assert not options.wrap  # the file says so
        assert options.min_level is None  # lines that are silently missing would mislead


async def test_job_below_another_one_does_not_replace_what_is_remembered(feeds: list[dict[str, Any]]) -> None:
    memory = Memory()
    app = Opened(settings(), memory)
    async with opened(app, SIZE) as pilot:
        below = await open_first_job(pilot)
        app.post_message(OpenPage(JobPage(job("another"))))
        await settle(pilot)
        assert memory.state.job.job_id == "another"
        below.post_message(JobScreen.Published(below.snapshot))
        await settle(pilot)
        assert memory.state.job.job_id == "another"


@pytest.mark.parametrize(
    ("status", "tab"),
    [
        *(("RUNNING", "live"), ("PENDING", "live"), ("COMPLETED", "live")),
        *(("FAILED", "logs"), ("DEPLOY_FAILED", "details"), ("HIBERNATING", "live")),
    ],
)
def test_another_job_opens_on_what_its_status_makes_a_person_ask(status: str, tab: str) -> None:
    left = JobState(tab="checkpoints", job_id="last")
    assert first_tab(left, job("another", status)) == tab
    assert first_tab(left, job("last", status)) == "checkpoints"


def test_a_memory_that_makes_no_sense_changes_nothing() -> None:
    nonsense = JobState(tab="nowhere", job_id="last", time="never")
    assert first_tab(nonsense, job("last")) == "live"
    assert log_options(Loaded(), nonsense) == log_options(Loaded(), JobState())
