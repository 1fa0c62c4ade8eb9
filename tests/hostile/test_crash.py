"""The dashboard crashes: the terminal is as before, and the report says where but holds no data."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hostile_answers import HostileServer, hidden_in, obeyed
from raw_terminal import DrawnTerminal

from support.terminal import DASHBOARD_ENDS, ROOT

MOMENTS = (
    "ready",
    "before the first picture",
    "worker",
    "worker thread",
    "thread",
    "task",
    "callback",
    "keyboard",
    "never closed",
    "closing",
)


@pytest.mark.parametrize("moment", MOMENTS)
def test_crash_restores_the_terminal_and_reports_places_only(moment: str, tmp_path: Path) -> None:
    folders = os.pathsep.join(map(str, (ROOT / "tests", ROOT / "tests/hostile")))
    own = {"TERM": "xterm-256color", "XDG_STATE_HOME": str(tmp_path), "PYTHONPATH": folders}
    crashing = (str(ROOT / "tests/hostile/crashing.py"), moment)
    with HostileServer() as server:
        environ = {**os.environ, **server.environ(), **own}
        with DrawnTerminal(environ=environ, program=crashing) as terminal:
            code = terminal.end()
    assert code == 1
    assert obeyed(terminal.text) == []
    screen, _, words = terminal.text.rpartition(DASHBOARD_ENDS.decode())
    assert all(screen.rfind(f"{mode}l") > screen.rfind(f"{mode}h") for mode in ("?1000", "?1003", "?2004"))
    notice = words[words.index("bt-tui") :].split("\r\n")
    assert "ValueError" in notice[0] and notice[3:] == [""] and "?25h" in words
    path = Path(notice[2])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    report = path.read_text()
    assert "crashing.py" in report and "RuntimeError" in report and "KeyError" in report
    for text in (words, report):
        assert server.key not in text and "FORN" not in text
    assert hidden_in(report) == []
