"""A small answer never costs much memory or time, whatever it unpacks to."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
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

PROGRAM = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, ({MAX_CPU_S}, {MAX_CPU_S}))
from pathlib import Path
from tui.cli import main
code = main(sys.argv[1:])
Path("status").write_bytes(Path("/proc/self/status").read_bytes())
sys.exit(code)
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


def run(server: FakeBaseten, command: tuple[str, ...], folder: Path) -> tuple[str, int, float]:
    """Run a command in a process of its own; return its errors, memory in KiB and CPU time."""
    paths = {"HOME": str(folder), "USER_TRUSSRC_PATH": str(folder / "trussrc"), "PYTHONPATH": str(ROOT)}
    with (folder / "errors").open("wb") as errors:
        child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *command],
            env={**os.environ, **server.environ(), **paths},
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        _pid, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    # Its maximum resident set in ``usage`` includes that of this process, which it was for a moment.
    peak = re.search(r"VmHWM:\s+(\d+) kB", (folder / "status").read_text())
    assert peak is not None
    return (folder / "errors").read_text(), int(peak[1]), usage.ru_utime


@pytest.mark.parametrize("is_accepted", [True, False], ids=["accepted", "refused"])
@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case.command[0]} {case.before[:18]}{case.item[:4]}"
)
def test_small_answer_costs_little_memory_and_time(case: Case, is_accepted: bool, tmp_path: Path) -> None:
    count = case.accepted if is_accepted else case.small_count
    with FakeBaseten() as server:
        answer = Answer(case.body(count), headers={"Content-Encoding": "gzip"})
        server.on(case.route.method, case.route.pattern, answer)
        errors, memory_kib, cpu_s = run(server, case.command, tmp_path)
    assert memory_kib < MAX_MEMORY_KIB
    assert cpu_s < MAX_CPU_S
    assert "Traceback" not in errors
    assert is_accepted or "returned unexpected data" in errors
