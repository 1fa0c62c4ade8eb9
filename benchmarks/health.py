"""How right the health checks are: simulated runs are watched as the dashboard does it, every 30 seconds.

    python benchmarks/health.py [-v] [--field] [SEEDS] [NAME …]

Prints precision, recall and delay for each kind of finding, and everything that was wrong. Runs are made by
the functions of ``health_runs.py``, or with ``--field`` of ``health_field_runs.py``, of a seed::

    def hang(seed: int) -> Run:
        noise = random.Random(seed)
        lines = [Line(600 + 5 * n, f"step {n}/9000 loss={noise.gauss(2, 0.05):.4f}") for n in range(1, 800)]
        use = lambda at: 0.0 if at < 600 else 0.95 + noise.gauss(0, 0.01) if at < 4600 else 1.0
        return Run(3, lines, [Node(use), Node(use)], expected={"stalled": 4600})

A kind is right if it is found after its cause began, missed if it never is, and false if it is found without
a cause, even once. Remarks (``info``) are reported apart from alarms and are never false.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import health_field_runs
import health_runs
from simulated_run import Level, Run, runs_of

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
from tui.readers.health_metrics import health_metrics_fold
from tui.text.units import duration

START_S = 1_770_000_000
LOOK_S = 30
SAMPLE_S = 60
SAMPLE_LATE_S = 20
SEEDS = 3
GIB = 2**30
MACHINE = InstanceType(
    id="m",
    gpu_count=2,
    gpu_type="H100",
    gpu_memory_limit_mib=80 * 1024,
    memory_limit_mib=400 * 1024,
    millicpu_limit=64_000,
)


@dataclass
class Judged:
    """What was found: each kind's first finding and its time, its severity, how often it came; the states."""

    first: dict[str, tuple[float, HealthFinding]] = field(default_factory=dict)
    severity: dict[str, str] = field(default_factory=dict)
    times: Counter[str] = field(default_factory=Counter)
    states: list[tuple[float, str]] = field(default_factory=list)

    def add(self, at: float, found: Sequence[HealthFinding], before: Sequence[HealthFinding]) -> None:
        """Note the findings of a look; the severity of a kind is the worst that it had."""
        for one in found:
            kind = str(one.kind)
            self.first.setdefault(kind, (at, one))
            if one.severity == "critical" or self.severity.get(kind, "info") == "info":
                self.severity[kind] = one.severity
        self.times.update({str(one.kind) for one in found} - {str(one.kind) for one in before})

    def described(self, kind: str) -> str:
        """Return when and as what a kind was found first."""
        at, one = self.first[kind]
        return f"{duration(at)}{{}} {self.severity[kind]} {kind}: {one.text}"


def moment(at: float) -> datetime:
    """Return the time of a second of the run."""
    return datetime.fromtimestamp(START_S + at, UTC)


