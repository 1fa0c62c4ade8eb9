"""``bt-tui open``: which moment of which recordings it opens, and with which settings."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from support.cli import RunCli
from support.fake_baseten import FakeBaseten
from support.fake_runs import finished_run


def test_it_opens_read_only_and_silent_at_the_moment_that_is_named(
    cli: RunCli, baseten: FakeBaseten, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished_run(baseten, "run1", losses=[3.0, 2.0])
    path = str(tmp_path / "run.btrun")
    assert cli("record", "run1", "-o", path).code == 0
    opened: list[timedelta] = []

    def dashboard(_remote: Any, *, job_id: str, settings: Any, recorded: Any) -> None:
        clock, quiet = recorded.clock, settings.configuration.notifications
        assert (job_id, settings.configuration.readonly) == ("run1", True)
        assert (quiet.toast, quiet.bell, quiet.osc, quiet.job_end) == (False, False, "off", False)
        opened.append(clock.now() - clock.begin)

    monkeypatch.setattr("tui.app.run_dashboard", dashboard)
    without_a_server = nullcontext(lambda: None)
    monkeypatch.setattr("tui.commands.app.open.served_in_process", lambda *_recorded: without_a_server)
    for module in ("app.open", "support.terminal"):
        monkeypatch.setattr(f"tui.commands.{module}.need_terminal", lambda: None)
    for options in ((), ("--at", "1h20m"), ("--speed", "0.01")):
        assert cli("open", path, *options, environ={}).code == 0
    last, named, playing = opened
    assert last > named == timedelta(minutes=80)
    assert timedelta(0) < playing < named, "from the beginning"
    for wrong, why in ((("--at", "soon"), "soon"), ((path,), "the same job")):
        refused = cli("open", path, *wrong, environ={})
        assert (refused.code, why in refused.err) == (2, True)
