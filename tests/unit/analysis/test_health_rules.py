"""Each kind of finding: what brings it, what ends it, and what looks like it and is none."""

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from metrics_payloads import START_S, node_series, payload, samples

from api_client.models import Checkpoint, InstanceType, QueueContext, QueueEvent, TrainingJob
from api_client.models.logs import LogLine
from tui.analysis.connection import ClockOffset
from tui.analysis.fleet.snapshot import brief
from tui.analysis.health.checks import health
from tui.analysis.health.rules import HealthRules
from tui.analysis.node_metrics import MetricsFold, MetricsSnapshot
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.finding import SHORT_CHARACTERS, FindingKind, HealthFinding
from tui.analysis.run.snapshot import RunSnapshot

HOUR = range(0, 3660, 60)
GIB = 1024**3
H100 = InstanceType(
    id="h100", gpu_count=2, gpu_type="H100", gpu_memory_limit_mib=81920, memory_limit_mib=1024 * 400
)


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(START_S + seconds, UTC)


Lines = Iterable[tuple[float, str]]


def told(lines: Lines, replica: str | None = "node-0", **others: Lines) -> ProgressSnapshot:
    """What a log tells: the lines of one replica, and those of others by name, with _ for -."""
    folding = ProgressFold()
    for name, those in {replica: lines, **others}.items():
        node = name and name.replace("_", "-")
        folding.add(LogLine(round((START_S + at) * 1e9), text, node, None) for at, text in those)
    return folding.snapshot()


def ranks(*step_times_s: Iterable[float]) -> ProgressSnapshot:
    """What four ranks tell that print how long their steps take."""
    lines = {
        f"node_{rank}": [(10.0 * n, f"step={n} loss=1 step_time_s={took}") for n, took in enumerate(those, 1)]
        for rank, those in enumerate(step_times_s)
    }
    return told([], None, **lines)


def pausing() -> list[tuple[float, str]]:
    """A pause of ten minutes every hundred steps."""
    lines, at = [], 0.0
    for step in range(1, 301):
        at += 600 if step % 100 == 0 else 5
        lines.append((at, f"step={step} loss=1.0"))
    return lines


def started(*seconds: float) -> QueueContext:
    """The history of a job that was started at these seconds."""
    events = [
        QueueEvent(training_job_id="j", status="TRAINING_JOB_RUNNING", created=moment(at)) for at in seconds
    ]
    return QueueContext(target_job_id="j", events=events)


def steps(
    until_s: float, every_s: float = 5.0, loss: Callable[[int], float] = lambda step: 1.0, total: int = 90000
) -> list[tuple[float, str]]:
    return [
        (step * every_s, f"step={step}/{total} loss={loss(step):.5f} grad_norm=0.5")
        for step in range(1, int(until_s / every_s) + 1)
    ]


def series(times: Iterable[int] = HOUR, **levels: Any) -> dict[str, object]:
    """A node's answer with some of its levels replaced: gpu, gpu_memory, memory, disk."""
    times = list(times)
    made = node_series(times, levels.get("gpu", 0.95))
    if "gpu_memory" in levels:
        made["gpu_memory_usage_bytes"] = {gpu: samples(times, levels["gpu_memory"]) for gpu in ("0", "1")}
    if "memory" in levels:
        made["cpu_memory_usage_bytes"] = samples(times, levels["memory"])
    if "disk" in levels:
        made["ephemeral_storage"] = {"usage_bytes": [], "utilization": samples(times, levels["disk"])}
    return made


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
    subject = TrainingJob.model_validate(
        {
            "id": "j",
            "current_status": f"TRAINING_JOB_{status}",
            "instance_type": H100.model_dump(),
            **(job or {}),
        }
    )
    run = RunSnapshot(subject, moment(at_s), moment(at_s), **fields)
    return health(run, rules or HealthRules(), previous)


def kinds(found: tuple[HealthFinding, ...]) -> list[str]:
    return [finding.kind.value for finding in found]


def test_a_healthy_run_has_no_findings():
    well = metrics(*[series(gpu=level) for level in (0.97, 0.96, 0.95)])
    assert look(3605, progress=told(steps(3600)), health_metrics=well) == ()
    assert look(0) == look(0, progress=ProgressSnapshot(), health_metrics=MetricsSnapshot()) == ()


def test_the_worst_comes_first():
    broken = [(600.0 + n, f"step={120 + n} loss=nan") for n in (1, 2, 3)]
    progress = told([*steps(600), *broken, (604.0, "ValueError: no")])
    assert kinds(look(1560, progress=progress)) == ["stalled", "loss-not-finite", "errors"]


# Stalls


def test_a_hang_at_full_utilisation_is_a_stall():
    (found,) = look(1560, progress=told(steps(600)), health_metrics=metrics(series(range(0, 1560, 60))))
    assert (found.kind, found.severity, found.since) == (FindingKind.STALLED, "critical", moment(600))
    assert found.text == "no step and no log line for 16m, usually every 5s; GPUs 95 % busy"


