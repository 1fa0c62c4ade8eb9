"""Commands one after the other in a process of its own, under limits, and what they needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.warm_python import WarmPython

PROGRAM = """
import json, resource, sys
from pathlib import Path
from tui.__main__ import run

def code_of(command):
    sys.argv[1:] = command
    try:
        run()
    except SystemExit as end:
        return end.code

commands, limits = map(json.loads, sys.argv[1:])
for limit, most in limits.items():
    resource.setrlimit(getattr(resource, limit), (most, most))
codes = [code_of(command) for command in commands]
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
usage = [int(status["VmHWM"].split()[0]), resource.getrusage(resource.RUSAGE_SELF).ru_utime]
Path("needed").write_text(json.dumps([codes, *usage]))
sys.exit()
"""


@dataclass(frozen=True)
class Ended:
    """How commands ended: an empty list of exit codes if they were killed; memory is the most they had."""

    codes: list[int]
    errors: str
    memory_kib: int
    cpu_s: float


def run_measured(
    *commands: Sequence[str],
    folder: Path,
    limits: Mapping[str, int],
    environ: Mapping[str, str] | None = None,
) -> Ended:
    """Run the commands in the folder; ``limits`` are those of ``setrlimit``, by name."""
    own = {name: str(folder) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
    command = [sys.executable, "-c", PROGRAM, json.dumps(commands), json.dumps(limits)]
    with WarmPython(
        command,
        cwd=folder,
        env=os.environ | own | (environ or {}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        errors = process.communicate()[1].decode(errors="replace")
    needed = folder / "needed"
    codes, memory_kib, cpu_s = json.loads(needed.read_text()) if needed.exists() else ([], 0, 0.0)
    return Ended(codes, errors, memory_kib, cpu_s)
