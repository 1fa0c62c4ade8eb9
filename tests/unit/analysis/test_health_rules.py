"""Each kind of finding: what brings it, what ends it, and what looks like it and is none."""

import math
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any

import pytest
from metrics_payloads import GIB, H100, HOUR, START_S, payload, samples, series

from api_client.models import Checkpoint, QueueContext, QueueEvent, TrainingJob
from api_client.models.account import CapacityAtSubmit
from api_client.models.logs import LogGap, LogLine
from support.example_runs import watch_example
from tui.analysis.connection import ClockOffset
from tui.analysis.fleet.snapshot import brief
from tui.analysis.health.check import Example, Level
from tui.analysis.health.judge import health, judged, with_earlier
from tui.analysis.health.registry import CHECKS, KINDS, Thresholds
from tui.analysis.health.rules import HealthRules
from tui.analysis.health.worse import worsened
from tui.analysis.node_metrics import MetricsFold, MetricsSnapshot
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.finding import SHORT_CHARACTERS, HealthFinding, Severity, stop_advice
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.series import Series


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(START_S + seconds, UTC)


Lines = Iterable[tuple[float, str]]


def told(lines: Lines, replica: str | None = "node-0", gap: float = 0, **others: Lines) -> ProgressSnapshot:
    """What a log tells: the lines of one replica, and those of others by name, with _ for -."""
    folding = ProgressFold()
    folding.add([LogGap(0, round((START_S + gap) * 1e9), "refused")])
    for name, those in {replica: lines, **others}.items():
        node = name and name.replace("_", "-")
        folding.add(LogLine(round((START_S + at) * 1e9), text, node, None) for at, text in those)
    return folding.snapshot()


def ranks(*step_times_s: Iterable[float]) -> ProgressSnapshot:
    lines = {
        f"node_{rank}": [(10.0 * n, f"step={n} loss=1 step_time_s={took}") for n, took in enumerate(those, 1)]
        for rank, those in enumerate(step_times_s)
    }
    return told([], None, **lines)


def paced(seconds: Callable[[float], float], until_s: float, text: str = "") -> list[tuple[float, str]]:
    lines, at = [], 0.0
    while at < until_s:
        at += seconds(at)
        lines.append((at, f"step={len(lines) + 1} loss=1.0" + text))
    return lines


def pausing() -> list[tuple[float, str]]:
    ats = accumulate(600.0 if step % 100 == 0 else 5.0 for step in range(1, 301))
    return [(at, f"step={step} loss=1.0") for step, at in enumerate(ats, 1)]


def started(*seconds: float) -> QueueContext:
    running = {"training_job_id": "j", "status": "TRAINING_JOB_RUNNING"}
    events = [QueueEvent.model_validate(running | {"created": moment(at)}) for at in seconds]
    return QueueContext(target_job_id="j", events=events)


def steps(
    until_s: float, every_s: float = 5.0, loss: Callable[[int], float] = lambda step: 1.0, total: int = 90000
) -> list[tuple[float, str]]:
    return [
        (step * every_s, f"step={step}/{total} loss={loss(step):.5f} grad_norm=0.5")
        for step in range(1, int(until_s / every_s) + 1)
    ]


def metrics(*nodes: dict[str, object], **top: object) -> MetricsSnapshot:
    return MetricsFold().fold(payload({f"node-{n}": one for n, one in enumerate(nodes)}, **top))


def look(
    at_s: float = 3600,
    *,
    status: str = "RUNNING",
    rules: HealthRules | None = None,
    previous: tuple[HealthFinding, ...] = (),
    job: dict[str, Any] | None = None,
    **fields: Any,
) -> tuple[HealthFinding, ...]:
    known = {"id": "j", "current_status": f"TRAINING_JOB_{status}", "instance_type": H100.model_dump()}
    subject = TrainingJob.model_validate(known | (job or {}))
    run = RunSnapshot(subject, moment(at_s), moment(at_s), **({"log_read": True} | fields))
    return health(run, rules or HealthRules(), previous)


def kinds(found: tuple[HealthFinding, ...]) -> list[str]:
    return [str(finding.kind) for finding in found]


def stopping(at_s: float, until: float = 0.01, of: float = 0.9) -> dict[str, object]:
    return series(gpu=lambda at: of if at < at_s else until)


def heard(*nodes: str, quiet: tuple[str, ...] = ()) -> ProgressSnapshot:
    """A log in which each of these replicas prints every 5 s; those in ``quiet`` only until 2900 s."""
    lines = {
        name: [(at, f"batch of {name} loaded") for at in range(0, 2901 if name in quiet else 3601, 5)]
        for name in nodes
    }
    return told([], None, **lines)


def checkpoint(at_s: float, step: int) -> Checkpoint:
    return Checkpoint(checkpoint_id=f"checkpoint-{step}", created_at=moment(at_s), training_job_id="j")


def run(lines: Lines, at_s: float, **fields: Any) -> tuple[HealthFinding, ...]:
    return look(at_s, progress=told(lines), **fields)


def nodes(*levels: dict[str, object], **fields: Any) -> tuple[HealthFinding, ...]:
    return look(health_metrics=metrics(*levels), **fields)


def losing(until_s: float, loss: Callable[[int], float]) -> tuple[HealthFinding, ...]:
    return run(steps(until_s, loss=loss), until_s)


def asked(at_s: float, of_s: float, **fields: Any) -> tuple[HealthFinding, ...]:
    """Metrics of a whole job that stopped, asked for at that second, and a log that goes on."""
    stopped, log = metrics(series(STOPPED)), heard("node-0")
    return look(at_s, health_metrics=stopped, health_metrics_at=moment(of_s), progress=log, **fields)