def test_a_run_may_pause_a_little_longer_than_it_ever_has():
    at, run = pausing()[-1][0], told(pausing())
    assert look(at + 700, progress=run) == ()
    assert kinds(look(at + 760, progress=run)) == ["stalled"]


def test_a_run_that_logs_on_without_a_step_has_stalled_too():
    lines = [*steps(600), *((600 + n * 10, f"heartbeat {n} ok") for n in range(200))]
    run = told(lines)
    assert look(1400, progress=run) == ()
    (found,) = look(600 + 1000, progress=run)
    assert (found.kind, found.severity, found.since) == (FindingKind.STALLED, "warning", moment(600))
    assert found.text == "no step for 16m, usually every 5s, but still logging"


def test_a_log_without_steps_that_falls_silent():
    lines = [(n * 30.0, f"scored {n} answers") for n in range(100)]
    assert look(2970 + 1700, progress=told(lines)) == ()
    assert kinds(look(2970 + 1900, progress=told(lines))) == ["stalled"]
    assert look(9000, progress=told(lines[:3])) == (), "a session that says nothing is no run"


def test_a_clock_that_is_ahead_sees_no_stall():
    offset = ClockOffset()
    offset.saw(START_S + 600, START_S + 1000)
    offset.saw(START_S + 605, START_S + 1300)  # samples came late: our clock is not further ahead for that
    assert offset.ahead_s == 400
    assert look(1010, progress=told(steps(600)), clock_ahead_s=offset.ahead_s) == ()
    assert kinds(look(1300, progress=told(steps(600)), clock_ahead_s=offset.ahead_s)) == ["stalled"]


def test_samples_that_are_a_little_late_tell_nothing_of_the_clock():
    offset = ClockOffset()
    offset.saw(START_S, START_S + 50)
    offset.saw(START_S, START_S + 700, step_s=360)
    assert offset.ahead_s == 0
    offset.saw(START_S + 900, START_S)
    assert offset.ahead_s == -900


# Loss


def test_a_loss_that_explodes_and_one_that_only_spikes():
    exploding = lambda step: 1.0 + 0.02 * (step % 5) + (0.5 * (step - 180) if step > 180 else 0)  # noqa: E731
    (found,) = look(1000, progress=told(steps(1000, loss=exploding)))
    assert (found.kind, found.severity) == (FindingKind.LOSS_EXPLODING, "critical")
    assert found.since is not None
    assert moment(900) <= found.since <= moment(930)
    spike = lambda step: 40.0 if step in (150, 198) else 1.0 + 0.02 * (step % 5)  # noqa: E731
    assert look(1000, progress=told(steps(1000, loss=spike))) == ()


@pytest.mark.parametrize(("loss", "shown"), [("nan", "NaN"), ("inf", "inf")])
def test_a_loss_that_is_no_number(loss: str, shown: str):
    lines = steps(600, loss=lambda step: 1.0 if step <= 60 else float(loss))
    (found,) = look(605, progress=told(lines))
    assert (found.kind, found.severity) == (FindingKind.LOSS_NOT_FINITE, "critical")
    assert (found.text, found.since) == (f"loss is {shown}", moment(305))


def test_losses_of_reinforcement_learning_and_of_diffusion_have_not_exploded():
    draw = random.Random(3)
    noise = [draw.lognormvariate(-2.5, 1) for _ in range(4000)]
    for loss in (
        lambda step: 0.0 if step < 120 else 0.0004 * (step % 7),  # GRPO's first steps tell 0.0
        lambda step: 0.0008 + 0.00005 * step,  # its KL grows
        lambda step: noise[step],
    ):
        folding = ProgressFold()
        for count, (at, text) in enumerate(steps(3000, loss=loss)):
            folding.add([LogLine(round((START_S + at) * 1e9), text, "node-0", None)])
            assert count % 40 or look(at, progress=folding.snapshot()) == (), count


def test_a_first_step_makes_no_rhythm():
    first = told(steps(5))
    assert look(20 * 60, progress=first) == ()
    assert kinds(look(40 * 60, progress=first)) == ["stalled"]


def test_a_loss_that_creeps_back_above_where_it_began_has_diverged():
    creeping = lambda step: 2.0 / (1 + step / 50) if step < 800 else 0.12 * 1.003 ** (step - 800)  # noqa: E731
    found = look(10000, progress=told(steps(10000, loss=creeping)))
    assert kinds(found) == ["loss-exploding"]


@pytest.mark.parametrize(
    "loss",
    [
        lambda step: 11.0 / step**0.3,
        lambda step: 0.03 * ((step * 7919) % 13 - 6) / 6,  # a policy loss that wavers around zero
        lambda step: 0.08 * (1 + 0.4 * ((step * 31) % 11 - 5) / 5),
        lambda step: 1.0 if step < 100 else 1.3,  # other data
    ],
    ids=["falling", "around-zero", "noisy", "a-step-up"],
)
def test_losses_that_do_not_explode(loss):
    assert look(1500, progress=told(steps(1500, loss=loss))) == ()


