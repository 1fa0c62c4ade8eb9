"""Each command in a new interpreter, which has imported nothing but what the command itself does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from test_streams_of_all_commands import OUTCOMES
from whole_platform import furnished

from support.every_command import CHANGING, READING
from support.faulty import FaultyServer
from support.warm_python import ROOT

LINES = READING | CHANGING


@pytest.mark.usefixtures("code")
@pytest.mark.parametrize("words", LINES)
def test_command_works_in_a_new_interpreter(
    words: str, faulty: FaultyServer, clean_environ: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "platform").mkdir()
    with furnished(faulty, tmp_path / "platform") as platform:
        environ = clean_environ | platform | {"PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "tui", *words.split(), *LINES[words]]
        done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode in OUTCOMES.get(words, (0,)), done.stderr
    assert "Traceback" not in done.stderr