def watch(run: Run) -> Judged:
    """Judge a run from its creation to its end, reading only what had arrived by then."""
    job = TrainingJob(
        id="j",
        current_status="TRAINING_JOB_RUNNING",
        instance_type=MACHINE,
        created_at=moment(0),
        node_count=len(run.nodes),
    )
    progress, metrics = ProgressFold(), health_metrics_fold(job)
    unread = sorted(run.lines, key=lambda line: line.at + line.late_s, reverse=True)
    found: tuple[HealthFinding, ...] = ()
    result = Judged()
    for at in range(0, int(run.hours * 3600) + 1, LOOK_S):
        arrived = []
        while unread and unread[-1].at + unread[-1].late_s <= at:
            line = unread.pop()
            stamp_ns = round((START_S + line.at) * 1e9)
            arrived.append(LogLine(stamp_ns, line.text, f"node-{line.node}", line.level))
        progress.add(arrived)
        sampled = at - SAMPLE_LATE_S
        if (due := sampled // SAMPLE_S * SAMPLE_S) >= 0 and due > sampled - LOOK_S:
            metrics.fold(samples(run, float(due)))
        starts = [time for time in (0.0, *run.restarts) if time <= at]
        snapshot = judged(
            RunSnapshot(
                job,
                moment(at),
                moment(at),
                progress=progress.snapshot(),
                health_metrics=metrics.snapshot,
                health_metrics_at=moment(at),
                checkpoints=listed_checkpoints(run, at),
                queue=QueueContext(target_job_id="j", events=[started(time) for time in starts]),
                history_known=True,
                log_read=True,
            ),
            previous=found,
        )
        result.add(at, snapshot.findings, found)
        found, state = snapshot.findings, verdict(snapshot).state
        if not result.states or result.states[-1][1] != state:
            result.states.append((at, state))
    return result


def started(at: float) -> QueueEvent:
    return QueueEvent(training_job_id="j", status="TRAINING_JOB_RUNNING", created=moment(at))


def listed_checkpoints(run: Run, at: float) -> tuple[Checkpoint, ...] | None:
    if run.checkpoints is None:
        return None
    return tuple(
        Checkpoint(checkpoint_id=name, created_at=moment(saved), training_job_id="j")
        for saved, name in run.checkpoints
        if saved <= at
    )


def samples(run: Run, at: float) -> JobMetrics:
    """Return the samples of one time; a node without a GPU's sample has none at all."""

    def sample(level: Level, scale: float = 1.0) -> list[MetricSample]:
        value = level(at)
        return [] if value is None else [MetricSample(moment(at), value * scale)]

    def share(level: Level) -> list[MetricSample]:
        return [MetricSample(one.timestamp, min(1.0, max(0.0, one.value or 0.0))) for one in sample(level)]

    nodes = []
    for number, node in enumerate(run.nodes):
        gpus = {str(gpu): share(node.gpu) for gpu in range(MACHINE.gpu_count)}
        series = NodeSeries(gpu_utilization=gpus)
        if gpus["0"]:
            series = NodeSeries(
                gpu_utilization=gpus,
                gpu_memory_usage_bytes={gpu: sample(node.gpu_memory, GIB) for gpu in gpus},
                cpu_usage=sample(node.cpu),
                cpu_memory_usage_bytes=sample(node.memory, GIB),
                ephemeral_storage=StorageMetrics(usage_bytes=[], utilization=share(node.disk)),
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
        figures = f"{precision:9.1%} {recall:9.1%} {self.right:5} {self.missed:6} {self.false:5}"
        delays = [duration(median(self.delays)), duration(max(self.delays))] if self.delays else ["", ""]
        return f"{figures} {delays[0]:>8} {delays[1]:>8}"


def problems(name: str, run: Run, result: Judged, tallies: dict[str, Tally]) -> Iterator[str]:
    """Add a run to the tallies; yield what was wrong about it."""
    for kind, begins in run.expected.items():
        if kind not in result.first:
            tallies[kind].missed += 1
            yield f"{name}: missed {kind}"
        elif (at := result.first[kind][0]) >= begins:
            tallies[kind].right += 1
            tallies[kind].delays.append(at - begins)
    for kind, (at, _) in result.first.items():
        if at >= run.expected.get(kind, 0.0) and kind in {*run.expected, *run.allowed}:
            continue
        is_remark = result.severity[kind] == "info"
        if not is_remark:
            tallies[kind].false += 1
        yield f"{'(remark)' if is_remark else 'false'} {name}: {result.described(kind).format(':')}"
    for kind, times in result.times.items():
        if times > 2:
            yield f"{name}: {kind} came {times} times"
    if not run.expected and "critical" in result.severity.values():
        yield f"{name}: CRITICAL on a healthy run"


def main(arguments: Sequence[str]) -> None:
    """Judge the runs and print the figures."""
    names = [one for one in arguments if one[:1].isalpha()]
    seeds = next((int(one) for one in arguments if one.isdigit()), SEEDS)
    tallies: dict[str, Tally] = defaultdict(Tally)
    healthy = 0
    for make in runs_of(health_field_runs if "--field" in arguments else health_runs):
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
                for kind in result.first:
                    print(f"    {result.described(kind).format('')}")
    print(
        f"\n{'kind':20} {'precision':>9} {'recall':>9} right missed false {'delay':>8} {'longest':>8}"
        f"   ({healthy} healthy runs)"
    )
    for kind, tally in sorted(tallies.items()):
        print(f"{kind:20} {tally.row()}")
    sums = ([getattr(each, name) for each in tallies.values()] for name in ("right", "missed", "false"))
    whole = Tally(*map(sum, sums))
    print(f"{'all':20} {whole.row()}")


if __name__ == "__main__":
    main(sys.argv[1:])