def test_gradients_that_are_no_numbers():
    lines = steps(500) + [(500 + n, f"step={100 + n} loss=0.0 grad_norm=nan") for n in range(1, 4)]
    assert look(505, progress=told(lines[:-1])) == (), "one or two are a loss scale finding its place"
    (found,) = look(505, progress=told(lines))
    assert (found.kind, found.text) == (FindingKind.LOSS_NOT_FINITE, "grad norm is NaN")


# GPUs and nodes


def stopping(at_s: float, until: float = 0.01, of: float = 0.9) -> dict[str, object]:
    """A node whose GPUs stop working."""
    return series(gpu=lambda at: of if at < at_s else until)


def test_gpus_that_stopped_working_all_of_them_or_those_of_a_node():
    (found,) = look(health_metrics=metrics(stopping(3240), stopping(3240)))
    assert (found.kind, found.node, found.since) == (FindingKind.GPU_IDLE, None, moment(3240))
    assert found.text == "GPUs idle (below 5 %) for 6m"
    (one,) = look(health_metrics=metrics(series(), stopping(3240)))
    assert (one.kind, one.node) == (FindingKind.GPU_IDLE, "node-1"), "and not slow, too"


def test_gpus_that_are_idle_in_all_that_is_seen_of_a_run_that_told_steps():
    found = look(progress=told(steps(3590)), health_metrics=metrics(series(gpu=0.0)))
    assert kinds(found) == ["gpu-idle"]


def test_gpus_that_have_not_begun_or_only_pause_are_not_idle():
    young = range(0, 660, 60)
    assert look(600, health_metrics=metrics(series(young, gpu=0.0), series(young, gpu=0.01))) == ()
    loading = series(young, gpu=lambda at: 0.1 if at < 200 else 0.01)
    assert look(600, health_metrics=metrics(loading, loading)) == ()
    assert look(health_metrics=metrics(stopping(3400), stopping(3400))) == ()


def test_a_node_that_lags_is_named_with_how_much():
    (found,) = look(health_metrics=metrics(series(gpu=0.97), series(gpu=0.95), series(gpu=0.61)))
    assert (found.kind, found.severity, found.node) == (FindingKind.STRAGGLER, "warning", "node-2")
    assert found.text == "node-2 lags behind the other nodes: GPUs at 61 %, others at 96 %"


def test_the_busy_node_is_to_blame_when_all_others_wait_for_it():
    low = [series(gpu=level) for level in (0.31, 0.3, 0.33)]
    (found,) = look(health_metrics=metrics(*low, series(gpu=0.97)))
    assert (found.kind, found.node) == (FindingKind.STRAGGLER, "node-3")
    assert "keeps the others waiting" in found.text


def test_a_straggler_is_held_until_it_clearly_keeps_up():
    slow = look(health_metrics=metrics(*[series(gpu=0.95)] * 3, series(gpu=0.74)))
    assert kinds(slow) == ["straggler"]
    wavering = metrics(*[series(gpu=0.95)] * 3, series(gpu=0.785))
    assert look(health_metrics=wavering) == ()
    later = look(3700, health_metrics=wavering, previous=slow)
    assert kinds(later) == ["straggler"]
    assert later[0].since == slow[0].since
    assert look(3700, health_metrics=metrics(*[series(gpu=0.95)] * 3, series(gpu=0.9)), previous=slow) == ()


def test_a_straggler_by_the_step_times_that_ranks_print():
    (found,) = look(601, progress=ranks(*([step_s] * 60 for step_s in (1.0, 1.02, 1.6, 0.99))))
    assert (found.kind, found.node) == (FindingKind.STRAGGLER, "node-2")
    assert found.text == "node-2 slow: 1.60s/step vs 1.00s"


def test_one_gpu_that_does_nothing_beside_others_that_work():
    dead = series()
    dead["gpu_utilization"] = {"0": samples(HOUR, 0.9), "1": samples(HOUR, 0.0)}
    (found,) = look(health_metrics=metrics(dead))
    assert (found.kind, found.text) == (
        FindingKind.GPU_IDLE,
        "node-0: GPU 1 idle while another works",
    )
    assert found.short.startswith("node-0 GPU 1 idle for ")
    assert brief(found, datetime.fromtimestamp(START_S + HOUR[-1], UTC)).startswith("node-0 GPU 1 idle "), (
        "not the whole node"
    )


def test_a_node_that_is_heard_no_more_and_one_that_never_was():
    gone = metrics(series(), series(range(0, 3000, 60)))
    (found,) = look(health_metrics=gone)
    assert (found.kind, found.node, found.severity) == (FindingKind.NODE_MISSING, "node-1", "critical")
    assert found.since == moment(2940)
    (never,) = look(health_metrics=metrics(series(), series()), job={"node_count": 3})
    assert (never.kind, never.node) == (FindingKind.NODE_MISSING, None)
    assert never.text == "one node has never sent metrics: 2 of 3 reporting"


GONE_AT_S = 2940
STOPPED = range(0, 3000, 60)


