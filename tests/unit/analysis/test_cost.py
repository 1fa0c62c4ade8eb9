"""Money and GPU-hours, against sums done by hand."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api_client.models import QueueContext, QueueEvent, TrainingJob
from tui.analysis.cost import Bill, Billed, Cost, price_of
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.snapshot import RunSnapshot

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
H100X8 = {"id": "h100-8", "name": "H100 x8", "gpu_count": 8, "gpu_type": "H100"}


def job(
    status: str = "RUNNING", *, nodes: int | None = 4, created_min: float = 0, updated_min: float = 0
) -> TrainingJob:
    created, updated = (NOON + timedelta(minutes=minutes) for minutes in (created_min, updated_min))
    fields = {
        "id": "j1",
        "current_status": f"TRAINING_JOB_{status}",
        "instance_type": H100X8,
        "node_count": nodes,
    }
    return TrainingJob.model_validate(fields | {"created_at": created, "updated_at": updated})


def event(status: str, at_min: float, job_id: str = "j1") -> QueueEvent:
    return QueueEvent(
        training_job_id=job_id, status=f"TRAINING_JOB_{status}", created=NOON + timedelta(minutes=at_min)
    )


def run(
    subject: TrainingJob, at_min: float, events: list[QueueEvent] | None = None, **fields: Any
) -> RunSnapshot:
    at = NOON + timedelta(minutes=at_min)
    queue = None if events is None else QueueContext(target_job_id="j1", events=events)
    return RunSnapshot(subject, at, at, history_known=True, queue=queue, **fields)


LIFE = [event("PENDING", 0), event("CREATED", 20), event("DEPLOYING", 21), event("RUNNING", 30)]
ENDED = event("COMPLETED", 90)
AGAIN = [event("CREATED", 60), event("DEPLOYING", 62), event("RUNNING", 70)]
NEVER = [event("CREATED", 20), event("DEPLOYING", 21), event("DEPLOY_FAILED", 25)]
CPU = job().instance_type.model_copy(update={"gpu_count": 0})
MULTIPLIED = "list price $0.65 per node-minute × 4 nodes × run time"
COSTS: dict[str, tuple[RunSnapshot, dict[str, Any]]] = {
    # 90 minutes × 4 nodes × 8 GPUs = 48 GPU-hours; $0.65 × 4 × 90 = $234. Waiting is free.
    "it costs what it ran on every node": (run(job(), 120, LIFE, price_per_minute=0.65),
        {"gpu_hours": 48, "usd": 234, "of": MULTIPLIED}),
    "the time between two runs, of 30 and 50 minutes, costs nothing": (
        run(job(), 120, [*LIFE, *AGAIN], price_per_minute=1.0), {"gpu_hours": 80 * 32 / 60, "usd": 320}),
    "it ended, however late it is looked at": (
        run(job("COMPLETED", nodes=2, updated_min=90), 9999, [*LIFE, ENDED], price_per_minute=1.0),
        {"gpu_hours": 16, "usd": 120, "usd_to_end": None}),
    "its neighbours' events are not its own": (
        run(job(nodes=1), 60, [event("RUNNING", 0, "other"), event("RUNNING", 30)], price_per_minute=1.0),
        {"gpu_hours": 4, "usd": 30}),
    "without a history from the creation": (run(job(nodes=1), 60, None, price_per_minute=0.1),
        {"usd": 6, "of": "time since creation"}),
    "a history that ends at the release, as the API documents": (
        run(job(nodes=1), 60, LIFE[:2], price_per_minute=0.1), {"gpu_hours": 40 * 8 / 60, "usd": 4,
         "of": "time since release", "measured": False}),
    "it was stopped in the queue": (
        run(job("STOPPED", updated_min=9), 60, [event("PENDING", 0), event("STOPPED", 9)], price_per_minute=1.0),
        {"gpu_hours": 0, "usd": 0, "measured": True}),
    "it ended before it ran": (
        run(job("DEPLOY_FAILED", updated_min=25), 60, NEVER, price_per_minute=1.0), {"gpu_hours": 0, "usd": 0}),
    "an unknown price": (run(job(), 120, LIFE),
        {"gpu_hours": 48, "usd": None, "usd_to_end": None, "price_per_minute": None,
         "of": "4 nodes × run time; price unknown"}),
    "a machine without GPUs": (
        run(job(nodes=1).model_copy(update={"instance_type": CPU}), 90, LIFE, price_per_minute=0.01),
        {"gpu_hours": None, "usd": 0.6}),
}  # fmt: skip


@pytest.mark.parametrize("name", COSTS)
@pytest.mark.proves("docs/health.md", "Cost")
def test_what_a_job_costs(name: str) -> None:
    snapshot, expected = COSTS[name]
    assert expected.get("of", "") in snapshot.cost.basis
    sums = {field: value for field, value in expected.items() if field != "of"}
    assert {field: getattr(snapshot.cost, field) for field in sums} == pytest.approx(sums)


def test_a_job_that_has_not_run_costs_nothing_that_could_be_told() -> None:
    assert run(job("PENDING"), 60, price_per_minute=1.0).cost == Cost()


def test_the_end_costs_what_is_left_by_the_eta_and_its_range():
    last_step_ns = int((NOON + timedelta(minutes=110)).timestamp() * 1e9)
    etas = {"eta_s": 3600, "eta_low_s": 1800, "eta_high_s": 7200}
    told = ProgressSnapshot(step=10, total_steps=20, last_step_at_ns=last_step_ns, **etas)
    # Ten minutes have passed since that step: 50 minutes are left, or 20, or 110; 90 have run.
    cost = run(job(nodes=2), 120, LIFE, price_per_minute=1.0, progress=told).cost
    assert cost.usd_to_end == pytest.approx((90 + 50) * 2)
    assert (cost.usd_to_end_low, cost.usd_to_end_high) == pytest.approx(((90 + 20) * 2, (90 + 110) * 2))
    assert cost.gpu_hours_to_end == pytest.approx(140 * 16 / 60)


def test_prices_by_id_or_name_and_the_users_own_first():
    assert price_of(job(), {"h100-8": 0.65}) == 0.65
    assert price_of(job(), {"h100-8": 0.65}, {"H100 x8": 0.4}) == 0.4
    assert price_of(job(), {"a10g": 0.1}) is None


BILL = Bill(NOON, {"j1": Billed(60, 120)})


@pytest.mark.parametrize(
    ("nodes", "of_job", "minutes_left"),
    [
        (1, Billed(20.0, 40), 50),  # 90 minutes have run
        (1, Billed(0.0, 0), 90),
        (1, Billed(60.0, 120), 0),  # never less than nothing
        (4, Billed(60.0, 120), 4 * 90 - 120),  # more minutes than have passed: those of each node
        (4, Billed(20.0, 40), 4 * 90 - 40),  # each minute at the price of a node
        (4, Billed(80.0, 40), 4 * (90 - 40)),  # each minute at the price of all nodes
        (4, Billed(50.0, 40), None),  # at neither price: nobody knows
    ],
)
def test_what_is_not_billed_yet_is_the_running_time_less_the_billed_minutes(nodes, of_job, minutes_left):
    cost = run(job(nodes=nodes), 120, LIFE, price_per_minute=0.5, bill=Bill(NOON, {"j1": of_job})).cost
    assert (cost.billed, cost.unbilled_minutes) == (of_job, minutes_left)
    assert cost.unbilled_usd == (None if minutes_left is None else minutes_left * 0.5)
    assert cost.spent_usd == (None if minutes_left is None else of_job.usd + minutes_left * 0.5)


def test_a_day_after_the_end_everything_is_billed():
    ended = job("COMPLETED", nodes=4, updated_min=90)
    soon = run(ended, 100, [*LIFE, ENDED], price_per_minute=0.5, bill=BILL).cost
    later = run(ended, 25 * 60 + 91, [*LIFE, ENDED], bill=BILL).cost
    assert (soon.unbilled_minutes, later.unbilled_minutes) == (4 * 60 - 120, 0)
    assert later.spent_usd == 60


def test_a_bill_that_may_begin_after_the_job_is_not_its_bill():
    assert run(job(created_min=-1), 120, LIFE, bill=BILL).cost.billed is None


@pytest.mark.parametrize(
    ("cost", "shown"),
    [
        (Cost(usd=82.0), "≈ $82.00"),
        (Cost(usd=90.0, billed=Billed(82.0, 41), unbilled_usd=0.0), "$82.00"),
        (Cost(usd=90.0, billed=Billed(80.0, 40), unbilled_usd=2.0), "≈ $82.00"),
        (Cost(usd=90.0, billed=Billed(80.0, 40)), ""),
        (Cost(), ""),
    ],
)
def test_money_has_one_sign_and_none_once_all_of_it_is_billed(cost: Cost, shown: str) -> None:
    assert cost.spent_text == shown
