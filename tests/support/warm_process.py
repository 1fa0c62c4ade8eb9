"""Commands in processes of their own that share what they import."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.terminal import ROOT

PROGRAM = """
import json, os, resource, sys, traceback
from pathlib import Path
from tui.__main__ import run

def code_of(command):
    sys.argv[1:] = command
    try:
        run()
    except SystemExit as end:
        return end.code

for command in json.loads(sys.argv[1]):
    code_of([*command, "--help"])  # imports what it needs
for line in sys.stdin:
    task = json.loads(line)
    child = os.fork()
    if child:
        usage = os.wait4(child, 0)[2]
        print("used", usage.ru_utime, flush=True)
        continue
    for limit, most in task["limits"].items():
        resource.setrlimit(getattr(resource, limit), (most, most))
    os.environ.update(task["environ"])
    os.chdir(task["folder"])
    for stream, name in ((1, "output"), (2, "errors")):
        os.dup2(os.open(name, os.O_CREAT | os.O_WRONLY), stream)
    try:
        codes = [code_of(command) for command in task["commands"]]
        Path("codes").write_text(json.dumps(codes))
    except BaseException:
        traceback.print_exc()
    sys.stderr.flush()
    Path("status").write_bytes(Path("/proc/self/status").read_bytes())
    os._exit(0)
"""


@dataclass(frozen=True)
class Ended:
    """How commands ended: an empty list of exit codes if they were killed; memory is the most they had."""

    codes: list[int]
    errors: str
    memory_kib: int
    cpu_s: float


class WarmProcess:
    """A process that has imported commands, and runs them in copies of itself."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(
        self,
        *commands: Sequence[str],
        folder: Path,
        environ: dict[str, str] | None = None,
        limits: dict[str, int] | None = None,
    ) -> Ended:
        """Run the commands one after the other; ``limits`` are those of ``setrlimit``, by name."""
        task: dict[str, Any] = {"commands": commands, "folder": str(folder), "limits": limits or {}}
        home = {"HOME": str(folder), "USER_TRUSSRC_PATH": str(folder / "trussrc")}
        own = {f"XDG_{name}_HOME": str(folder / name) for name in ("CONFIG", "STATE", "CACHE")}
        task["environ"] = home | own | (environ or {})
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps(task), file=self._process.stdin, flush=True)
        used = next(line for line in self._process.stdout if line.startswith("used "))
        codes, status = folder / "codes", folder / "status"
        peak = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
        return Ended(
            codes=json.loads(codes.read_text()) if codes.exists() else [],
            errors=(folder / "errors").read_text(errors="replace"),
            memory_kib=int(peak[1]) if peak else 0,
            cpu_s=float(used.split()[1]),
        )


@contextmanager
def warm_process(*commands: Sequence[str]) -> Iterator[WarmProcess]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, json.dumps(commands)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield WarmProcess(process)
        assert process.stdin is not None
        process.stdin.close()