def heard(*nodes: str, quiet: tuple[str, ...] = ()) -> ProgressSnapshot:
    """A log in which each of these replicas prints every 5 s; those in ``quiet`` only until 2900 s."""
    lines = {
        name: [(at, f"batch of {name} loaded") for at in range(0, 2901 if name in quiet else 3601, 5)]
        for name in nodes
    }
    return told([], None, **lines)


def test_a_node_that_logs_is_not_missing_only_its_metrics_are():
    (found,) = look(health_metrics=metrics(series(), series(STOPPED)), progress=heard("node-0", "node-1"))
    assert (found.kind, found.severity, found.node) == (FindingKind.METRICS_MISSING, "warning", "node-1")
    assert found.text == "node-1: no metrics for 11m, still logging"
    assert found.since == moment(GONE_AT_S)


def test_a_node_without_metrics_whose_log_stopped_is_missing():
    progress = heard("node-0", "node-1", quiet=("node-1",))
    (found,) = look(health_metrics=metrics(series(), series(STOPPED)), progress=progress)
    assert (found.kind, found.severity, found.node) == (FindingKind.NODE_MISSING, "critical", "node-1")
    assert found.text == "node-1 is missing: no metrics for 11m, no log line for 11m"


def test_a_node_that_logs_seldom_is_still_logging():
    often = [(at, "step=1 loss=1") for at in range(0, 3600, 5)]
    progress = told(often, node_1=[(at, "saved a shard") for at in range(0, 3600, 600)])
    assert kinds(look(health_metrics=metrics(series(), series(STOPPED)), progress=progress)) == [
        "metrics-missing"
    ]


@pytest.mark.parametrize("name", ["node-0", None])
def test_silence_of_nodes_that_never_log_proves_nothing(name):
    """Only rank 0 logs, or lines name no node: as long as steps are made, the node takes part in them."""
    gone = metrics(series(), series(STOPPED))
    (found,) = look(health_metrics=gone, progress=told(steps(3600), name))
    assert (found.kind, found.severity) == (FindingKind.METRICS_MISSING, "warning")
    assert found.text == "node-1: no metrics for 11m; the run is still logging"
    missing = look(health_metrics=gone, progress=told(steps(2900), name))
    assert ("node-missing", "critical") in [(one.kind.value, one.severity) for one in missing]


def test_replicas_with_names_of_their_own_are_counted():
    gone = metrics(series(), series(STOPPED))
    (found,) = look(health_metrics=gone, progress=heard("g00r0", "g00r1"))
    assert (found.kind, found.node) == (FindingKind.METRICS_MISSING, "node-1")
    assert found.text == "node-1: no metrics for 11m; all 2 nodes are logging"
    (found,) = look(health_metrics=gone, progress=heard("g00r0", "g00r1", quiet=("g00r1",)))
    assert (found.kind, found.severity) == (FindingKind.NODE_MISSING, "critical")


def test_a_node_that_never_had_metrics_and_logs_is_there():
    (found,) = look(
        health_metrics=metrics(series(), series()),
        progress=heard("node-0", "node-1", "node-2"),
        job={"node_count": 3},
    )
    assert (found.kind, found.node) == (FindingKind.METRICS_MISSING, "node-2")
    assert found.text == "node-2: no metrics since it started, still logging"
    (found,) = look(
        health_metrics=metrics(series(), series()), progress=heard("node-0", "node-1"), job={"node_count": 3}
    )
    assert (found.kind, found.node) == (FindingKind.NODE_MISSING, None)


def test_what_is_found_of_a_node_does_not_change_while_nothing_new_is_read():
    """Offline, log and metrics stop at the same time: that is no silence of a node."""
    gone = metrics(series(), series(STOPPED))
    found = look(9000, health_metrics=gone, progress=heard("node-0", "node-1"))
    assert kinds(found)[0] != "node-missing"
    assert "metrics-missing" in kinds(found)


def test_metrics_of_a_whole_job_that_stop_are_missed_where_the_server_still_answers():
    stopped, progress = metrics(series(STOPPED)), heard("node-0")
    assert (
        look(
            GONE_AT_S + 500,
            health_metrics=stopped,
            health_metrics_at=moment(GONE_AT_S + 500),
            progress=progress,
        )
        == ()
    )
    (found,) = look(3600, health_metrics=stopped, health_metrics_at=moment(3600), progress=progress)
    assert (found.kind, found.severity, found.node) == (FindingKind.METRICS_MISSING, "warning", None)
    assert found.text == "no metrics for 11m, still logging"
    assert look(3600, health_metrics=stopped, health_metrics_at=moment(GONE_AT_S), progress=progress) == (), (
        "not asked since"
    )
    behind = look(
        3600, health_metrics=stopped, health_metrics_at=moment(3600), clock_ahead_s=660.0, progress=progress
    )
    assert kinds(behind) == ["metrics-missing"], "the log tells that it is not our clock"


