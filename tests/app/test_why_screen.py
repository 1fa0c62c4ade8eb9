"""Explaining what is wrong with jobs of the demo world, on the screen and by the command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import pytest

from api_client.emulator.processes import EmulatorChild
from api_client.models import TrainingJob
from support.dashboard import (
    Dashboard,
    Heard,
    StubFeed,
    job_view,
    opened,
    pressed,
    resized,
    screen_view,
    settle,
    text_of,
)
from support.remotes import remote_of
from support.sick_runs import sick_run
from support.waiting import to_screen, until
from support.worlds import JOBS, job, run
from tui.analysis.fleet.batches import Verb
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.why.explain import explain
from tui.analysis.why.explanation import Clue, Section
from tui.app import BtTuiApp
from tui.cli import main
from tui.feeds.why import WhyView
from tui.readers.why import Evidence
from tui.screens.base import OpenPage
from tui.screens.home.screen import HomeScreen
from tui.screens.job.header import RunHeader
from tui.screens.job.screen import JobScreen
from tui.screens.messages import BatchRequested, ResumeRequested
from tui.screens.why import ShowLog, WhyScreen
from tui.widgets.charts.line_chart import LineChart
from tui.widgets.row_table import RowTable
from tui.widgets.status_line import StatusLine
from tui.widgets.text_panel import TextPanel


@pytest.fixture(scope="module")
def demo() -> Iterator[EmulatorChild]:
    with EmulatorChild() as emulator:
        yield emulator


@pytest.mark.proves("README.md", "Is it healthy, how fast is it, which node is slow?")
async def test_from_what_needs_attention_to_why_a_node_is_slow(demo: EmulatorChild) -> None:
    app = BtTuiApp(remote_of(demo))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "llama-70b" in text_of(app))
        await until(pilot, lambda: "node-2 slow" in text_of(app) and "! attention" in text_of(app))
        await pilot.click(StatusLine, offset=(text_of(app).splitlines()[0].index("need"), 0))
        home = app.screen
        assert isinstance(home, HomeScreen)
        jobs = home.query_one("#jobs", RowTable)
        assert jobs.cursor_row.alarmed
        while jobs.cursor_row.name != "llama-70b-longctx-v1":
            await pilot.press("exclamation_mark")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, JobScreen) and "! why" in text_of(app))
        await to_screen(pilot, WhyScreen, "exclamation_mark")
        await until(pilot, lambda: "/scratch reads at" in text_of(app))
        shown = text_of(app)
        assert "Only node-2 logs this" in shown
        await until(pilot, lambda: "━ others " in text_of(app))
        header = shown.splitlines()[0]
        while text_of(app).splitlines()[0] == header:  # "as of" the newest state of the run
            await pilot.press("r")
        await pilot.press("Y")
        await until(pilot, lambda: app.clipboard.startswith("### `llama-70b-longctx-v1`: `node-2 lags"))
        await to_screen(pilot, JobScreen, "enter")
        await to_screen(pilot, WhyScreen, "escape")  # from the log that it opened back to it
        assert "Only node-2 logs this" in text_of(app)
        await to_screen(pilot, JobScreen, "escape")
        health = app.screen.query_one(RunHeader).query_one("#health", StatusLine)
        await pilot.click(health, offset=(3, 0))
        await until(pilot, lambda: isinstance(app.screen, WhyScreen))


def why_screen(shown: RunSnapshot, show_log: ShowLog = print, **view: Any) -> Dashboard:
    explained = {"explanation": explain(shown, next(iter(shown.findings), None), ())}
    feed: Any = partial(StubFeed, WhyView((None,), **(explained | view)))
    return screen_view(lambda: WhyScreen(lambda: shown, feed, show_log))


@pytest.mark.parametrize("theme", ["bt-dark", "ansi-dark"])
async def test_nothing_of_the_page_below_shines_through(theme: str) -> None:
    app = job_view(sick_run("straggler"))
    async with app.run_test(size=(80, 24)) as pilot:
        app.theme = theme
        await app.push_screen(WhyScreen(partial(run, JOBS[0]), partial(StubFeed, WhyView(())), print))
        await settle(pilot)
        rows = [row for row in text_of(app).splitlines() if row]
        assert len(rows) == 4, rows  # the header, what can be done, what is read, the footer


@pytest.mark.parametrize(
    ("shown", "has_job_ended"),
    [(JOBS[0], False), (job("done", "COMPLETED", hours_ago=5, took_hours=1), True)],
)
async def test_only_a_job_that_ended_is_said_to_have_ended(shown: TrainingJob, has_job_ended: bool) -> None:
    # before the server's time is known, too
    async with opened(why_screen(run(shown), explanation=None)) as pilot:
        assert "Reading the evidence" in text_of(pilot.app)
        assert ("ended 2" in text_of(pilot.app)) is has_job_ended


@pytest.mark.proves("docs/health.md", "Health and cost")
async def test_keys_lead_from_why_to_the_log_and_to_stopping_the_job() -> None:
    shown, log_times, requests = sick_run("hang"), list[datetime](), Heard(BatchRequested, ResumeRequested)
    async with opened(why_screen(shown, lambda at, _: log_times.append(at)), message_hook=requests) as pilot:
        text = text_of(pilot.app)
        assert "→ stop it now: what is not saved is lost" in text
        assert "≈$65" in text and "s stop" in text and "resume" not in text
        await pressed(pilot, "K", "s", "escape")
        assert [(request.verb, request.jobs) for request in requests.messages] == [(Verb.STOP, [shown.job])]
        await pressed(pilot, "enter")
    assert log_times == [shown.findings[0].since]


async def test_keys_of_no_use_on_why_say_why_and_are_not_offered() -> None:
    async with opened(why_screen(sick_run("hang"))) as pilot:
        await pressed(pilot, "n", "K")
        said = [notice.message for notice in pilot.app._notifications]
        assert said == ["There is no other problem to explain.", "The job is still running."]
        assert "next problem" not in text_of(pilot.app).splitlines()[-1]


async def test_evidence_explains_the_newest_state_of_its_finding() -> None:
    shown = sick_run("straggler")
    found = shown.findings[0]
    explained = await Evidence(replace(found, text="slow", since=None), ()).explain(shown)
    assert found.since is not None and explained.finding == found
    assert "lost so far" in " ".join(explained.facts)


async def test_only_the_finding_has_its_color_not_the_warnings_that_prove_it() -> None:
    clue = Clue("WARNING reads are slow", 0, "node-2", is_warning=True)
    shown = sick_run("straggler")
    explained = replace(explain(shown, shown.findings[0], ()), sections=(Section("Evidence", (clue,)),))
    async with opened(why_screen(shown, explanation=explained)) as pilot:
        finding, *others = pilot.app.screen.query_one(TextPanel).lines
        assert ("WARNING reads are slow", "plain") in others[-1]
        assert "caution" in {tone for _, tone in finding}
        assert not {"warn", "caution", "bad"} & {tone for line in others for _, tone in line}


async def test_an_ended_job_with_a_checkpoint_is_resumed_by_a_copied_command() -> None:
    shown = run(JOBS[6], findings=())
    requests = Heard(BatchRequested, ResumeRequested)
    async with opened(why_screen(shown), message_hook=requests) as pilot:
        assert "K resume" in await pressed(pilot, "s", "K")
    assert [request.job for request in requests.messages] == [JOBS[6]]


@pytest.mark.proves("docs/commands.md", "`why`")
def test_the_command_names_the_first_error_of_a_failed_job(
    demo: EmulatorChild, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in demo.remote_environ().items():
        monkeypatch.setenv(name, value)
    assert main(["why", "2nzck1r2", "-o", "json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["explanations"]
    assert told["answer"].startswith("node-0: torch.OutOfMemoryError: CUDA out of memory")
    assert "exit code 1" in told["facts"]
    assert [section["title"] for section in told["sections"]] == ["The first error", "Errors that followed"]
    assert main(["why", "sk017d5z"]) == 0
    assert "nothing to explain: the job is completed" in capsys.readouterr().err


async def test_a_low_screen_shows_evidence_instead_of_charts() -> None:
    async with opened(why_screen(sick_run("hang")), (80, 24)) as pilot:
        assert "┤" in text_of(pilot.app)
        assert "┤" not in await resized(pilot, 60, 20) and not pilot.app.screen.show_vertical_scrollbar


async def test_charts_reach_to_now_though_their_samples_do_not() -> None:
    shown = sick_run("silent")
    explained = explain(shown, shown.findings[0], ())
    of_node = replace(explained.figures[0], series=explained.figures[0].series[1:])
    view: dict[str, Any] = {"explanation": replace(explained, figures=(of_node,)), "at": shown.at}
    async with opened(why_screen(shown, **view)) as pilot:
        end = pilot.app.screen.query_one(LineChart).spec.end
        assert end == shown.at.timestamp() > of_node.series[0].times[-1]


@pytest.mark.parametrize("is_solved", [False, True])
async def test_escape_leads_from_the_log_to_why_last_unless_the_problem_is_gone(*, is_solved: bool) -> None:
    run = sick_run("straggler")
    heard = Heard(OpenPage)
    async with opened(job_view(run, lines=()), (120, 40), message_hook=heard) as pilot:
        screen = pilot.app.screen
        screen._show_log_from(run.findings[0].since, WhyView(tuple(run.findings)))
        screen.node = "node-2"
        await settle(pilot)
        if is_solved:
            screen.receive(replace(run, findings=()))
        await pressed(pilot, "escape")
        assert screen.node is None and not heard.messages
        await pressed(pilot, "escape")
        assert bool(heard.messages) is not is_solved
