"""How right the health checks are: simulated runs are watched as the dashboard does it, every 30 seconds.

    python benchmarks/health.py [-v] [--field] [SEEDS] [NAME …]

Prints precision, recall and delay for each kind of finding, and everything that was wrong. Runs are functions
in ``health_runs.py``, which ``RUNS`` lists; each takes a seed and returns a ``Run`` (``simulated_run.py``):

    def hang(seed: int) -> Run:
        noise = random.Random(seed)
        lines = [Line(600 + 5 * n, f"step {n}/9000 loss={noise.gauss(2, 0.05):.4f}") for n in range(1, 800)]
        busy = lambda at: 0.0 if at < 600 else 0.95 + noise.gauss(0, 0.01) if at < 4600 else 1.0
        return Run(3, lines, [Node(gpu=busy), Node(gpu=busy)], expected={"stalled": 4600})

A kind is right if it is found after its cause began, missed if it never is, and false if it is found without
a cause, even once. Remarks (``info``) are reported apart from alarms and are never false.
"""

# ruff: noqa: T201 (what a benchmark prints is its product)

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import median

from health_field_runs import RUNS as FIELD_RUNS
from health_runs import RUNS
from simulated_run import Level, Run

from api_client.models import (
    Checkpoint,
    InstanceType,
    JobMetrics,
    MetricSample,
    NodeMetrics,
    NodeSeries,
    QueueContext,
    QueueEvent,
    StorageMetrics,
    TrainingJob,
)
from api_client.models.logs import LogLine
from tui.analysis.health.judge import judged
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.run.finding import HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.run.verdict import verdict
from tui.readers.run import health_metrics_fold
from tui.text.units import duration

START_S = 1_770_000_000
LOOK_S = 30
SAMPLE_S = 60
SAMPLE_LATE_S = 20
SEEDS = 3
GIB = 2**30
MACHINE = {
    "id": "m",
    "gpu_type": "H100",
    "gpu_memory_limit_mib": 80 * 1024,
    "memory_limit_mib": 400 * 1024,
    "millicpu_limit": 64_000,
}


@dataclass
class Judged:
    """What was found: the first time of each kind, worst severity, how often it came back, all texts."""

    first: dict[str, float] = field(default_factory=dict)
    severity: dict[str, str] = field(default_factory=dict)
    came_back: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    texts: dict[str, str] = field(default_factory=dict)
    states: list[tuple[float, str]] = field(default_factory=list)


def moment(at: float) -> datetime:
    """Return the time of a second of the run."""
    return datetime.fromtimestamp(START_S + at, UTC)


