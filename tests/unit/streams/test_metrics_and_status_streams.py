"""The metrics stream and the status watch: what they ask for, what they survive, when they end."""

from datetime import UTC, datetime, timedelta

import pytest
from model_api import BEGIN_S, ModelClock

from api_client.errors import BadRequest, InvalidAnswer, NotFound, ServerFault, Unauthorized, Unreachable
from api_client.models import JobMetrics, TrainingJob
from api_client.streams.metrics import OVERLAP_S, follow_metrics, newest_sample
from api_client.streams.status import watch_job

BEGIN = datetime.fromtimestamp(BEGIN_S, UTC)
BEGIN_MS = BEGIN_S * 1000
STATUSES = ["PENDING", "DEPLOYING", "RUNNING", "RUNNING", "COMPLETED"]


def job_of(status, **more):
    return TrainingJob(id="job", current_status=f"TRAINING_JOB_{status}", **more)


class Script:
    """Answers one after the other, the last for ever; errors are raised. Remembers what was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def __call__(self, **asked):
        self.asked.append(asked)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def metrics_at(*seconds, status=None, nodes=()):
    samples = [{"timestamp": (BEGIN + timedelta(seconds=at)).isoformat(), "value": 1.0} for at in seconds]
    answer = {
        "cpu_usage": samples,
        "per_node_metrics": [
            {"node_id": name, "metrics": {"gpu_utilization": {"0": samples}}} for name in nodes
        ],
    }
    if status:
        answer["training_job"] = {"id": "job", "current_status": f"TRAINING_JOB_{status}"}
    return JobMetrics.model_validate(answer)


async def watched(*answers):
    clock = ModelClock()
    fetch = Script(*answers)
    return [job.current_status async for job in watch_job(fetch, clock=clock, interval_s=5.0)], clock, fetch


async def test_watching_tells_every_look_and_stops_after_the_end():
    seen, clock, fetch = await watched(*map(job_of, STATUSES))

    assert seen == [f"TRAINING_JOB_{status}" for status in STATUSES]
    assert clock.passed_s == 20.0
    assert len(fetch.asked) == 5


async def test_watching_ends_with_a_status_nobody_has_heard_of():
    seen, _, _ = await watched(job_of("RUNNING"), job_of("ASCENDED"))

    assert seen[-1] == "TRAINING_JOB_ASCENDED"


async def test_watching_outlives_an_outage():
    outage = [Unreachable("refused"), ServerFault("down", status=502), InvalidAnswer("html")] * 20
    seen, clock, _ = await watched(job_of("RUNNING"), *outage, job_of("FAILED"))

    assert seen == ["TRAINING_JOB_RUNNING", "TRAINING_JOB_FAILED"]
    assert clock.passed_s > 150


@pytest.mark.parametrize("error", [NotFound("gone", status=404), Unauthorized("who?", status=401)])
async def test_watching_raises_what_will_not_pass(error):
    with pytest.raises(type(error)):
        await watched(job_of("RUNNING"), error)


async def test_watching_gives_up_on_answers_that_stay_unreadable():
    with pytest.raises(InvalidAnswer):
        await watched(job_of("RUNNING"), InvalidAnswer("html"))


async def followed(fetch, fetch_job, *, start_ms=BEGIN_MS, step_s=None):
    clock = ModelClock()
    stream = follow_metrics(fetch, fetch_job, clock=clock, start_ms=start_ms, step_s=step_s, interval_s=10.0)
    return [metrics async for metrics in stream], clock


async def test_metrics_come_as_history_then_increments_that_overlap():
    fetch = Script(
        metrics_at(0, 600, 300, status="RUNNING", nodes=["node-0", "node-1"]),
        metrics_at(610, 590, status="RUNNING"),
        metrics_at(620, status="COMPLETED"),
        metrics_at(625, status="COMPLETED"),
    )
    answers, clock = await followed(fetch, Script(job_of("RUNNING")), step_s=10)

    assert len(answers) == 4
    assert clock.passed_s == 30.0
    starts_s = [(asked["start_ms"] - BEGIN_MS) / 1000 for asked in fetch.asked]
    assert starts_s == [0, 600 - OVERLAP_S, 610 - OVERLAP_S, 620 - OVERLAP_S]
    assert {asked["step_s"] for asked in fetch.asked} == {10}
    assert {asked["end_ms"] for asked in fetch.asked} == {None}


async def test_metrics_of_a_job_without_samples_keep_asking_from_its_start():
    fetch = Script(metrics_at(), metrics_at(), metrics_at(5, status="FAILED"))
    jobs = Script(job_of("DEPLOYING"), job_of("RUNNING"))
    answers, _ = await followed(fetch, jobs)

    assert [asked["start_ms"] for asked in fetch.asked[:3]] == [BEGIN_MS] * 3
    assert newest_sample(answers[0]) is None
    assert newest_sample(answers[-1]) == BEGIN + timedelta(seconds=5)


async def test_metrics_of_a_finished_job_are_asked_for_once_and_within_its_time():
    fetch = Script(metrics_at(1, 2, status="COMPLETED"))
    ended = BEGIN + timedelta(hours=1)
    answers, clock = await followed(fetch, Script(job_of("COMPLETED", updated_at=ended)))

    assert len(answers) == 1
    assert clock.passed_s == 0
    [asked] = fetch.asked
    assert asked["start_ms"] == BEGIN_MS
    assert 0 < asked["end_ms"] - ended.timestamp() * 1000 < 3_600_000


async def test_metrics_without_a_start_leave_the_window_to_the_server():
    fetch = Script(metrics_at(1, status="COMPLETED"))
    await followed(fetch, Script(job_of("COMPLETED", updated_at=BEGIN)), start_ms=None)

    assert fetch.asked == [{"start_ms": None, "end_ms": None, "step_s": None}]


async def test_metrics_fall_back_when_the_server_refuses_the_window():
    fetch = Script(BadRequest("window too long", status=400), metrics_at(1, status="COMPLETED"))
    answers, _ = await followed(fetch, Script(job_of("COMPLETED")), step_s=1)

    assert len(answers) == 1
    assert fetch.asked[-1] == {"start_ms": None, "end_ms": None, "step_s": None}


async def test_metrics_outlive_an_outage():
    outage = [ServerFault("down", status=502), Unreachable("refused")] * 20
    fetch = Script(metrics_at(1, status="RUNNING"), *outage, metrics_at(9, status="STOPPED"))
    answers, _ = await followed(fetch, Script(job_of("RUNNING")))

    assert len(answers) == 3


@pytest.mark.parametrize("error", [NotFound("gone", status=404), Unauthorized("who?", status=401)])
async def test_metrics_raise_what_will_not_pass(error):
    with pytest.raises(type(error)):
        await followed(Script(metrics_at(1, status="RUNNING"), error), Script(job_of("RUNNING")))
