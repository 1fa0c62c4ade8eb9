"""A small answer never costs much memory or time, whatever it unpacks to."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from api_client.routes import CHECKPOINT_FILES, JOB_METRICS, PROJECT_CACHE, SEARCH_JOBS, Route
from support.fake_baseten import Answer, FakeBaseten
from support.measured_commands import run_measured

UNPACKED_BYTES = 14_000_000
MAX_MEMORY_KIB = 400 * 1024
MAX_CPU_S = 30
"""Only what does not end takes this long, however slow the machine is."""

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


@pytest.mark.parametrize("is_accepted", [True, False], ids=["accepted", "refused"])
@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case.command[0]} {case.before[:18]}{case.item[:4]}"
)
def test_small_answer_costs_little_memory_and_time(case: Case, is_accepted: bool, tmp_path: Path) -> None:
    count = case.accepted if is_accepted else case.small_count
    with FakeBaseten() as server:
        answer = Answer(case.body(count), headers={"Content-Encoding": "gzip"})
        server.on(case.route.method, case.route.pattern, answer)
        limits = {"RLIMIT_CPU": MAX_CPU_S}
        ended = run_measured(case.command, folder=tmp_path, environ=server.environ(), limits=limits)
    assert ended.codes
    assert 0 < ended.memory_kib < MAX_MEMORY_KIB
    assert ended.cpu_s < MAX_CPU_S
    assert "Traceback" not in ended.errors
    assert is_accepted or "returned unexpected data" in ended.errors
