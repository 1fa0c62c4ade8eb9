"""Measure how accurate the health checks are: check simulated runs every 30 seconds, as the dashboard does.

    python benchmarks/health.py [-v] [--field] [SEEDS] [NAME …]

Prints precision, recall and delay for each kind of finding, and all errors. Runs are made by the functions in
``health_runs.py``, or with ``--field`` in ``health_field_runs.py``, each for several seeds::

    def hang(seed: int) -> Run:
        noise = random.Random(seed)
        lines = [Line(600 + 5 * n, f"step {n}/9000 loss={noise.gauss(2, 0.05):.4f}") for n in range(1, 800)]
        use = lambda at: 0.0 if at < 600 else 0.95 + noise.gauss(0, 0.01) if at < 4600 else 1.0
        return Run(3, lines, [Node(use), Node(use)], expected={"stalled": 4600})

An expected kind of finding is right if it is found after its cause began, and missed if it is never found. A
kind is false if it is found without a cause, even once. Findings of severity ``info`` are printed as remarks
and are never false.
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
CHECK_INTERVAL_S = 30
SAMPLE_INTERVAL_S = 60
SAMPLE_DELAY_S = 20
SEEDS = 3
GIB = 2**30
INSTANCE_TYPE = InstanceType(
    id="m",
    gpu_count=2,
    gpu_type="H100",
    gpu_memory_limit_mib=80 * 1024,
    memory_limit_mib=400 * 1024,
    millicpu_limit=64_000,
)


@dataclass
class CheckedRun:
    """The findings and verdicts of a run."""

    first_findings: dict[str, tuple[float, HealthFinding]] = field(default_factory=dict)
    """The first finding of each kind, and its time."""
    severity: dict[str, str] = field(default_factory=dict)
    """The worst severity of each kind."""
    appearances: Counter[str] = field(default_factory=Counter)
    """How often each kind appeared, after it had not been found."""
    states: list[tuple[float, str]] = field(default_factory=list)
    """The changes of the verdict's state, and their times."""

    def add(self, at: float, findings: Sequence[HealthFinding], previous: Sequence[HealthFinding]) -> None:
        """Record the findings of a check."""
        for finding in findings:
            kind = str(finding.kind)
            self.first_findings.setdefault(kind, (at, finding))
            if finding.severity == "critical" or self.severity.get(kind, "info") == "info":
                self.severity[kind] = finding.severity
        self.appearances.update(
            {str(finding.kind) for finding in findings} - {str(finding.kind) for finding in previous}
        )

    def description_of(self, kind: str) -> str:
        """Return the time and the text of the first finding of a kind; ``{}`` is left to be filled."""
        at, finding = self.first_findings[kind]
        return f"{duration(at)}{{}} {self.severity[kind]} {kind}: {finding.text}"


def time_of(at: float) -> datetime:
    """Return the time that is ``at`` seconds after the run's creation."""
    return datetime.fromtimestamp(START_S + at, UTC)


def watch(run: Run) -> CheckedRun:
    """Check a run from its creation to its end; each check reads only data that has arrived by then."""
    job = TrainingJob(
        id="j",
        current_status="TRAINING_JOB_RUNNING",
        instance_type=INSTANCE_TYPE,
        created_at=time_of(0),
        node_count=len(run.nodes),
    )
    progress, metrics = ProgressFold(), health_metrics_fold(job)
    pending_lines = sorted(run.lines, key=lambda line: line.at + line.late_s, reverse=True)
    findings: tuple[HealthFinding, ...] = ()
    result = CheckedRun()
    for at in range(0, int(run.hours * 3600) + 1, CHECK_INTERVAL_S):
        arrived = []
        while pending_lines and pending_lines[-1].at + pending_lines[-1].late_s <= at:
            line = pending_lines.pop()
            stamp_ns = round((START_S + line.at) * 1e9)
            arrived.append(LogLine(stamp_ns, line.text, f"node-{line.node}", line.level))
        progress.add(arrived)
        newest_sample = at - SAMPLE_DELAY_S
        if (
            sample_time := newest_sample // SAMPLE_INTERVAL_S * SAMPLE_INTERVAL_S
        ) >= 0 and sample_time > newest_sample - CHECK_INTERVAL_S:
            metrics.fold(samples(run, float(sample_time)))
        starts = [time for time in (0.0, *run.restarts) if time <= at]
        snapshot = judged(
            RunSnapshot(
                job,
                time_of(at),
                time_of(at),
                progress=progress.snapshot(),
                health_metrics=metrics.snapshot,
                health_metrics_at=time_of(at),
                checkpoints=listed_checkpoints(run, at),
                queue=QueueContext(target_job_id="j", events=[started_event(time) for time in starts]),
                history_known=True,
                log_read=True,
            ),
            previous=findings,
        )
        result.add(at, snapshot.findings, findings)
        findings, state = snapshot.findings, verdict(snapshot).state
        if not result.states or result.states[-1][1] != state:
            result.states.append((at, state))
    return result


