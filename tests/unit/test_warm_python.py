"""A copy of the warm process starts, runs and ends as a new interpreter does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.warm_python import WarmPython

PROGRAMS = {
    "exit code": "import sys; sys.exit(3)",
    "exit words": "import sys; sys.exit('no')",
    "end": "print('words')",
    "killed": "import os; os.kill(os.getpid(), 9)",
    "terminated": "import signal; signal.raise_signal(15)",
    "interrupted": "import signal\nsignal.signal(2, signal.SIG_DFL)\nsignal.raise_signal(2)",
    "thread and exit handler": (
        "import atexit, sys, threading\natexit.register(print, 'at exit')\n"
        "threading.Timer(0.01, print, ['from a thread']).start()\nsys.exit()"
    ),
    "place": "import os, sys; print(sys.argv, sys.path[:2], __name__, os.getcwd(), os.environ['TZ'])",
    "streams": (
        "import sys\nfor name in ('stdin', 'stdout', 'stderr'):\n"
        "  it = getattr(sys, name); print(it.name, it.encoding, it.errors, it.line_buffering, it.isatty())"
    ),
    "signals": "from signal import *; print([*map(getsignal, (1, 2, 13, 15, 17))], pthread_sigmask(0, ()))",
    "temporary folder": "import tempfile; print(tempfile.gettempdir())",
    "open files": "import os; print(os.listdir('/proc/self/fd'))",
    "session": "import os, threading; print(os.getsid(0) == os.getpid(), threading.active_count())",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_copy_does_as_an_interpreter(program: str, tmp_path: Path) -> None:
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(tmp_path),
        "TZ": "Asia/Tokyo",
        "PYTHONIOENCODING": "ascii",
    }
    command = [sys.executable, "-c", program, "an argument"]
    ends = []
    for start in (subprocess.Popen, WarmPython):
        with start(
            command, cwd=tmp_path, env=environ, stdin=-3, stdout=-1, stderr=-1, start_new_session=True
        ) as process:
            ends.append((process.communicate(), process.returncode))
    assert ends[0] == ends[1]