def test_nodes_that_are_late_or_answers_of_the_leader_alone_are_not_missing():
    young = range(0, 240, 60)
    assert look(240, health_metrics=metrics(series(young)), job={"node_count": 3}) == ()
    assert (
        look(health_metrics=metrics(series()), job={"node_count": 4}) == ()
    )  # the leader alone, by its name
    leader = MetricsFold().fold(payload({}, **series()))
    assert look(health_metrics=leader, job={"node_count": 4}) == ()


# Memory and disks


def test_gpu_memory_near_its_limit_and_a_peak_that_passes():
    near = metrics(series(), series(gpu_memory=79.2 * GIB))
    (found,) = look(health_metrics=near)
    assert found.kind == FindingKind.GPU_MEMORY
    assert found.text == "GPU memory at 99 % of 80.0 GiB: node-1 GPU 1 and 1 more"
    peak = metrics(series(gpu_memory=lambda at: 79.2 * GIB if at == 3600 else 60.0 * GIB))
    assert look(health_metrics=peak) == ()
    held = metrics(series(), series(gpu_memory=77 * GIB))
    assert look(health_metrics=held) == ()
    assert kinds(look(health_metrics=held, previous=(found,))) == ["gpu-memory"]


def test_a_leak_with_the_time_until_it_is_full():
    leaking = metrics(series(gpu_memory=lambda at: (60 + at / 3600 * 10) * GIB))
    (found,) = look(health_metrics=leaking)
    assert found.kind == FindingKind.MEMORY_LEAK
    assert found.text == "GPU memory of node-0 GPU 0 (and 1 more) leaks 10.0 GiB/h: full in 1h 00m"
    assert look(health_metrics=metrics(series(memory=lambda at: (280 + at / 3600 * 60) * GIB)))[
        0
    ].text.startswith("memory of node-0 leaks 60.0 GiB/h")


@pytest.mark.parametrize(
    "level",
    [
        lambda at: 60.0 * GIB + (at % 600) * GIB / 100,  # a saw
        lambda at: 40.0 * GIB if at < 3000 else 60.0 * GIB,  # a burst
        lambda at: (40 + min(at, 2700) / 180) * GIB,  # grew, and grows no more
        lambda at: 70.0 * GIB - at * GIB / 1000,
    ],
    ids=["saw", "burst", "settled", "falling"],
)
def test_memory_that_does_not_leak(level):
    assert look(health_metrics=metrics(series(gpu_memory=level))) == ()


def test_a_leak_that_the_end_of_the_run_comes_before_is_none():
    leaking = metrics(series(gpu_memory=lambda at: (60 + at / 3600 * 10) * GIB))
    nearly_done = told(steps(3600, total=800))
    assert look(health_metrics=leaking, progress=nearly_done) == ()