def started_event(at: float) -> QueueEvent:
    return QueueEvent(training_job_id="j", status="TRAINING_JOB_RUNNING", created=time_of(at))


def listed_checkpoints(run: Run, at: float) -> tuple[Checkpoint, ...] | None:
    if run.checkpoints is None:
        return None
    return tuple(
        Checkpoint(checkpoint_id=name, created_at=time_of(saved), training_job_id="j")
        for saved, name in run.checkpoints
        if saved <= at
    )


def samples(run: Run, at: float) -> JobMetrics:
    """Return the samples at one time; a node without GPU samples has no other samples either."""

    def sample(level: Level, scale: float = 1.0) -> list[MetricSample]:
        value = level(at)
        return [] if value is None else [MetricSample(time_of(at), value * scale)]

    def fraction_samples(level: Level) -> list[MetricSample]:
        return [
            MetricSample(point.timestamp, min(1.0, max(0.0, point.value or 0.0))) for point in sample(level)
        ]

    nodes = []
    for number, node in enumerate(run.nodes):
        gpus = {str(gpu): fraction_samples(node.gpu) for gpu in range(INSTANCE_TYPE.gpu_count)}
        series = NodeSeries(gpu_utilization=gpus)
        if gpus["0"]:
            series = NodeSeries(
                gpu_utilization=gpus,
                gpu_memory_usage_bytes={gpu: sample(node.gpu_memory, GIB) for gpu in gpus},
                cpu_usage=sample(node.cpu),
                cpu_memory_usage_bytes=sample(node.memory, GIB),
                ephemeral_storage=StorageMetrics(usage_bytes=[], utilization=fraction_samples(node.disk)),
            )
        nodes.append(NodeMetrics(node_id=f"node-{number}", metrics=series))
    cache = StorageMetrics(usage_bytes=[], utilization=fraction_samples(run.cache)) if run.cache else None
    return JobMetrics(per_node_metrics=nodes, cache=cache)


@dataclass
class Tally:
    """How often a kind of finding was right, missed, or false, and the delays until it was found (s)."""

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


def problems(name: str, run: Run, result: CheckedRun, tallies: dict[str, Tally]) -> Iterator[str]:
    """Add a run to the tallies; yield its errors as texts."""
    for kind, begins in run.expected.items():
        if kind not in result.first_findings:
            tallies[kind].missed += 1
            yield f"{name}: missed {kind}"
        elif (at := result.first_findings[kind][0]) >= begins:
            tallies[kind].right += 1
            tallies[kind].delays.append(at - begins)
    for kind, (at, _) in result.first_findings.items():
        if at >= run.expected.get(kind, 0.0) and kind in {*run.expected, *run.allowed}:
            continue
        is_remark = result.severity[kind] == "info"
        if not is_remark:
            tallies[kind].false += 1
        yield f"{'(remark)' if is_remark else 'false'} {name}: {result.description_of(kind).format(':')}"
    for kind, times in result.appearances.items():
        if times > 2:
            yield f"{name}: {kind} came {times} times"
    if not run.expected and "critical" in result.severity.values():
        yield f"{name}: CRITICAL on a healthy run"


def main(arguments: Sequence[str]) -> None:
    """Check the runs and print the figures."""
    names = [argument for argument in arguments if argument[:1].isalpha()]
    seeds = next((int(argument) for argument in arguments if argument.isdigit()), SEEDS)
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
                for kind in result.first_findings:
                    print(f"    {result.description_of(kind).format('')}")
    print(
        f"\n{'kind':20} {'precision':>9} {'recall':>9} right missed false {'delay':>8} {'longest':>8}"
        f"   ({healthy} healthy runs)"
    )
    for kind, tally in sorted(tallies.items()):
        print(f"{kind:20} {tally.row()}")
    totals = ([getattr(tally, name) for tally in tallies.values()] for name in ("right", "missed", "false"))
    total = Tally(*map(sum, totals))
    print(f"{'all':20} {total.row()}")


if __name__ == "__main__":
    main(sys.argv[1:])
