"""No line makes an expression slow: each takes linear time, and none meets more than a piece of a line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.dashboard import text_of
from support.fake_baseten import FakeBaseten, line
from support.fake_runs import finished_run, metrics_of, serve_metrics
from support.remotes import remote_of
from support.terminal import ROOT
from support.waiting import to_screen, until
from tui.app import BtTuiApp
from tui.screens.job.screen import JobScreen
from tui.screens.why import WhyScreen


def last_words(*command: str) -> str:
    """Run a module of the tests in a process that the kernel ends if it is slow; return its last line."""
    environ = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests")))}
    done = subprocess.run(
        [sys.executable, *command], check=False, capture_output=True, text=True, env=environ
    )
    return (done.stdout.splitlines() or [done.stderr])[-1]


@pytest.mark.parametrize(
    "arguments",
    [
        f"{2**18} tui.analysis.progress",
        f"{2**18} tui.analysis tui.text.sanitize tui.widgets.log_view -tui.analysis.progress",
        f"{2**21} api_client.recordings.scrub",
    ],
)
def test_no_expression_over_log_text_takes_more_than_linear_time(arguments: str) -> None:
    assert last_words("-m", "support.expressions", *arguments.split()) == "all are linear"


def test_no_entrance_of_the_analysis_is_slow_on_a_megabyte() -> None:
    assert last_words(str(Path(__file__).with_name("long_lines.py"))) == "all are fast"


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