def test_a_disk_and_a_cache_that_fill_up():
    filling = lambda at: 0.62 + at / 3600 * 0.2  # noqa: E731
    (disk,) = look(health_metrics=metrics(series(), series(disk=filling)))
    assert (disk.kind, disk.node, disk.severity) == (FindingKind.DISK_FILLING, "node-1", "warning")
    assert disk.text in {f"disk of node-1 is 82 % full, will be full in {minutes}m" for minutes in (53, 54)}
    (cache,) = look(
        health_metrics=metrics(series(), cache={"usage_bytes": [], "utilization": samples(HOUR, filling)})
    )
    assert cache.kind == FindingKind.CACHE_FILLING
    (full,) = look(health_metrics=metrics(series(disk=0.97)))
    assert full.text == "disk is 97 % full"
    bursts = lambda at: 0.45 + (at // 1200) * 0.12  # noqa: E731 - a checkpoint every twenty minutes
    assert kinds(look(health_metrics=metrics(series(disk=bursts)))) == ["disk-filling"]
    assert look(health_metrics=metrics(series(disk=lambda at: 0.3 + at * 1e-6))) == ()


# Checkpoints, restarts, errors, queue


def checkpoint(at_s: float, step: int) -> Checkpoint:
    return Checkpoint(checkpoint_id=f"checkpoint-{step}", created_at=moment(at_s), training_job_id="j")


def test_a_checkpoint_is_overdue_by_the_clock_and_by_the_steps():
    saved = tuple(checkpoint(n * 1000, n * 200) for n in range(1, 5))
    assert look(5400, checkpoints=saved, progress=told(steps(5400))) == ()
    (found,) = look(5600, checkpoints=saved, progress=told(steps(5600)))
    assert (found.kind, found.since) == (FindingKind.CHECKPOINT_OVERDUE, moment(5000))
    assert found.text == "no checkpoint for 26m, usually every 16m"
    slower = [*steps(4000), *((4000 + n * 20, f"step={800 + n}/90000 loss=1") for n in range(1, 90))]
    slow = look(5800, checkpoints=saved, progress=told(slower))
    assert kinds(slow) == ["slowdown"], "a run that got slower saves later"
    assert look(9999, checkpoints=saved[:2], progress=told(steps(9999))) == (), "two are no rhythm"


def test_a_stalled_run_owes_no_checkpoint():
    saved = tuple(checkpoint(n * 1000, n * 200) for n in range(1, 5))
    assert kinds(look(9000, checkpoints=saved, progress=told(steps(4100)))) == ["stalled"]


def test_checkpoints_that_only_the_log_tells():
    lines = steps(6000) + [
        (n * 1000.0, f"Saving model checkpoint to /out/checkpoint-{n * 200}") for n in range(1, 4)
    ]
    assert kinds(look(6000, progress=told(lines))) == ["checkpoint-overdue"]


def test_repeated_restarts_by_the_log_the_history_or_the_count():
    lines = steps(1000) + [(2000 + n * 5, f"step={100 + n} loss=1") for n in range(50)]
    assert look(2300, progress=told(lines)) == (), "one restart is luck"
    lines += [(4000 + n * 5, f"step={50 + n} loss=1") for n in range(50)]
    (found,) = look(4300, progress=told(lines))
    assert (found.kind, found.text, found.since) == (
        FindingKind.RESTARTS,
        "restarted 2 times, last 5m ago",
        moment(2000 + 5 * 0),
    )
    history = started(0, 500, 1000)
    assert kinds(look(1100, queue=history)) == ["restarts"]
    assert kinds(look(job={"retry_count": 3})) == ["restarts"]
    assert look(30_000, queue=history) == (), "that was long ago"


def test_errors_with_their_number_and_the_first_of_them():
    lines = [
        *steps(3600),
        (3000, "ERROR: could not reach the data server\x1b]0;pwned\x07"),
        (3300, "ValueError: again"),
    ]
    (found,) = look(3600, progress=told(sorted(lines)))
    assert (found.kind, found.since) == (FindingKind.ERRORS, moment(3000))
    assert found.text == "2 errors in the log, first 10m ago: ERROR: could not reach the data server"
    assert found.short == "2 errors: could not reach the data server"
    assert look(3300 + 1900, progress=told(sorted([*lines, *steps(5200)[720:]]))) == ()


def test_a_long_error_is_cut_where_a_word_ends_and_says_so():
    words = " ".join(f"word{n:03}" for n in range(100))
    (found,) = look(700, progress=told(sorted([*steps(600), (601.0, f"ValueError: {words}")])))
    for form, most in ((found.text, 360), (found.short, SHORT_CHARACTERS)):
        assert len(form) <= most
        assert form.endswith("…")
        assert form.removesuffix("…").rpartition(" ")[2] in words.split()
    assert HealthFinding(FindingKind.ERRORS, "warning", "x" * 200).short == "x" * (SHORT_CHARACTERS - 1) + "…"


def test_a_job_that_waits_says_for_what_who_holds_it_and_who_is_ahead():
    queue = QueueContext.model_validate(
        {
            "target_job_id": "j",
            "team_capacity": {"gpu_type": "H100", "max_gpus": 96},
            "active_at_submit": [
                {"training_job_id": "a", "training_job_name": "big", "total_gpus": 64},
                {"training_job_id": "b", "training_job_name": "small", "total_gpus": 8},
            ],
            "pending_ahead_at_submit": [{"training_job_id": "c", "training_job_name": "other"}],
        }
    )
    job = {"created_at": moment(0), "node_count": 4}
    (found,) = look(1560, status="PENDING", queue=queue, job=job)
    assert (found.kind, found.severity, found.since) == (FindingKind.QUEUED, "info", moment(0))
    assert found.text == (
        "waiting 26m for 8 H100; at submission 72 of 96 in use by big, small; 1 ahead: other"
    )
    assert found.short == "waiting 26m for 8 H100"
    later = queue.model_copy(update={"submitted_at": moment(960), "pending_ahead_at_submit": []})
    (again,) = look(1560, status="PENDING", queue=later, job=job)
    assert again.text.endswith("at submission 10m ago 72 of 96 in use by big, small; none ahead")
    assert look(30, status="PENDING", queue=queue, job=job) == ()
    assert look(600, status="QUEUED", job=job)[0].text == "waiting 10m for 8 H100"


# All of them


def test_keys_stay_the_same_while_figures_change():
    run = told(steps(600))
    (one,), (later,) = look(900, progress=run), look(2000, progress=run)
    assert one.text != later.text
    assert one.key == later.key == "stalled"
    straggler = HealthFinding(FindingKind.STRAGGLER, "warning", "slow", "node-2")
    assert straggler.key == "straggler:node-2"


@pytest.mark.parametrize("status", ["COMPLETED", "FAILED", "STOPPED", "DEPLOYING", "FROM_THE_FUTURE"])
def test_only_jobs_that_run_or_wait_are_judged(status):
    assert look(9999, status=status, progress=told(steps(600)), health_metrics=metrics(series(gpu=0.0))) == ()


def test_answers_that_hold_next_to_nothing_are_judged_too():
    bare = {"gpu_utilization": {"0": None, "1": []}, "cpu_usage": samples(HOUR, lambda at: None)}
    fewer = series()
    fewer["gpu_utilization"] = {"0": samples(HOUR, 0.9), "1": samples(range(0, 1800, 60), 0.9)}
    for one in (bare, fewer, {}):
        for job in ({}, {"instance_type": {}}):
            assert look(health_metrics=metrics(series(), one), job=job) is not None
    assert look(health_metrics=metrics(series(), fewer)) == ()


def test_an_hour_of_health_does_not_depend_on_what_the_charts_show():
    leaking = metrics(series(gpu_memory=lambda at: (60 + at / 3600 * 10) * GIB))
    glimpse = MetricsFold().fold(payload({"node-0": series(range(3540, 3660, 5))}))
    assert kinds(look(metrics=glimpse, health_metrics=leaking)) == ["memory-leak"]


def test_what_is_found_does_not_come_and_go_while_the_run_goes_on():
    slow = metrics(*[series(gpu=0.95)] * 3, series(gpu=lambda at: 0.74 + 0.02 * (at // 60 % 2)))
    found: tuple[HealthFinding, ...] = ()
    seen = []
    for second in range(3600, 3900, 10):
        found = look(second, health_metrics=replace(slow, at=START_S + second - 300), previous=found)
        seen.append(kinds(found))
    assert seen == [["straggler"]] * len(seen)
    assert found[0].since == moment(0), "since it began, not since the newest look"


ONSET = 1200


def _growing(at: float) -> float:
    return 66 + max(0.0, at - ONSET) / 3600 * 7


@pytest.mark.parametrize(
    ("kind", "nodes"),
    [
        ("straggler", [{}, {}, {}, {"gpu": lambda at: 0.95 if at < ONSET else 0.6}]),
        ("gpu-idle", [{"gpu": lambda at: 0.95 if at < ONSET else 0.06 * (at % 600 == 0)}]),
        ("gpu-memory", [{"gpu_memory": lambda at: (60 if at < ONSET else 79.5) * GIB}]),
        ("memory-leak", [{"gpu_memory": lambda at: _growing(at) * GIB}]),
        ("disk-filling", [{"disk": lambda at: _growing(at) / 80}]),
        ("disk-filling", [{"disk": lambda at: 0.5 if at < ONSET else 0.97}]),
    ],
)
def test_since_is_when_it_began_at_whatever_moment_one_looks(kind, nodes):
    whole = range(0, 5460, 60)
    for until in (2880, 3600, 5400):
        answer = [series([at for at in whole if at <= until], **levels) for levels in nodes]
        (found,) = look(until, health_metrics=metrics(*answer))
        assert found.kind == kind
        assert found.since is not None
        assert abs((found.since - moment(ONSET)).total_seconds()) <= 300, until


def test_nodes_that_were_replaced_are_not_missing():
    gone, anew = series(range(0, 1200, 60)), series(range(1200, 3660, 60))
    assert look(health_metrics=metrics(series(), gone, anew), job={"node_count": 2}) == ()
    assert kinds(look(health_metrics=metrics(series(), gone), job={"node_count": 2})) == ["node-missing"]


# Sick runs beside healthy ones that look alike


def paced(seconds: Callable[[float], float], until_s: float, **more: Any) -> list[tuple[float, str]]:
    """A log whose steps take as long as told, by the time."""
    lines, at = [], 600.0
    while at < until_s:
        at += seconds(at)
        lines.append((at, f"step={len(lines) + 1}/90000 loss=1.0" + more.get("text", "")))
    return lines


def by_losses(loss: Callable[[int], float], text: str = "") -> Callable[[], tuple[HealthFinding, ...]]:
    lines = [(at, line + text) for at, line in steps(7000, every_s=10, loss=loss)]
    return lambda: look(7000, progress=told(lines))


def slower(text: str = "", memory: Callable[[float], float] | float = 60e9) -> tuple[HealthFinding, ...]:
    times = range(0, 16_000, 60)
    lines = paced(lambda at: 10 if at < 9000 else 15, 15_900, text=text)
    return look(15_900, progress=told(lines), health_metrics=metrics(series(times, gpu_memory=memory)))


def loading(*lines: tuple[float, str], **levels: Any) -> tuple[HealthFinding, ...]:
    times = range(0, 1440, 60)
    return look(1440, progress=told(lines), health_metrics=metrics(series(times, gpu=0.0, **levels)))


def saved_until(listed: int) -> tuple[HealthFinding, ...]:
    lines = steps(9000)
    lines += [(n * 1000 + 1.0, f"Saving model checkpoint to /x/checkpoint-{n * 200}") for n in range(1, 9)]
    saved = tuple(checkpoint(n * 1000 + 60, n * 200) for n in range(1, listed + 1))
    return look(9000, progress=told(sorted(lines)), checkpoints=saved)


def slow_rank(factor: float) -> tuple[HealthFinding, ...]:
    draw = random.Random(1)
    taken = [[10 * draw.gauss(factor if rank == 2 else 1, 0.02) for _ in range(60)] for rank in range(4)]
    return look(601, progress=ranks(*taken))


def round_pause(at_step: int) -> tuple[HealthFinding, ...]:
    return look(at_step * 5 + 700, progress=told(steps(at_step * 5)))


def counted(by: int) -> tuple[HealthFinding, ...]:
    other = [(600 + 20.0 * n, f"Scoring answers: {7 + by * n}/900") for n in range(1, 76)]
    return look(2110, progress=told([*steps(600), *other]))


def without_steps(every_s: float) -> tuple[HealthFinding, ...]:
    lines = [
        (at, "{'loss': 1.0, 'grad_norm': 0.5}")
        for at, _ in paced(lambda at: 10 if at < 9000 else every_s, 15_900)
    ]
    return look(15_900, progress=told(lines))


def silent_since(*starts: float) -> tuple[HealthFinding, ...]:
    return look(1500, progress=told(steps(600)), queue=started(*starts))


def grown_to(gib: float) -> tuple[HealthFinding, ...]:
    return look(health_metrics=metrics(series(gpu_memory=lambda at: (gib - 10 + at / 360) * GIB)))


BAR = (60.0, "  0%|          | 0/5000 [00:00<?, ?it/s]")
SETTINGS = (1.0, "TrainingArguments(save_strategy=steps, save_steps=200)")


@pytest.mark.parametrize(
    ("sick", "kind", "healthy"),
    [
        (slower, "slowdown", lambda: slower(" tokens_per_s=41000")),
        (slower, "slowdown", lambda: slower(memory=lambda at: 50e9 if at < 9000 else 60e9)),
        (lambda: saved_until(5), "checkpoint-overdue", lambda: saved_until(8)),
        (lambda: look(3500, progress=told([SETTINGS, *steps(3500)]), checkpoints=()),
         "checkpoint-overdue", lambda: look(1500, progress=told([SETTINGS, *steps(1500)]), checkpoints=())),
        (lambda: slow_rank(1.15), "straggler", lambda: slow_rank(1.05)),
        (lambda: round_pause(733), "stalled", lambda: round_pause(700)),
        (lambda: loading(*steps(60)), "gpu-idle", lambda: loading(BAR)),
        (lambda: counted(0), "stalled", lambda: counted(1)),
        (lambda: silent_since(0), "stalled", lambda: silent_since(0, 610)),
        (lambda: grown_to(70), "memory-leak", lambda: grown_to(56)),
        (lambda: without_steps(40), "slowdown", lambda: without_steps(11)),
        (by_losses(lambda step: float("nan") if step > 690 else 1.0), "loss-not-finite",
         by_losses(lambda step: float("nan") if step in (300, 700) else 1.0)),
        (by_losses(lambda step: 7.2 if step > 600 else 1.5), "loss-exploding",
         by_losses(lambda step: 1.5 if step < 600 else 1.2 + 1.2 / (1 + (step - 600) / 40))),
        (by_losses(lambda step: 1.5 if step < 600 else 9.0), "loss-exploding",
         by_losses(lambda step: 1.5 + step / 140, " mean_reward=3.1")),
        (by_losses(lambda step: -0.9 if step < 600 else 30.0), "loss-exploding",
         by_losses(lambda step: -0.9 + (step % 90) / 150)),
    ],
    ids=["longer inputs in tokens", "longer inputs by memory", "saves that come", "a save not due yet", "noise",
         "a save at a round step", "a bar at zero",
         "a count that moves", "a restart", "growth from afar", "lines without steps", "a NaN now and then", "harder data", "rewards", "negative"],
)  # fmt: skip
def test_what_is_sick_is_named_and_what_looks_like_it_is_silent(
    sick: Callable[[], tuple[HealthFinding, ...]],
    kind: str,
    healthy: Callable[[], tuple[HealthFinding, ...]],
) -> None:
    assert kind in kinds(sick())
    assert [found for found in healthy() if found.severity != "info"] == []


def test_memory_that_grows_while_a_model_loads_is_no_leak_and_a_cache_that_fills_is_none():
    rising = {"gpu_memory": lambda at: at / 1440 * 70 * GIB, "disk": lambda at: 0.2 + at / 2400}
    assert loading(BAR, **rising) == ()
    settling = metrics(series(memory=lambda at: (120 + 200 * (1 - 2.72 ** (-at / 2400))) * GIB))
    assert look(health_metrics=settling) == ()


def test_a_loss_that_no_longer_falls_is_a_remark():
    loss = lambda step: 1 + 2 / step + 0.02 * (step % 5)  # noqa: E731
    (found,) = look(14_000, progress=told(steps(14_000, every_s=10, loss=loss)))
    assert (found.kind, found.severity) == (FindingKind.PLATEAU, "info")


def test_an_error_that_training_survives_is_a_remark_and_one_that_it_does_not_a_warning():
    failed = (3000.0, "ERROR: connection reset, retrying (1/5)")
    (survived,) = look(3600, progress=told(sorted([*steps(3600), failed])))
    assert (survived.kind, survived.severity) == (FindingKind.ERRORS, "info")
    fatal = look(3100, progress=told(sorted([*steps(3000), failed])))
    assert [(one.kind, one.severity) for one in fatal] == [(FindingKind.ERRORS, "warning")]
