"""A small answer never costs much memory or time, whatever it unpacks to."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from api_client.routes import CHECKPOINT_FILES, JOB_METRICS, PROJECT_CACHE, SEARCH_JOBS, Route
from support.fake_baseten import Answer, FakeBaseten
from support.terminal import ROOT

UNPACKED_BYTES = 14_000_000
MAX_MEMORY_KIB = 400 * 1024
MAX_CPU_S = 30
"""Only what does not end takes this long, however slow the machine is."""

PROGRAM = """
import json, os, resource, sys, traceback
from pathlib import Path
from tui.cli import main

limit_s = int(sys.argv[1])
for command in json.loads(sys.argv[2]):
    main([*command, "--help"])  # imports what it needs
for line in sys.stdin:
    command, environ, folder = json.loads(line)
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s))
        os.environ.update(environ)
        os.chdir(folder)
        for stream, name in ((1, "output"), (2, "errors")):
            os.dup2(os.open(name, os.O_CREAT | os.O_WRONLY), stream)
        try:
            main(command)
        except BaseException:
            traceback.print_exc()
        sys.stderr.flush()
        Path("status").write_bytes(Path("/proc/self/status").read_bytes())
        os._exit(0)
    _child, _status, usage = os.wait4(child, 0)
    print("used", usage.ru_utime, flush=True)
"""
OF_JOB = ("--job-id", "job1")


class Case(NamedTuple):
    """A command, and the answer of one route: as many ``item`` as fit between ``before`` and ``after``."""

    command: tuple[str, ...]
    route: Route[Any]
    before: str
    item: str
    after: str
    accepted: int
    """The most items that are accepted; more are an error."""

    def body(self, count: int) -> bytes:
        return gzip.compress((self.before + ",".join([self.item] * count) + self.after).encode())

    @property
    def small_count(self) -> int:
        return UNPACKED_BYTES // (len(self.item) + 1)


FILES, CACHE = ("checkpoints", "files", *OF_JOB), ("cache", "summarize", "llama-sft")
METRICS, HEALTH = ("metrics", "job1"), ("health", "job1")
CASES = (
    Case(FILES, CHECKPOINT_FILES, '{"presigned_urls":[', "{}", "]}", 20_000),
    Case(FILES, CHECKPOINT_FILES, '{"presigned_urls":[', "5", "]}", 20_000),
    Case(FILES, CHECKPOINT_FILES, '{"presigned_urls":[],"x":[', "[]", "]}", 199_000),
    Case(("jobs",), SEARCH_JOBS, '{"training_jobs":[', '{"id":"","current_status":""}', "]}", 20_000),
    Case(CACHE, PROJECT_CACHE, '{"file_summaries":[', '{"path":""}', "]}", 150_000),
    Case(METRICS, JOB_METRICS, '{"cpu_usage":[', '{"timestamp":1}', "]}", 299_000),
    Case(METRICS, JOB_METRICS, '{"gpu_utilization":{', '"":0', "}}", 899_000),
    Case(HEALTH, JOB_METRICS, '{"per_node_metrics":[', '{"node_id":"","metrics":{}}', "]}", 1_000),
)  # fmt: skip


@pytest.fixture(scope="module")
def starter() -> Iterator[subprocess.Popen[str]]:
    """A process that has imported the commands, and runs each in a copy of itself."""
    commands = json.dumps([case.command for case in CASES])
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(MAX_CPU_S), commands],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def run(
    starter: subprocess.Popen[str], server: FakeBaseten, command: tuple[str, ...], folder: Path
) -> tuple[str, int, float]:
    """Run a command in a process of its own; return its errors, memory in KiB and CPU time."""
    assert starter.stdin is not None and starter.stdout is not None
    own = {"HOME": str(folder), "USER_TRUSSRC_PATH": str(folder / "trussrc")}
    for name in ("CONFIG", "STATE", "CACHE"):
        own[f"XDG_{name}_HOME"] = str(folder / name)
    print(json.dumps([command, server.environ() | own, str(folder)]), file=starter.stdin, flush=True)
    used = next(line for line in starter.stdout if line.startswith("used "))
    peak = re.search(r"VmHWM:\s+(\d+) kB", (folder / "status").read_text())
    assert peak is not None
    return (folder / "errors").read_text(), int(peak[1]), float(used.split()[1])


@pytest.mark.parametrize("is_accepted", [True, False], ids=["accepted", "refused"])
@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case.command[0]} {case.before[:18]}{case.item[:4]}"
)
def test_small_answer_costs_little_memory_and_time(
    starter: subprocess.Popen[str], case: Case, is_accepted: bool, tmp_path: Path
) -> None:
    count = case.accepted if is_accepted else case.small_count
    with FakeBaseten() as server:
        answer = Answer(case.body(count), headers={"Content-Encoding": "gzip"})
        server.on(case.route.method, case.route.pattern, answer)
        errors, memory_kib, cpu_s = run(starter, server, case.command, tmp_path)
    assert memory_kib < MAX_MEMORY_KIB
    assert cpu_s < MAX_CPU_S
    assert "Traceback" not in errors
    assert is_accepted or "returned unexpected data" in errors