STOPPED = range(0, 3000, 60)
WELL, GONE = series(), series(STOPPED)
YOUNG = range(0, 660, 60)
HANG = metrics(series(range(0, 1860, 60)))
BROKEN = [(600.0 + n, f"step={120 + n} loss=nan") for n in (1, 2, 3)]
HEARTBEATS = [(600 + n * 10.0, f"heartbeat {n} ok") for n in range(200)]
ANSWERS = [(n * 30.0, f"scored {n} answers") for n in range(100)]
NANS = [(500.0 + n, f"step={100 + n} loss=0.0 grad_norm=nan") for n in range(1, 4)]
LEFT = {"node_1": [(at, "batch loaded") for at in range(0, 2901, 5)]}
SELDOM = {"node_1": [(at, "saved a shard") for at in range(0, 3600, 600)]}
SLOW_STEPS = [*steps(4000), *((4000 + n * 20.0, f"step={800 + n}/90000 loss=1") for n in range(1, 90))]
SAVED = tuple(checkpoint(n * 1000, n * 200) for n in range(1, 5))
SAVES = [(n * 1000.0, f"Saving model checkpoint to /out/checkpoint-{n * 200}") for n in range(1, 4)]
ONCE = steps(1000) + [(2000.0 + n * 5, f"step={100 + n} loss=1") for n in range(50)]
TWICE = ONCE + [(4000.0 + n * 5, f"step={50 + n} loss=1") for n in range(50)]
RESTARTED = started(0, 500, 1000)
FAILED = (3000.0, "ERROR: connection reset, retrying (1/5)")
ERRORS = [(3000.0, "ERROR: no server\x1b]0;pwned\x07"), (3300.0, "ValueError: again")]
LEAK = metrics(series(gpu_memory=lambda at: (64 + at / 3600 * 10) * GIB))
FILLING: dict[str, Any] = series(disk=lambda at: 0.71 + at / 3600 * 0.2)
THREE = {"job": {"node_count": 3}}
WAITING = {"status": "PENDING", "job": {"created_at": moment(0), "node_count": 4}}
QUEUE = QueueContext.model_validate(
    {
        "target_job_id": "j",
        "team_capacity": {"gpu_type": "H100", "max_gpus": 96},
        "active_at_submit": [
            {"training_job_id": "a", "training_job_name": "big", "total_gpus": 64},
            {"training_job_id": "b", "training_job_name": "b", "total_gpus": 8},
        ],
        "pending_ahead_at_submit": [{"training_job_id": "c", "training_job_name": "x"}],
    }
)
NONE_AHEAD = QUEUE.model_copy(update={"submitted_at": moment(960), "pending_ahead_at_submit": []})
FOR_CPUS = QueueContext.model_validate({"target_job_id": "j", "active_at_submit": [{"training_job_id": "x"}]})
ON_SPOT = QUEUE.model_copy(update={"team_capacity": CapacityAtSubmit(max_gpus=64)})
FOUND: dict[str, tuple[Callable[[], tuple[HealthFinding, ...]], str]] = {
    "a healthy run": (
        lambda: run(steps(3600), 3605, health_metrics=metrics(series(gpu=0.97), WELL, series(gpu=0.96))), ""),
    "nothing known": (lambda: look(0), ""),
    "the worst comes first": (lambda: run([*steps(600), *BROKEN, (604.0, "ValueError: no")], 1860),
        "stalled critical run 604 | loss-not-finite critical run 601"),
    "an error as the run has survived before": (lambda: run([*steps(600), (300.0, "ERROR: 12.jpg is cut"),
        (602.0, "ERROR: 345.jpg is cut")], 720), "errors info run 300: 2 errors in the log, first 7m ago"),
    "another error than before": (lambda: run([*steps(600), (300.0, "ERROR: 12.jpg is cut"),
        (602.0, "ERROR: a disk is full")], 720), "errors warning run 300: 2 errors in the log, first 7m ago"),
    "a stall and its idle GPUs, which are one": (lambda: resting(log_read=True), "stalled warning run 2915: no step"),
    "a hang at full utilisation": (lambda: run(steps(600), 1860, health_metrics=HANG),
        "stalled critical run 600: no step or log line for 21m, usually every 5s; GPUs 95% busy"),
    "a pause a little longer than ever": (lambda: run(pausing(), pausing()[-1][0] + 760), "stalled warning run 3285"),
    "a run that logs on without a step": (lambda: run([*steps(600), *HEARTBEATS], 1600),
        "stalled warning run 600: no step for 16m, usually every 5s, but still logging"),
    "a log without steps that falls silent": (lambda: run(ANSWERS, 2970 + 3700), "stalled warning run 2970"),
    "a session that says nothing is no run": (lambda: run(ANSWERS[:3], 9000), ""),
    "a clock that is ahead sees no stall": (lambda: run(steps(600), 1310, clock_ahead_s=400), ""),
    "only a hang": (lambda: run(steps(600), 1650, clock_ahead_s=400), "stalled warning run 600"),
    "a first step makes no rhythm": (lambda: run(steps(5), 20 * 60), ""),
    "and is one after long": (lambda: run(steps(5), 40 * 60), "stalled warning run 5"),
    "a loss that explodes": (
        lambda: losing(1000, lambda n: 1.0 + 0.02 * (n % 5) + (0.5 * (n - 180) if n > 180 else 0)),
        "loss-exploding critical run 9"),
    "spikes": (lambda: losing(1000, lambda n: 40.0 if n in (150, 198) else 1.0 + 0.02 * (n % 5)), ""),
    "one that creeps back above its beginning": (
        lambda: losing(10_000, lambda n: 2 / (1 + n / 50) if n < 800 else 0.12 * 1.003 ** (n - 800)),
        "loss-exploding critical run 75"),
    "one that falls": (lambda: losing(1500, lambda n: 11.0 / n**0.3), ""),
    "a policy loss around zero": (lambda: losing(1500, lambda n: 0.03 * ((n * 7919) % 13 - 6) / 6), ""),
    "NaN": (lambda: losing(600, lambda n: 1.0 if n < 61 else math.nan), "loss-not-finite critical run 305: loss is NaN"),
    "inf": (lambda: losing(600, lambda n: 1.0 if n < 61 else math.inf), "loss-not-finite critical run 305: loss is inf"),
    "a loss scale that finds its place": (lambda: run(steps(500) + NANS[:-1], 505), ""),
    "gradients that are no numbers": (lambda: run(steps(500) + NANS, 505),
        "loss-not-finite critical run 501: grad norm is NaN"),
    "all GPUs stop": (lambda: nodes(stopping(2940), stopping(2940)),
        "gpu-idle warning run 2940: GPUs idle for 11m, below 5%"),
    "those of a node, which is not slow, too": (lambda: nodes(WELL, stopping(2940)), "gpu-idle warning node-1 2940"),
    "idle in all that is seen of a run with steps": (
        lambda: run(steps(3590), 3600, health_metrics=metrics(series(gpu=0.0))), "gpu-idle warning run 5"),
    "a node that has just become idle, which is not slow": (
        lambda: nodes(WELL, WELL, WELL, stopping(3180)), ""),
    "not begun": (lambda: nodes(series(YOUNG, gpu=0.0), series(YOUNG, gpu=0.01), at_s=600), ""),
    "a pause": (lambda: nodes(stopping(3060), stopping(3060)), ""),
    "a node that lags": (lambda: nodes(series(gpu=0.97), WELL, series(gpu=0.61)),
        "straggler warning node-2 0: node-2 lags behind the other nodes: GPUs at 61%, others at 96%"),
    "a node that is heard no more": (lambda: nodes(WELL, GONE), "node-missing critical node-1 2940"),
    "one that never was": (lambda: nodes(WELL, WELL, **THREE),
        "node-missing warning run 0: 1 node has never sent metrics: 2 of 3 reporting"),
    "one that never was and is not waited for": (lambda: nodes(WELL, WELL, **THREE, progress=told(steps(3600))),
        "node-missing info run 0: 1 node has never sent metrics: 2 of 3 reporting"),
    "one that logs": (lambda: nodes(WELL, GONE, progress=heard("node-0", "node-1")),
        "metrics-missing warning node-1 2940: node-1: no metrics for 11m, still logging"),
    "one whose log stopped": (lambda: nodes(WELL, GONE, progress=heard("node-0", "node-1", quiet=("node-1",))),
        "node-missing critical node-1 2940: node-1 is missing: no metrics for 11m, no log line for 11m"),
    "one without which the others make steps": (lambda: nodes(WELL, GONE, progress=told(steps(3600), **LEFT)),
        "node-missing warning node-1 2940: node-1 is missing: no metrics for 11m, no log line for 11m"),
    "one that may come back": (lambda: nodes(WELL, series(range(0, 3240, 60)), progress=told(steps(3600), **LEFT)),
        "node-missing info node-1 3180"),
    "one that logs seldom": (lambda: nodes(WELL, GONE, progress=told(steps(3600), **SELDOM)),
        "metrics-missing warning node-1 2940"),
    "only rank 0 logs": (lambda: nodes(WELL, GONE, progress=told(steps(3600))),
        "metrics-missing warning node-1 2940: node-1: no metrics for 11m; the run is still logging"),
    "only rank 0 logged": (lambda: nodes(WELL, GONE, progress=told(steps(2900))),
        "node-missing critical node-1 2940 | stalled warning run 2900"),
    "replicas of other names": (lambda: nodes(WELL, GONE, progress=heard("g00r0", "g00r1")),
        "metrics-missing warning node-1 2940: node-1: no metrics for 11m; the run is still logging"),
    "one of them silent": (lambda: nodes(WELL, GONE, progress=heard("g00r0", "g00r1", quiet=("g00r1",))),
        "node-missing critical node-1 2940"),
    "never had metrics and logs": (
        lambda: nodes(WELL, WELL, progress=heard("node-0", "node-1", "node-2"), **THREE),
        "metrics-missing warning node-2 0: node-2: no metrics since it started, still logging"),
    "never had metrics nor logs": (lambda: nodes(WELL, WELL, progress=heard("node-0", "node-1"), **THREE),
        "node-missing warning run 0"),
    "offline, log and metrics stop at once": (
        lambda: nodes(WELL, GONE, at_s=9000, progress=heard("node-0", "node-1")),
        "metrics-missing warning node-1 2940"),
    "metrics of the whole job stop": (lambda: asked(3600, 3600),
        "metrics-missing warning run 2940: no metrics for 11m, still logging"),
    "not asked since": (lambda: asked(3600, 2940), ""),
    "the log tells that it is not our clock": (lambda: asked(3600, 3600, clock_ahead_s=660.0),
        "metrics-missing warning run 2940"),
    "nodes that are late": (lambda: nodes(series(range(0, 240, 60)), at_s=240, **THREE), ""),
    "the leader alone": (lambda: nodes(WELL, job={"node_count": 4}), ""),
    "nodes that were replaced": (
        lambda: nodes(WELL, series(range(0, 1200, 60)), series(range(1200, 3660, 60)), job={"node_count": 2}),
        ""),
    "GPU memory near its limit": (
        lambda: nodes(WELL, series(gpu_memory=lambda at: (79.2 if at >= 1800 else 60) * GIB)),
        "gpu-memory warning run 1800: GPU memory at 99% of 80.0 GiB: node-1 GPU 1 and 1 more"),
    "as configured": (lambda: nodes(series(gpu_memory=79.2 * GIB)), "gpu-memory info run 0"),
    "a peak": (lambda: nodes(series(gpu_memory=lambda at: (79.2 if at == 3600 else 60) * GIB)), ""),
    "a leak and when it is full": (lambda: look(health_metrics=LEAK),
        "memory-leak warning run 0: GPU memory of node-0 GPU 0 (and 1 more) leaks 10.0 GiB/h: full in 36m"),
    "of the machine": (lambda: nodes(series(memory=lambda at: (310 + at / 3600 * 60) * GIB)),
        "memory-leak info run 0: memory of node-0 leaks 60.0 GiB/h: full in 30m"),
    "whatever the charts show": (
        lambda: look(metrics=metrics(series(range(3540, 3660, 5))), health_metrics=LEAK),
        "memory-leak warning run 0"),
    "the end of the run comes before": (lambda: run(steps(3600, total=800), 3600, health_metrics=LEAK), ""),
    "a saw": (lambda: nodes(series(gpu_memory=lambda at: 60.0 * GIB + (at % 600) * GIB / 100)), ""),
    "grown and settled": (lambda: nodes(series(gpu_memory=lambda at: (40 + min(at, 2700) / 180) * GIB)), ""),
    "a cache of the system": (
        lambda: nodes(series(memory=lambda at: (120 + 200 * (1 - 2.72 ** (-at / 2400))) * GIB)), ""),
    "a disk that fills": (lambda: nodes(WELL, FILLING),
        "disk-filling info node-1 0: disk of node-1 is 91% full, will be full in 2"),
    "a cache": (lambda: look(health_metrics=metrics(WELL, cache=FILLING["ephemeral_storage"])),
        "cache-filling info run 0"),
    "a disk full of what was put there": (lambda: nodes(series(disk=0.97)), "disk-filling info run 0"),
    "a full disk": (lambda: nodes(series(disk=lambda at: 0.97 if at >= 1800 else 0.6)),
        "disk-filling warning run 1800: disk is 97% full"),
    "a checkpoint every twenty minutes": (lambda: nodes(series(disk=lambda at: 0.5 + (at // 1200) * 0.14)),
        "disk-filling warning run 0"),
    "one that fits": (lambda: nodes(series(disk=lambda at: 0.3 + (at // 1200) * 0.1)), ""),
    "saves that are kept elsewhere, or nowhere": (lambda: run(
        sorted([*steps(4000), *((n * 900.5, f"Saving model checkpoint to /x/checkpoint-{n}") for n in (1, 2))]),
        4000, checkpoints=()), "checkpoint-overdue info run 900: 2 saves in the log, none stored"),
    "overdue": (lambda: run(steps(5600), 5600, checkpoints=SAVED),
        "checkpoint-overdue warning run 5000: no checkpoint for 26m, usually every 16m"),
    "a run that got slower saves later": (lambda: run(SLOW_STEPS, 5800, checkpoints=SAVED),
        "slowdown warning run 3780"),
    "a stalled run owes none": (lambda: run(steps(4100), 9000, checkpoints=SAVED), "stalled critical run 4100"),
    "the steps are not read yet": (lambda: look(6500, checkpoints=SAVED, log_read=False), ""),
    "saves that only the log tells": (lambda: run(steps(6000) + SAVES, 6000), "checkpoint-overdue warning run 4000"),
    "first evaluations, where one is enough": (
        lambda: run([(1.0, "step 50: eval_loss=1.0"), (500.0, "step 100: eval_loss=2.0")], 500,
                    rules=Thresholds(overfit_evaluations=0)), ""),
    "one restart is luck": (lambda: run(ONCE, 2300), ""),
    "restarts by the log": (lambda: run(TWICE, 4300), "restarts warning run 2000: restarted 2 times, last 5m ago"),
    "a last line after the error": (
        lambda: run([*steps(1000), (1000.0, "RuntimeError: CUDA error"), (1000.1, "step=200/90000 loss=1.0"),
                     *((1300.0 + at, line) for at, line in steps(1000)), (2300.0, "RuntimeError: CUDA error"),
                     (2300.1, "step=200/90000 loss=1.0"), *((2600.0 + at, line) for at, line in steps(300))], 2900),
        "restarts warning run 1305 | errors info"),
    "by the history": (lambda: look(1100, queue=RESTARTED), "restarts warning run 500"),
    "what TensorFlow always prints": (
        lambda: run(sorted([*steps(3600), (3000.0, "E0302 08:02:11.120101 cuda_dnn.cc:8310] Unable to "
                                                   "register cuDNN factory: already registered")]), 3600), ""),
    "one before a count that moves": (
        lambda: run([(60.0, "ERROR: no cached data"),
                     *((at, f"Tokenizing: {at / 60:.0f}/90 shards") for at in range(120, 1500, 60))], 1500), "errors info"),
    "errors": (lambda: run(sorted([*steps(3600), *ERRORS]), 3600),
        "errors info run 3000: 2 errors in the log, first 10m ago: ERROR: no server (training continued)"),
    "more errors than are kept": (
        lambda: run(sorted([*steps(3600), *((n * 30.0, f"ValueError: bad {n}") for n in range(1, 110))]), 3600),
        "errors info run 1800: at least 50 errors in the log in the last 30m: ValueError: bad 60"),
    "an error that training survives": (lambda: run(sorted([*steps(3600), FAILED]), 3600), "errors info run 3000"),
    "one that it does not": (lambda: run(sorted([*steps(3000), FAILED]), 3100), "errors warning run 3000"),
    "an error of long ago": (lambda: run(sorted([*steps(5200), FAILED]), 5200), ""),
    "waiting": (lambda: look(1560, queue=QUEUE, **WAITING),
        "queued info run 0: waiting 26m for 8 H100; at submission 72 of 96 in use by big, b; 1 ahead: x"),
    "with none ahead": (lambda: look(1560, queue=NONE_AHEAD, **WAITING),
        "queued info run 0: waiting 26m for 8 H100; at submission 10m ago 72 of 96 in use by big, b; none ah"),
    "behind a CPU job": (lambda: look(1560, queue=FOR_CPUS, **WAITING),
        "queued info run 0: waiting 26m for 8 H100; at submission in use by x; none ahead"),
    "with more in use than the limit": (lambda: look(1560, queue=ON_SPOT, **WAITING),
        "queued info run 0: waiting 26m for 8 H100; at submission 72 in use by big, b (the limit of 64 excl"),
    "without a history": (lambda: look(600, **WAITING), "queued info run 0: waiting 10m for 8 H100"),
}  # fmt: skip
"""Looks, and how each finding begins, with | between them: kind, severity, node, second since when, text."""


@pytest.mark.parametrize("name", FOUND)
@pytest.mark.proves("README.md", "Is it healthy, how fast is it, which node is slow?")
@pytest.mark.proves("docs/health.md", "Health and cost")
def test_what_is_found(name: str) -> None:
    look_at, expected = FOUND[name]
    said = [
        f"{one.kind} {one.severity} {one.node or 'run'}"
        f" {one.since and round(one.since.timestamp() - START_S)}: {one.text}"
        for one in look_at()
    ]
    begins = expected.split(" | ") if expected else []
    assert [one[: len(begin)] for one, begin in zip(said, begins, strict=True)] == begins


def test_samples_that_came_late_do_not_move_the_clock() -> None:
    offset = ClockOffset()
    offset.add_response(START_S + 600, START_S + 1000)
    offset.add_response(START_S + 605, START_S + 1300)
    assert offset.ahead_s == 400
    offset = ClockOffset()
    offset.add_response(START_S, START_S + 50)
    offset.add_response(START_S, START_S + 700, step_s=360)
    assert offset.ahead_s == 0
    offset.add_response(START_S + 900, START_S)
    assert offset.ahead_s == -900


@pytest.mark.parametrize(
    ("bad", "wavering", "well"),
    [
        (series(gpu=0.74), series(gpu=0.785), series(gpu=0.9)),
        (series(gpu_memory=79.2 * GIB), series(gpu_memory=77 * GIB), WELL),
    ],
)
@pytest.mark.proves("docs/health.md", "Health and cost")
def test_what_was_found_is_held_until_it_is_clearly_over(bad: Any, wavering: Any, well: Any) -> None:
    found = nodes(*[WELL] * 3, bad)
    assert len(found) == 1 and nodes(*[WELL] * 3, wavering) == ()
    held = nodes(*[WELL] * 3, wavering, at_s=3700, previous=found)
    assert [(one.key, one.since) for one in held] == [(one.key, one.since) for one in found]
    assert nodes(*[WELL] * 3, well, at_s=3700, previous=found) == ()


def test_a_loss_that_rose_slowly_stays_diverged() -> None:
    lines = steps(4900, every_s=10, loss=lambda step: 2.4 + 7 * 0.98**step + max(0, step - 400) * 0.05)
    found = run(lines, 4900)
    assert kinds(found) == kinds(run(lines, 4900, previous=found)) == ["loss-exploding"]


def test_noisy_loss_that_is_low_for_a_moment_before_it_is_nan_is_judged() -> None:
    noise = random.Random(1)
    values = [*(noise.lognormvariate(0, 0.6) for _ in range(80)), *[30.0] * 12, *[1.0] * 3, math.nan]
    assert worsened(Series("loss", tuple(map(float, range(len(values)))), tuple(values)), 0.2) is None


def test_a_speed_that_falls_back_to_where_each_epoch_begins_has_not_got_worse() -> None:
    first_epoch = (30.7, 32.8, 35.5, 38.6, 42.5, 46.7)  # thousands of tokens a second, each 400 s
    assert fall_of(*first_epoch, 29.5, 27.0) is None
    assert fall_of(*first_epoch, 16.0, 15.0) is not None


def fall_of(*speeds: float) -> object:
    curve = Series("speed", tuple(400.0 * n for n in range(len(speeds))), tuple(-speed for speed in speeds))
    return worsened(curve, 0.36, newest=2, earlier=4, descends=False)


def test_one_gpu_that_does_nothing_beside_others_that_work() -> None:
    (found,) = nodes({**WELL, "gpu_utilization": {"0": samples(HOUR, 0.9), "1": samples(HOUR, 0.0)}})
    assert (found.kind, found.text) == (
        KINDS["gpu-idle"],
        "node-0: GPU 1 idle for 1h 00m while 1 other works",
    )
    assert brief(found, moment(HOUR[-1])).startswith("node-0 GPU 1 idle "), "not the whole node"


def test_one_gpu_may_be_enough_for_what_follows_the_last_step() -> None:
    ends = {"0": samples(HOUR, 0.9), "1": samples(HOUR, lambda at: 0.9 if at < 1800 else 0.0)}
    lines = [(18.0 * step, f"step={step}/100 loss=1.0") for step in range(1, 101)]
    more = [(at, f"quantizing layer {at / 60:.0f}") for at in range(1860, 3600, 60)]
    assert kinds(nodes({**WELL, "gpu_utilization": ends}, progress=told([*lines, *more]))) == []
    unfinished = told(
        [(at, line.replace("/100", "/900")) for at, line in lines]
        + [(at, f"step={at / 18:.0f}/900 loss=1.0") for at in range(1818, 3600, 18)]
    )
    assert kinds(nodes({**WELL, "gpu_utilization": ends}, progress=unfinished)) == ["gpu-idle"]


def test_gpu_of_a_rank_that_prepares_the_data_is_excused_while_a_bar_moves() -> None:
    waiting = {"0": samples(HOUR, 0.0), "1": samples(HOUR, 1.0)}
    bars = [
        (at, f"Tokenizing: {at // 36:.0f}%|##| {at // 36:.0f}/100 [00:10<00:10,  1.0it/s]") for at in HOUR
    ]
    found = nodes({**WELL, "gpu_utilization": waiting}, progress=told(bars))
    stuck = nodes({**WELL, "gpu_utilization": waiting}, progress=told(bars[:30]))
    assert (kinds(found), kinds(stuck)) == ([], ["gpu-idle"])


@pytest.mark.parametrize(("loss", "severity"), [(1.1, "warning"), (1.9, "info")])
def test_overdue_save_is_a_remark_if_no_evaluation_is_better(loss: float, severity: str) -> None:
    overdue = [found.severity for found in best_only(loss) if str(found.kind) == "checkpoint-overdue"]
    assert overdue == [severity]


@pytest.mark.parametrize(("last_s", "lost"), [(3300, ["node-1: no metrics of GPU 1 for 5m"]), (3420, [])])
def test_gpu_without_samples_is_reported_if_its_node_sends_some(last_s: int, lost: list[str]) -> None:
    utilization = {"0": samples(HOUR, 0.9), "1": samples(range(0, last_s + 1, 60), 0.9)}
    texts = [finding.text for finding in nodes(WELL, series() | {"gpu_utilization": utilization})]
    assert [text.removesuffix(", unlike its other GPUs") for text in texts] == lost


def test_answers_that_hold_next_to_nothing_are_judged_too():
    bare = {"gpu_utilization": {"0": None, "1": []}, "cpu_usage": samples(HOUR, lambda at: None)}
    for one in (bare, {}):
        looks = [nodes(WELL, one, job=job) for job in ({}, {"instance_type": {}})]
    assert looks[0] == ()


def test_losses_of_reinforcement_learning_and_of_diffusion_have_not_exploded():
    draw = random.Random(3)
    noises = [[draw.lognormvariate(-2.5, 1) for _ in range(301)] for _ in range(9)]
    for loss in (
        lambda step: 0.0 if step < 120 else 0.0004 * (step % 7),  # GRPO's first steps tell 0.0
        lambda step: 0.0008 + 0.00005 * step,  # its KL grows
        *(noise.__getitem__ for noise in noises),
    ):
        folding = ProgressFold()
        for count, (at, text) in enumerate(steps(1500, loss=loss)):
            folding.add([LogLine(round((START_S + at) * 1e9), text, "node-0", None)])
            assert count % 6 or look(at, progress=folding.snapshot()) == (), count


def test_a_long_error_is_cut_where_a_word_ends_and_says_so():
    words = " ".join(f"word{n:03}" for n in range(100))
    (found,) = run([*steps(600), (601.0, f"ValueError: {words}")], 700)
    for form, most in ((found.text, 360), (found.short, SHORT_CHARACTERS)):
        assert len(form) <= most
        assert form.endswith("…")
        assert form.removesuffix("…").rpartition(" ")[2] in words.split()
    assert HealthFinding(KINDS["errors"], "warning", "x" * 200).short == "x" * (SHORT_CHARACTERS - 1) + "…"
    (waiting,) = look(1560, queue=QUEUE, **WAITING)
    (two,) = FOUND["errors"][0]()
    assert (waiting.short, two.short) == ("waiting 26m for 8 H100", "2 errors: no server")


@pytest.mark.parametrize("status", ["COMPLETED", "FAILED", "STOPPED", "DEPLOYING", "FROM_THE_FUTURE"])
def test_only_jobs_that_run_or_wait_are_judged(status):
    assert run(steps(600), 9999, status=status, health_metrics=metrics(series(gpu=0.0))) == ()


ONSET = 1800


@pytest.mark.parametrize(
    ("kind", "nodes"),
    [
        ("straggler", [{}, {}, {}, {"gpu": lambda at: 0.95 if at < ONSET else 0.6}]),
        ("gpu-idle", [{"gpu": lambda at: 0.95 if at < ONSET else 0.06 * (at % 600 == 0)}]),
        ("gpu-memory", [{"gpu_memory": lambda at: (60 if at < ONSET else 79.5) * GIB}]),
        ("memory-leak", [{"gpu_memory": lambda at: (70.2 + max(0.0, at - ONSET) / 500) * GIB}]),
        ("disk-filling", [{"disk": lambda at: (72.2 + max(0.0, at - ONSET) / 500) / 80}]),
        ("disk-filling", [{"disk": lambda at: 0.5 if at < ONSET else 0.97}]),
    ],
)
@pytest.mark.proves("docs/health.md", "Health and cost")
def test_since_is_when_it_began_at_whatever_moment_one_looks(kind, nodes):
    whole = range(0, 5460, 60)
    for until in (3600, 4200, 5400):
        answer = [series([at for at in whole if at <= until], **levels) for levels in nodes]
        (found,) = look(until, health_metrics=metrics(*answer))
        assert str(found.kind) == kind
        assert found.since is not None
        assert abs((found.since - moment(ONSET)).total_seconds()) <= 300, until


# Sick runs beside healthy ones that look alike


def by_losses(loss: Callable[[int], float], text: str = "") -> Callable[[], tuple[HealthFinding, ...]]:
    lines = [(at, line + text) for at, line in steps(7000, every_s=10, loss=loss)]
    return lambda: run(lines, 7000)


def slower(
    text: str = "", memory: Callable[[float], float] | float = 60e9, inputs: int = 1024
) -> tuple[HealthFinding, ...]:
    times = range(0, 16_000, 60)
    lines = paced(lambda at: 10 if at < 9000 else 15, 15_900, text)
    lines += [(n * 100.5, f"actual seqlen: {1024 if n < 90 else inputs} | TFLOPs: 101.5") for n in range(150)]
    return run(sorted(lines), 15_900, health_metrics=metrics(series(times, gpu_memory=memory)))


def saved_until(listed: int) -> tuple[HealthFinding, ...]:
    lines = steps(9000)
    lines += [(n * 1000 + 1.0, f"Saving model checkpoint to /x/checkpoint-{n * 200}") for n in range(1, 9)]
    saved = tuple(checkpoint(n * 1000 + 60, n * 200) for n in range(1, listed + 1))
    return run(sorted(lines), 9000, checkpoints=saved)


def best_only(after: float) -> tuple[HealthFinding, ...]:
    losses = [2 - n / 10 if n < 6 else after for n in range(1, 9)]
    lines = [(n * 1000 + 1.0, f"step {n * 200}: eval_loss={loss}") for n, loss in enumerate(losses, 1)]
    saved = [checkpoint(n * 1000 + 9, 0) for n in range(1, 6)]
    return run(sorted([*steps(9000), *lines]), 9000, checkpoints=saved)


def saving(*at_steps: int, until: int) -> tuple[HealthFinding, ...]:
    return run(steps(until * 5), until * 5, checkpoints=[checkpoint(step * 5 + 9, step) for step in at_steps])


def paused(at_s: float) -> tuple[HealthFinding, ...]:
    moved = [(at + (at > 4100) * 2000, text) for at, text in steps(at_s)]
    return run(moved, at_s + 2000, checkpoints=[checkpoint(n * 1000, n) for n in range(1, 5)])


def slow_rank(factor: float) -> tuple[HealthFinding, ...]:
    draw = random.Random(1)
    taken = [[10 * draw.gauss(factor if rank == 2 else 1, 0.02) for _ in range(60)] for rank in range(4)]
    return look(601, progress=ranks(*taken))


def counted(by: int, at_s: float = 2410) -> tuple[HealthFinding, ...]:
    other = [(600 + 20.0 * n, f"03/04 21:13:{n % 60:02} - Scored: {7 + by * n}/900") for n in range(1, 76)]
    return run([*steps(600), *other], at_s)


def overflowing(count: int) -> tuple[HealthFinding, ...]:
    skipped = [
        (600 + n * 20.0, "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 1") for n in range(count)
    ]
    return run([*steps(599), *skipped, *((600 + n * 5.0, f"step={120 + n}/90000") for n in range(80))], 1000)


def without_steps(every_s: float) -> tuple[HealthFinding, ...]:
    lines = paced(lambda at: 10 if at < 9000 else every_s, 15_900)
    return run([(at, "{'loss': 1.0, 'grad_norm': 0.5}") for at, _ in lines], 15_900)


def begun_again(*starts: float) -> tuple[HealthFinding, ...]:
    lines = steps(7000, every_s=10, loss=lambda step: 9.0 if step < 50 or step > 650 else 1.5)
    return run(lines, 7000, queue=started(0, *starts))


def resting(*lines: tuple[float, str], **known: object) -> tuple[HealthFinding, ...]:
    """A run whose GPUs stop at 3015 s, as its steps do; the samples are a minute old."""
    return run([*steps(2915), *lines], 3660, health_metrics=metrics(stopping(2915)), **known)


def drifting(by: float) -> tuple[HealthFinding, ...]:
    """A loss that falls from 6 to 2 and drifts up, too slowly to stand out from its newest values."""
    loss = lambda step: 2 + 4 * 0.99**step + max(0, step - 900) / 700 * by  # noqa: E731
    return run(steps(16_000, every_s=10, loss=loss), 16_000)


def evaluated(rise: float, *, to: float = 0.5, **fields: Any) -> tuple[HealthFinding, ...]:
    lines = steps(9000, every_s=10, loss=lambda step: to + (2.5 - to) * 0.995**step)
    after = [max(0, n - 10) * rise + 1 + 0.8**n + 0.01 * (n * 7 % 5) for n in range(18)]
    lines += [(500.0 * n + 1, f"step {50 * n}: eval_loss={loss}") for n, loss in enumerate(after)]
    return run(sorted(lines), 9000, **fields)


def starved(gpu: float, cpu: float = 62.0, text: str = "", **fields: Any) -> tuple[HealthFinding, ...]:
    times, machine = range(0, 8000, 60), H100.model_copy(update={"millicpu_limit": 64000}).model_dump()
    node = series(times, gpu=gpu) | {"cpu_usage": samples(times, cpu)}
    lines = paced(lambda at: 10, 7990, text)
    return run(lines, 8000, health_metrics=metrics(node), job={"instance_type": machine}, **fields)


def pinned(lines: Lines, at_s: int, use: float = 1.0) -> tuple[HealthFinding, ...]:
    gpu = series(range(0, at_s, 60), gpu=lambda at: use if at > 600 else 0.9)
    return run(lines, at_s, health_metrics=metrics(gpu))


def prepared(until_s: int) -> tuple[HealthFinding, ...]:
    lines = [(at, f"shard {at} is ready") for at in range(0, until_s, 60)]
    return run(lines, 4300, health_metrics=metrics(series(range(0, 4300, 60), gpu=0.0)))


BAR = (60.0, "  0%|          | 0/5000 [00:00<?, ?it/s]")
COMPILES = [(3060.0 + 60 * n, f"[inductor] compiling graph {n}/9") for n in range(10)]
GOES_ON = [(3605.0 + 5 * n, f"step={604 + n}/90000 loss=1.0") for n in range(9)]
SETTINGS = (1.0, "TrainingArguments(save_strategy=steps, save_steps=200)")
STILL = {"health_metrics": metrics(series(range(0, 1440, 60), gpu=0.0))}
Look = Callable[[], tuple[HealthFinding, ...]]
WAITS, BUSY = series(gpu=lambda at: 0.97 if at < 1800 else 0.83), series(gpu=0.97)
PAIRS: dict[str, tuple[Look, str, Look]] = {
    "longer inputs in tokens": (slower, "slowdown", lambda: slower(" tokens_per_s=41000")),
    "longer inputs by memory": (
        slower, "slowdown", lambda: slower(memory=lambda at: 50e9 if at < 9000 else 60e9)),
    "pauses that come again": (
        lambda: run(paced(lambda at: 26 if at > 9000 and at % 200 < 99 else 10, 15_900), 15_900), "slowdown",
        lambda: run(paced(lambda at: 90 if at > 9000 and at % 300 < 10 else 10, 15_900), 15_900)),
    "saves that come": (lambda: saved_until(5), "checkpoint-overdue", lambda: saved_until(8)),
    "a save not due yet": (lambda: run([SETTINGS, *steps(3900)], 3900, checkpoints=()), "checkpoint-overdue",
        lambda: run([SETTINGS, *steps(1500)], 1500, checkpoints=())),
    "saves at powers of two": (lambda: saving(100, 200, 300, 400, until=700), "checkpoint-overdue",
        lambda: saving(64, 128, 256, until=500)),
    "a save after a long pause": (lambda: paused(6500), "checkpoint-overdue", lambda: paused(5100)),
    "noise": (lambda: slow_rank(1.15), "straggler", lambda: slow_rank(1.05)),
    "a save at a round step": (lambda: run(steps(3665), 4365), "stalled", lambda: run(steps(3500), 4200)),
    "GPUs that do other work": (lambda: pinned(steps(600), 1260), "stalled",
        lambda: pinned(steps(600), 1260, 0.6)),
    "a start that is logged": (lambda: prepared(600), "gpu-idle", lambda: prepared(3000)),
    "a bar at zero": (lambda: run(steps(60), 1440, **STILL), "stalled", lambda: run([BAR], 1440, **STILL)),
    "a count that moves": (lambda: counted(0), "stalled", lambda: counted(1)),
    "words that the run has never logged": (lambda: run(steps(2660), 3400), "stalled",
        lambda: run([*steps(2660), (2661.0, "Merging shards")], 3400)),
    "a few steps that are skipped": (lambda: overflowing(20), "loss-not-finite", lambda: overflowing(5)),
    "longer inputs in the log": (slower, "slowdown", lambda: slower(inputs=2048)),
    "a trainer beside its rollouts": (lambda: nodes(*[WAITS] * 3, BUSY, progress=told(steps(3600))), "straggler",
        lambda: nodes(*[WAITS] * 3, BUSY, progress=told(paced(lambda at: 5, 3600, " reward=1")))),
    "a restart": (lambda: run(steps(600), 1500, queue=started(0)), "stalled",
        lambda: run(steps(600), 1500, queue=started(0, 610))),
    "lines that cannot be read": (lambda: run(steps(600), 1500), "stalled",
        lambda: look(1500, progress=told(steps(600), gap=1400))),
    "the first loss again": (begun_again, "loss-exploding", lambda: begun_again(6490)),
    "growth from afar": (lambda: nodes(series(gpu_memory=lambda at: (64 + at / 360) * GIB)), "memory-leak",
        lambda: nodes(series(gpu_memory=lambda at: (28 + at / 360) * GIB))),
    "lines without steps": (lambda: without_steps(40), "slowdown", lambda: without_steps(11)),
    "a NaN now and then": (by_losses(lambda step: float("nan") if step > 690 else 1.0), "loss-not-finite",
        by_losses(lambda step: float("nan") if step in (300, 700) else 1.0)),
    "harder data": (by_losses(lambda step: 7.2 if step > 600 else 1.5), "loss-exploding",
        by_losses(lambda step: 1.5 if step < 600 else 1.2 + 1.2 / (1 + (step - 600) / 40))),
    "rewards": (by_losses(lambda step: 1.5 if step < 600 else 9.0), "loss-exploding",
        by_losses(lambda step: 1.5 + step / 140, " mean_reward=3.1")),
    "negative": (by_losses(lambda step: -0.9 if step < 600 else 30.0), "loss-exploding",
        by_losses(lambda step: -0.9 + (step % 90) / 150)),
    "a slow rise of the loss alone": (lambda: drifting(1.4), "loss-exploding", lambda: drifting(0.8)),
    "two adversaries": (by_losses(lambda step: 9.0 * 0.99**step + max(0, step - 500) / 40), "loss-exploding",
        by_losses(lambda step: 1.25 + 0.55 * math.cos(step / 17))),
    "the tops of a close group": (lambda: nodes(*[WAITS] * 3, BUSY), "straggler",
        lambda: nodes(*[series(gpu=0.83)] * 3, BUSY)),
    "what fills before it works": (lambda: nodes(series(disk=lambda at: 0.42 + at / 7200)), "disk-filling",
        lambda: nodes(series(gpu=lambda at: 0.95 if at > 3400 else 0.0, disk=lambda at: 0.42 + at / 7200))),
    "an evaluation loss that levels off": (lambda: evaluated(0.03), "overfitting", lambda: evaluated(0.001)),
    "a training loss that rises as well": (lambda: evaluated(0.03), "overfitting",
        lambda: evaluated(0.03, to=2.6)),
    "a small model": (lambda: starved(0.31), "gpu-underused", lambda: starved(0.31, 20)),
    "environments of rewards": (lambda: starved(0.12, 20), "gpu-underused",
        lambda: starved(0.12, 62, " mean_reward=3.1")),
    "a pause that is over": (lambda: resting(log_read=False), "gpu-idle",
        lambda: resting(*COMPILES, *GOES_ON, log_read=False)),
    "loading again": (resting, "stalled", lambda: resting((3200.0, "Loading tokenizer"))),
}  # fmt: skip


@pytest.mark.parametrize(("sick", "kind", "healthy"), PAIRS.values(), ids=PAIRS)
@pytest.mark.proves("docs/health.md", "Health and cost")
def test_what_is_sick_is_named_and_what_looks_like_it_is_silent(sick: Look, kind: str, healthy: Look) -> None:
    assert kind in kinds(sick())
    assert [found for found in healthy() if found.severity != "info" or str(found.kind) == kind] == []


def test_a_full_disk_is_not_said_to_fill():
    (found,) = nodes(series(disk=lambda at: min(1.0, 0.3 + at / 3600 * 0.7)))
    assert (found.severity, found.text) == ("critical", "disk is 100% full")


def test_first_look_during_a_save_finds_the_node_that_was_slow_before_it() -> None:
    """Nobody watched before, so that no finding is held over the pause, in which all nodes rest."""
    saves_at = 7200 - 240

    def use(slow: float) -> Level:
        return lambda at: 0.1 if at >= saves_at else 0.95 if at < 3600 else slow

    run = Example("a save", gpu=(use(0.95), use(0.95), use(0.95), use(0.6)), stops_s=saves_at)
    *_, found = watch_example(run, look_s=7200)
    assert [finding.short for finding in found if str(finding.kind) == "straggler"] == [
        "node-3 slow: GPU 60% vs 95%"
    ]
    healthy = replace(run, gpu=(use(0.95),) * 4)
    assert not any(str(finding.kind) == "straggler" for finding in [*watch_example(healthy, look_s=7200)][-1])


def test_problem_that_begins_with_the_part_of_the_log_that_was_read_has_no_time_yet() -> None:
    job = TrainingJob.model_validate(
        {"id": "j", "current_status": "TRAINING_JOB_RUNNING", "instance_type": H100.model_dump()}
    )
    lines = steps(6000, loss=lambda step: math.nan if step > 600 else 1.0)
    for begin_s, known in ((4000.0, {False: False, True: True}), (0.0, {False: True, True: True})):
        progress = told([line for line in lines if line[0] > begin_s])
        for log_read, has_time in known.items():
            seen = RunSnapshot(job, moment(6000), moment(6000), progress=progress, log_read=log_read)
            (finding,) = (each for each in judged(seen).findings if each.kind.loss)
            assert (finding.since is not None) == has_time


def test_node_that_fell_silent_with_its_run_is_not_still_logging():
    lines = {"node_1": [line for line in SELDOM["node_1"] if line[0] < 2900]}
    texts = [found.text for found in nodes(WELL, GONE, progress=told(steps(2900), **lines))]
    assert "node-1: no metrics for 11m" in texts


def test_node_that_is_missing_is_not_called_slow_but_another_is() -> None:
    straggler = next(check for check in CHECKS if str(check.kind) == "straggler")
    slow = [HealthFinding(straggler.kind, "warning", "slow", node) for node in ("node-1", "node-2")]
    missing = HealthFinding(KINDS["node-missing"], "critical", "missing", "node-1")
    assert straggler.unexplained(slow, [missing]) == slow[1:]


def test_finding_from_before_the_log_was_read_explains_later_ones() -> None:
    stalled = HealthFinding(KINDS["stalled"], "critical", "no step for 1h")
    overdue = HealthFinding(KINDS["checkpoint-overdue"], "warning", "no checkpoint for 2h")
    leak = HealthFinding(KINDS["errors"], "warning", "errors in the log")
    assert with_earlier([overdue, leak], [stalled]) == (stalled, leak)
    assert with_earlier([overdue, leak], []) == (overdue, leak)
    assert with_earlier([stalled, leak], [stalled]) == (stalled, leak)


@pytest.mark.parametrize(
    ("severity", "node", "advice"),
    [("warning", None, "stop it now"), ("warning", "node-1", ""), ("critical", "node-1", "")],
)
def test_only_what_ruins_the_whole_run_is_a_reason_to_stop_it(
    severity: Severity, node: str | None, advice: str
) -> None:
    idle = HealthFinding(KINDS["gpu-idle"], severity, "GPUs idle", node)
    assert stop_advice([idle]).partition(":")[0] == advice


def test_a_dead_gpu_is_named_on_and_on_while_other_counts_move() -> None:
    use = {"0": samples(HOUR, 0.9), "1": samples(HOUR, 0.0)}
    lines = [
        (at + later_s, text)
        for at in range(0, 3600, 70)
        for later_s, text in (
            (0, f"step={at // 70 + 1}/900 loss=1.0"),
            *((9 * n, f"Generating rollouts: {n}/8") for n in range(1, 7)),
        )
    ]
    for until in range(3540, 3600, 10):
        progress = told([(at, text) for at, text in lines if at <= until])
        assert kinds(nodes({**WELL, "gpu_utilization": use}, progress=progress)) == ["gpu-idle"]