def watch(run: Run) -> Judged:
    """Judge a run from its creation to its end, reading only what had arrived by then."""
    job = TrainingJob.model_validate(
        {
            "id": "j",
            "current_status": "TRAINING_JOB_RUNNING",
            "instance_type": InstanceType.model_validate(
                {**MACHINE, "gpu_count": run.gpu_count}
            ).model_dump(),
            "created_at": moment(0),
            "node_count": len(run.nodes),
        }
    )
    progress, metrics = ProgressFold(), health_metrics_fold(job)
    waiting = sorted(run.lines, key=lambda line: line.at + line.late_s)
    told, found, result = 0, (), Judged()
    present: set[str] = set()
    for at in range(0, int(run.hours * 3600) + 1, LOOK_S):
        begin = told
        while told < len(waiting) and waiting[told].at + waiting[told].late_s <= at:
            told += 1
        progress.add(
            LogLine(round((START_S + line.at) * 1e9), line.text, f"node-{line.node}", line.level)
            for line in waiting[begin:told]
        )
        sampled = at - SAMPLE_LATE_S
        if (due := sampled // SAMPLE_S * SAMPLE_S) >= 0 and due > sampled - LOOK_S:
            metrics.fold(_samples(run, float(due)))
        events = [
            QueueEvent(training_job_id="j", status="TRAINING_JOB_RUNNING", created=moment(time))
            for time in (0.0, *run.restarts)
            if time <= at
        ]
        listed = None
        if run.checkpoints is not None:
            listed = tuple(
                Checkpoint(checkpoint_id=name, created_at=moment(saved), training_job_id="j")
                for saved, name in run.checkpoints
                if saved <= at
            )
        snapshot = judged(
            RunSnapshot(
                job,
                moment(at),
                moment(at),
                progress=progress.snapshot(),
                health_metrics=metrics.snapshot,
                health_metrics_at=moment(at),
                checkpoints=listed,
                queue=QueueContext(target_job_id="j", events=events),
                history_known=True,
                log_read=True,
            ),
            previous=found,
        )
        found = snapshot.findings
        _note(result, at, found, present)
        state = verdict(snapshot).state
        if not result.states or result.states[-1][1] != state:
            result.states.append((at, state))
    return result


def _note(result: Judged, at: float, found: Sequence[HealthFinding], present: set[str]) -> None:
    for one in found:
        kind = str(one.kind)
        if kind not in result.first:
            result.first[kind], result.texts[kind] = at, one.text
            result.severity[kind] = one.severity
        if one.severity == "critical" or result.severity[kind] == "info":
            result.severity[kind] = one.severity
    kinds = {str(one.kind) for one in found}
    for kind in kinds - present:
        result.came_back[kind] += 1
    present.clear()
    present.update(kinds)


def _samples(run: Run, at: float) -> JobMetrics:
    def sample(level: Level, scale: float = 1.0) -> list[MetricSample]:
        value = level(at)
        return [] if value is None else [MetricSample(moment(at), value * scale)]

    def share(level: Level) -> list[MetricSample]:
        return [MetricSample(one.timestamp, min(1.0, max(0.0, one.value or 0.0))) for one in sample(level)]

    nodes = []
    for number, node in enumerate(run.nodes):
        levels = node.gpus or [node.gpu] * run.gpu_count
        series = NodeSeries(
            gpu_utilization={str(gpu): share(level) for gpu, level in enumerate(levels)},
            gpu_memory_usage_bytes={
                str(gpu): sample(node.gpu_memory, GIB) if share(level) else []
                for gpu, level in enumerate(levels)
            },
            cpu_usage=sample(node.cpu) if share(levels[0]) else [],
            cpu_memory_usage_bytes=sample(node.memory, GIB) if share(levels[0]) else [],
            ephemeral_storage=StorageMetrics(
                usage_bytes=[], utilization=share(node.disk) if share(levels[0]) else []
            ),
        )
        nodes.append(NodeMetrics(node_id=f"node-{number}", metrics=series))
    cache = StorageMetrics(usage_bytes=[], utilization=share(run.cache)) if run.cache else None
    return JobMetrics(per_node_metrics=nodes, cache=cache)


@dataclass
class Tally:
    """How often a kind was right, missed, or false, and the delays until it was found (s)."""

    right: int = 0
    missed: int = 0
    false: int = 0
    delays: list[float] = field(default_factory=list)

    def row(self) -> str:
        """Format the figures as a table row."""
        precision = self.right / (self.right + self.false) if self.right + self.false else 1.0
        recall = self.right / (self.right + self.missed) if self.right + self.missed else 1.0
        delay = (
            f"{duration(median(self.delays)):>8} {duration(max(self.delays)):>8}" if self.delays else " " * 17
        )
        return f"{precision:9.1%} {recall:9.1%} {self.right:5} {self.missed:6} {self.false:5} {delay}"


def problems(name: str, run: Run, result: Judged, tallies: dict[str, Tally]) -> Iterator[str]:
    """Add a run to the tallies; yield what was wrong about it."""
    for kind, begins in run.expected.items():
        if kind not in result.first:
            tallies[kind].missed += 1
            yield f"{name}: missed {kind}"
        elif result.first[kind] >= begins:
            tallies[kind].right += 1
            tallies[kind].delays.append(result.first[kind] - begins)
    for kind, at in result.first.items():
        early = kind in run.expected and at < run.expected[kind]
        if early or (kind not in run.expected and kind not in run.allowed):
            said = f"{name}: {duration(at)}: {result.severity[kind]} {kind}: {result.texts[kind]}"
            if result.severity[kind] == "info":
                yield f"(remark) {said}"
            else:
                tallies[kind].false += 1
                yield f"false {said}"
    for kind, times in result.came_back.items():
        if times > 2:
            yield f"{name}: {kind} came {times} times"
    if not run.expected and "critical" in result.severity.values():
        yield f"{name}: CRITICAL on a healthy run"


def main(arguments: Sequence[str]) -> None:
    """Judge the runs and print the figures."""
    names = [one for one in arguments if one.lstrip("-")[:1].isalpha() and not one.startswith("-")]
    seeds = next((int(one) for one in arguments if one.isdigit()), SEEDS)
    tallies: dict[str, Tally] = defaultdict(Tally)
    healthy = 0
    for make in FIELD_RUNS if "--field" in arguments else RUNS:
        if names and make.__name__ not in names:
            continue
        for seed in range(seeds):
            run = make(seed)
            result = watch(run)
            healthy += not run.expected
            for problem in problems(f"{make.__name__}[{seed}]", run, result, tallies):
                print(problem)
            if "-v" in arguments:
                print(make.__name__, seed, [(duration(at), state) for at, state in result.states])
                for kind, at in result.first.items():
                    print(f"    {duration(at)} {result.severity[kind]} {kind}: {result.texts[kind]}")
    print(
        f"\n{'kind':20} {'precision':>9} {'recall':>9} right missed false {'delay':>8} {'longest':>8}"
        f"   ({healthy} healthy runs)"
    )
    for kind, tally in sorted(tallies.items()):
        print(f"{kind:20} {tally.row()}")
    whole = Tally(
        *(sum(getattr(each, name) for each in tallies.values()) for name in ("right", "missed", "false"))
    )
    print(f"{'all':20} {whole.row()}")


if __name__ == "__main__":
    main(sys.argv[1:])
