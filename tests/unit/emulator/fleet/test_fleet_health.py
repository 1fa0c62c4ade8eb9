"""Every sick run of the demo world is named as what it is, every healthy one stays silent for a day."""

from __future__ import annotations

from datetime import timedelta

import pytest
from fleet_worlds import EPOCH, World

from api_client.clock import epoch_ns
from api_client.emulator.backend import LogQuery
from api_client.models import JobStatus, QueueContext
from api_client.models.logs import LogLine
from support.watched_run import WatchedRun
from tui.analysis.health.registry import KINDS
from tui.analysis.run.finding import HealthFinding

EVIDENCE_S = 30
"""A sickness that is there when the world begins is named within that time."""

HOURS_S, DAY_S = 4 * 3600, 24 * 3600
POLLS_S = (*range(EVIDENCE_S, HOURS_S, 420), *range(HOURS_S, DAY_S, 1680))
VITALS_S = 65 * 60

SICK = {
    "qwen3-grpo-7": (KINDS["stalled"], None),
    "llama-70b-longctx-v1": (KINDS["straggler"], "node-2"),
    "mistral-24b-dpo-2": (KINDS["loss-not-finite"], None),
    "retrieval-embed-v5": (KINDS["memory-leak"], None),
    "flux-lora-portraits": (KINDS["disk-filling"], None),
    "whisper-debug": (KINDS["gpu-idle"], None),
    "qwen3-8b-dpo-4": (KINDS["checkpoint-overdue"], None),
    "reward-model-v2": (KINDS["loss-exploding"], None),
    "embed-multilingual-v1": (KINDS["metrics-missing"], "node-1"),
    "whisper-calls-resume": (KINDS["restarts"], None),
    "qwen3-grpo-8": (KINDS["queued"], None),
    "embed-crawl-v2": (KINDS["cache-filling"], None),
    "llama-8b-32k": (KINDS["gpu-memory"], None),
}
HEALTHY = (
    *("llama-70b-sft-v3", "whisper-ft", "qwen3-14b-titan", "nemotron-8b-cpt", "tokenize-fineweb"),
    *("mmlu-llama-70b-v2", "qwen3-8b-ablate-lr", "llama-8b-ablate", "whisper-small-distil", "rerank-v1"),
    "flux-lora-interiors",
)


class Watcher(WatchedRun):
    """Follows one job of a world: new lines, new samples, the checkpoints."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world.named(name))
        self.world = world
        self.read_until = world.now - timedelta(hours=3)

    def poll(self) -> tuple[HealthFinding, ...]:
        fleet, now, since = self.world.fleet, self.world.now, self.read_until
        self.job, self.read_until = fleet.job(self.job.id), now
        window = LogQuery(epoch_ns(since), self.world.now_ns, "asc", limit=10**6)
        lines = [
            LogLine(int(line["timestamp"]), line["message"], line["replica"], line["level"])
            for line in fleet.logs(self.job.id, window)
        ]
        first_s = max(now.timestamp() - VITALS_S, since.timestamp() - 120)
        metrics = fleet.metrics(self.job.id, start_s=first_s, end_s=now.timestamp(), step_s=60)
        waits = self.job.current_status != JobStatus.RUNNING
        queue = QueueContext(target_job_id=self.job.id, events=fleet.events(self.job.id)) if waits else None
        saved = tuple(fleet.checkpoints(self.job.id))
        return self.look(now, lines, metrics, queue=queue, checkpoints=saved)


@pytest.mark.parametrize("name", SICK)
@pytest.mark.proves("docs/health.md", "Health and cost")
@pytest.mark.proves("docs/emulator.md", "The demo world")
def test_a_sick_run_is_named_as_what_it_is(still_world: World, name: str) -> None:
    still_world.now = EPOCH + timedelta(seconds=EVIDENCE_S)
    found = Watcher(still_world, name).poll()
    kind, node = SICK[name]
    named = [finding for finding in found if finding.kind == kind]
    assert [finding.node for finding in named] == [node], found
    assert named[0].since is None or named[0].since < still_world.now
    # What accompanies it is said in the log of that run: errors, or the checkpoint that a dead run owes.
    assert {one.kind for one in found if one.severity != "info"} <= {kind, KINDS["errors"]}


@pytest.mark.parametrize("name", HEALTHY)
@pytest.mark.proves("docs/health.md", "Health and cost")
def test_a_healthy_run_is_silent_for_a_day(still_world: World, name: str) -> None:
    still_world.now = EPOCH + timedelta(seconds=EVIDENCE_S)
    watcher = Watcher(still_world, name)
    looks = 0
    for second in POLLS_S:
        still_world.now = EPOCH + timedelta(seconds=second)
        found = [finding for finding in watcher.poll() if finding.kind != KINDS["queued"]]
        if watcher.job.is_finished:
            break
        assert found == [], f"after {second} s"
        looks += watcher.job.current_status == JobStatus.RUNNING
    assert looks > 1
