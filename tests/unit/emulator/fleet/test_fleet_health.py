"""Every sick run of the demo world is named as what it is, every healthy one stays silent for a day."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest
from fleet_worlds import EPOCH, World

from api_client.emulator.backend import LogQuery
from api_client.models import JobStatus, QueueContext, TrainingJob
from api_client.models.logs import LogLine
from tui.analysis.health.judge import health
from tui.analysis.health.registry import KINDS
from tui.analysis.node_metrics import MetricsFold
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.run.finding import HealthFinding
from tui.analysis.run.snapshot import RunSnapshot

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


@dataclass
class Watcher:
    """Follows one job of a world as the job screen's feed does: new lines, new samples, the checkpoints."""

    world: World
    job_id: str
    progress: ProgressFold = field(default_factory=ProgressFold)
    metrics: MetricsFold = field(default_factory=lambda: MetricsFold(max_points=90))
    read_until: datetime | None = None
    found: tuple[HealthFinding, ...] = ()

    def look(self, job: TrainingJob) -> tuple[HealthFinding, ...]:
        fleet, now = self.world.fleet, self.world.now
        since = self.read_until or now - timedelta(hours=3)
        window = LogQuery(round(since.timestamp() * 1e9), self.world.now_ns, "asc", limit=10**6)
        self.progress.add(
            LogLine(int(line["timestamp"]), line["message"], line["replica"], line["level"])
            for line in fleet.logs(job.id, window)
        )
        first_s = max(now.timestamp() - VITALS_S, since.timestamp() - 120)
        self.metrics.fold(fleet.metrics(job.id, start_s=first_s, end_s=now.timestamp(), step_s=60))
        self.read_until = now
        waits = job.current_status != JobStatus.RUNNING
        queue = QueueContext(target_job_id=job.id, events=fleet.events(job.id)) if waits else None
        run = RunSnapshot(job, now, now, queue=queue, history_known=True, log_read=True)
        progress, saved = self.progress.snapshot(), tuple(fleet.checkpoints(job.id))
        run = replace(run, progress=progress, health_metrics=self.metrics.snapshot, checkpoints=saved)
        self.found = health(run, previous=self.found)
        return self.found

    @property
    def job(self) -> TrainingJob:
        return self.world.fleet.job(self.job_id)


@pytest.mark.parametrize("name", SICK)
@pytest.mark.proves("docs/health.md", "Health and cost")
@pytest.mark.proves("docs/emulator.md", "The demo world")
def test_a_sick_run_is_named_as_what_it_is(still_world: World, name: str) -> None:
    still_world.now = EPOCH + timedelta(seconds=EVIDENCE_S)
    watcher = Watcher(still_world, still_world.named(name).id)
    found = watcher.look(watcher.job)
    kind, node = SICK[name]
    named = [finding for finding in found if finding.kind == kind]
    assert [finding.node for finding in named] == [node], found
    assert named[0].since is None or named[0].since < still_world.now
    # What accompanies it is said in the log of that run: errors, or the checkpoint that a dead run owes.
    assert {one.kind for one in found if one.severity != "info"} <= {kind, KINDS["errors"]}


@pytest.mark.parametrize("name", HEALTHY)
@pytest.mark.proves("docs/health.md", "Health and cost")
def test_a_healthy_run_is_silent_for_a_day(still_world: World, name: str) -> None:
    watcher = Watcher(still_world, still_world.named(name).id)
    looks = 0
    for second in POLLS_S:
        still_world.now = EPOCH + timedelta(seconds=second)
        job = watcher.job
        if job.is_finished:
            break
        found = [finding for finding in watcher.look(job) if finding.kind != KINDS["queued"]]
        assert found == [], f"after {second} s"
        looks += job.current_status == JobStatus.RUNNING
    assert looks > 1
