"""No line makes an expression slow: each takes linear time, and none meets more than a piece of a line."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from hostile_answers import HostileServer, Values

from support.dashboard import text_of
from support.fake_baseten import FakeBaseten, line
from support.fake_runs import finished_run, metrics_of, serve_metrics
from support.remotes import remote_of
from support.terminal import ROOT
from support.waiting import to_screen, until
from tui.app import BtTuiApp
from tui.screens.deploy.screen import DeployScreen
from tui.screens.home.screen import HomeScreen
from tui.screens.job.screen import JobScreen
from tui.screens.submit import SubmitScreen
from tui.screens.why import WhyScreen
from tui.widgets.text_panel import TextPanel

LONG_CONFIG = """
from truss_train import definitions

training_project = definitions.TrainingProject(
    name="long",
    job=definitions.TrainingJob(
        image=definitions.Image(base_image="python"),
        compute=definitions.Compute(cpu_count=1),
        runtime=definitions.Runtime(start_commands=["python -c '" + "print(1)\\n" * 100_000 + "'"]),
    ),
)
"""


def last_words(*command: str) -> str:
    """Run a module of the tests in a process that the kernel ends if it is slow; return its last line."""
    environ = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests")))}
    done = subprocess.run(
        [sys.executable, *command], check=False, capture_output=True, text=True, env=environ
    )
    return (done.stdout.splitlines() or [done.stderr])[-1]


def test_no_expression_over_log_text_takes_more_than_linear_time() -> None:
    packages = ("tui.analysis", "tui.text.sanitize", "tui.widgets.log_view", "api_client.recordings.scrub")
    assert last_words("-m", "support.expressions", *packages) == "all are linear"


def test_no_entrance_of_the_analysis_is_slow_on_a_long_line() -> None:
    assert last_words(str(Path(__file__).with_name("long_lines.py"))) == "all are fast"


async def test_dashboard_opens_every_page_if_all_texts_are_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with HostileServer(Values(text="word " * 20_000, id="x")) as server:
        app = BtTuiApp(remote_of(server))
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "3 jobs" in text_of(app))
            await to_screen(pilot, JobScreen, "enter")
            for key, word in (("2", "nodes"), ("3", "layout"), ("4", "1 checkpoint"), ("5", "livex")):
                await pilot.press(key)
                await until(pilot, partial(_shows, app, word))
            await to_screen(pilot, HomeScreen, "escape")
            await to_screen(pilot, DeployScreen, "d")
            await to_screen(pilot, HomeScreen, "escape")


def _shows(app: BtTuiApp, word: str) -> bool:
    return word in text_of(app)


async def test_new_job_shows_a_config_with_long_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.py").write_text(LONG_CONFIG, encoding="utf-8")
    with FakeBaseten() as server:
        app = BtTuiApp(remote_of(server))
        async with app.run_test(size=(80, 24)) as pilot:
            await to_screen(pilot, SubmitScreen, "n")
            await until(pilot, lambda: "config.py" in text_of(app))
            await pilot.press("enter")
            await until(pilot, lambda: "Overrides" in text_of(app))
            job = app.screen.query_one("#job", TextPanel).focus()
            await until(pilot, lambda: job.has_focus and job.allow_vertical_scroll)
            await pilot.press("G")
            await until(pilot, lambda: "100_000" in text_of(app))  # the config's own words
            await to_screen(pilot, HomeScreen, "escape", "escape")


async def test_why_opens_in_the_dashboard_on_a_line_of_a_megabyte() -> None:
    with FakeBaseten() as server:
        finished_run(server, "broken", losses=[1.0, 0.9], status="FAILED")
        serve_metrics(server, metrics_of())
        newest_ms = int(server.logs["broken"][-1]["timestamp"]) // 10**6
        server.logs["broken"].append(line("Killed " + "store" * 200_000, at_ms=newest_ms + 1000))
        app = BtTuiApp(remote_of(server), job_id="broken")
        async with app.run_test(size=(120, 30)) as pilot:
            await until(pilot, lambda: isinstance(app.screen, JobScreen) and "Killed store" in text_of(app))
            await to_screen(pilot, WhyScreen, "exclamation_mark")
            await until(pilot, lambda: "The first error" in text_of(app))
            await to_screen(pilot, JobScreen, "escape")
