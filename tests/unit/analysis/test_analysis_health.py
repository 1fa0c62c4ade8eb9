from datetime import UTC, datetime, timedelta

import pytest
from metrics_payloads import START_S, node_series, payload

from api_client.models import TrainingJob
from api_client.models.logs import LogLine
from tui.analysis.health.checks import health
from tui.analysis.node_metrics import MetricsFold, MetricsSnapshot
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.finding import FindingKind, HealthFinding
from tui.analysis.run.snapshot import RunSnapshot

RUNNING = "TRAINING_JOB_RUNNING"
TEN_MINUTES = range(0, 600, 5)


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(START_S + seconds, UTC)


def progress_of(messages: dict[float, str]) -> ProgressSnapshot:
    folding = ProgressFold()
    folding.add(LogLine(round((START_S + at) * 1e9), text, "node-0", None) for at, text in messages.items())
    return folding.snapshot()


def metrics_of(**levels: object) -> MetricsSnapshot:
    folding = MetricsFold()
    return folding.fold(
        payload({name.replace("_", "-"): node_series(TEN_MINUTES, level) for name, level in levels.items()})
    )


def steps(until: float, every: float = 5.0, loss: str = "1.0") -> dict[float, str]:
    return {n * every: f"step={n} loss={loss}" for n in range(1, int(until / every) + 1)}


def findings(
    status: str, progress: ProgressSnapshot | None, metrics: MetricsSnapshot | None, now: datetime
) -> tuple[HealthFinding, ...]:
    job = TrainingJob(id="j", current_status=status)
    return health(RunSnapshot(job, now, now, progress=progress, metrics=metrics))


def kinds(found: tuple[HealthFinding, ...]) -> list[str]:
    return [finding.kind.value for finding in found]


HEALTHY = metrics_of(node_0=0.97, node_1=0.96, node_2=0.95)


def test_a_healthy_run_has_no_findings():
    assert findings(RUNNING, progress_of(steps(600)), HEALTHY, moment(605)) == ()
    assert findings(RUNNING, None, None, moment(0)) == ()
    assert findings(RUNNING, ProgressSnapshot(), MetricsSnapshot(), moment(0)) == ()


def test_a_hang_at_full_utilisation_is_a_stall():
    (found,) = findings(RUNNING, progress_of(steps(600)), HEALTHY, moment(600 + 960))
    assert (found.kind, found.severity) == (FindingKind.STALLED, "critical")
    assert found.text == "no step and no log line for 16m, usually every 5s; GPUs 96 % busy"
    assert found.since == moment(600)


@pytest.mark.parametrize(("loss", "loss_text"), [("nan", "NaN"), ("inf", "inf")])
def test_a_loss_that_is_no_number(loss, loss_text):
    messages = steps(300) | {at: text for at, text in steps(600, loss=loss).items() if at > 300}
    (found,) = findings(RUNNING, progress_of(messages), HEALTHY, moment(605))
    assert (found.kind, found.severity, found.text) == (
        FindingKind.LOSS_NOT_FINITE,
        "critical",
        f"loss is {loss_text}",
    )
    assert found.since == moment(305)


def test_a_straggler():
    (found,) = findings(RUNNING, None, metrics_of(node_0=0.97, node_1=0.95, node_2=0.61), moment(600))
    assert (found.kind, found.severity, found.node) == (FindingKind.STRAGGLER, "warning", "node-2")
    assert found.text == "node-2 lags behind the other nodes: GPUs at 61 %, others at 96 %"


def test_gpus_that_stopped_working():
    stopped = lambda time: 0.9 if time < 200 else 0.01  # noqa: E731
    (found,) = findings(RUNNING, None, metrics_of(node_0=stopped, node_1=stopped), moment(600))
    assert (found.kind, found.node) == (FindingKind.GPU_IDLE, None)
    assert found.since == moment(200)
    assert found.text == "GPUs idle (below 5 %) for 6m"


def test_one_node_that_stopped_working_is_idle_and_not_slow_too():
    stopped = lambda time: 0.9 if time < 200 else 0.01  # noqa: E731
    (found,) = findings(RUNNING, None, metrics_of(node_0=0.9, node_1=stopped), moment(600))
    assert (found.kind, found.node) == (FindingKind.GPU_IDLE, "node-1")


def test_gpus_that_are_idle_in_all_that_is_seen_of_a_run_that_told_steps():
    found = findings(RUNNING, progress_of(steps(590)), metrics_of(node_0=0.0), moment(600))
    assert kinds(found) == ["gpu-idle"]


def test_gpus_that_have_not_begun_or_only_pause_are_not_idle():
    assert findings(RUNNING, None, metrics_of(node_0=0.0, node_1=0.01), moment(600)) == ()
    loading = lambda time: 0.1 if time < 200 else 0.01  # noqa: E731
    assert findings(RUNNING, None, metrics_of(node_0=loading, node_1=loading), moment(600)) == ()
    pausing = lambda time: 0.9 if time < 400 else 0.01  # noqa: E731
    assert findings(RUNNING, None, metrics_of(node_0=pausing, node_1=pausing), moment(600)) == ()


def test_the_worst_comes_first():
    broken = progress_of(
        {**steps(600), **{600 + n: f"step={120 + n} loss=nan" for n in (1, 2, 3)}, 604: "ValueError: no"}
    )
    found = findings(RUNNING, broken, HEALTHY, moment(600) + timedelta(minutes=16))
    assert kinds(found) == ["stalled", "loss-not-finite", "errors"]
