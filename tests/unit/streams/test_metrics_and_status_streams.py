"""The metrics stream and the status watch: what they ask for, what they survive, when they end."""

from datetime import UTC, datetime, timedelta

import pytest

from api_client.errors import BadRequest, InvalidAnswer
from api_client.models import JobMetrics, TrainingJob
from api_client.streams.job_poller import watch_job
from api_client.streams.metrics import FULL_OVERLAP_INTERVAL_S, OVERLAP_S, follow_metrics
from support.log_server import BEGIN_S, FastClock

BEGIN = datetime.fromtimestamp(BEGIN_S, UTC)
BEGIN_MS = BEGIN_S * 1000


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


def metrics_at(*seconds, status=None, node=None):
    samples = [{"timestamp": (BEGIN + timedelta(seconds=at)).isoformat(), "value": 1.0} for at in seconds]
    nodes = [{"node_id": node, "metrics": {"gpu_utilization": {"0": samples}}}] if node else []
    told = {"training_job": job_of(status).model_dump(mode="json")} if status else {}
    return JobMetrics.model_validate({"cpu_usage": samples, "per_node_metrics": nodes, **told})


async def watched(*answers):
    poll = watch_job(Script(*answers), clock=FastClock(), interval_s=5.0)
    return [job.current_status async for job in poll]


async def test_watching_ends_with_an_unknown_status_and_gives_up_on_answers_that_stay_unreadable():
    assert (await watched(job_of("RUNNING"), job_of("ASCENDED")))[-1] == "TRAINING_JOB_ASCENDED"
    with pytest.raises(InvalidAnswer):
        await watched(job_of("RUNNING"), InvalidAnswer("html"))


async def followed(fetch, fetch_job, *, start_ms=BEGIN_MS, step_s=None, clock=None):
    clock = clock or FastClock()
    stream = follow_metrics(fetch, fetch_job, clock=clock, start_ms=start_ms, step_s=step_s, interval_s=10.0)
    return [metrics async for metrics in stream], clock


class Latecomers:
    """A server whose samples, one in ten seconds, come so many seconds late, each node's by another time."""

    def __init__(self, clock, delays_s, ends_at_s):
        self._clock, self._delays_s, self._ends_at_s = clock, delays_s, ends_at_s
        self.due_s = range(10, ends_at_s - max(delays_s), 10)

    async def __call__(self, *, query):
        now_s, since_s = self._clock.passed_s, (query["start_epoch_millis"] - BEGIN_MS) / 1000
        nodes = []
        for number, delay_s in enumerate(self._delays_s):
            due_s = (at for at in self.due_s if since_s <= at and at + self._delay_s(at, delay_s) <= now_s)
            nodes += metrics_at(*due_s, node=f"node-{number}").per_node_metrics
        over = now_s > self._ends_at_s
        return JobMetrics(per_node_metrics=nodes, training_job=job_of("COMPLETED" if over else "RUNNING"))

    def _delay_s(self, at, delay_s):
        return delay_s if at % 70 else OVERLAP_S - FULL_OVERLAP_INTERVAL_S - 10  # and some later still


async def test_every_late_sample_is_found_while_it_may_come():
    clock = FastClock()
    fetch = Latecomers(clock, delays_s=(0, 25, 90), ends_at_s=900)
    answers, _ = await followed(fetch, Script(job_of("RUNNING")), clock=clock)
    found = [set(), set(), set()]
    for answer in answers:
        for node, seen in zip(answer.per_node_metrics, found, strict=True):
            seen.update(sample.timestamp for sample in node.metrics.gpu_utilization["0"])
    assert found == [{BEGIN + timedelta(seconds=at) for at in fetch.due_s}] * 3


async def test_metrics_of_a_job_without_samples_keep_asking_from_its_start():
    fetch = Script(metrics_at(), metrics_at(), metrics_at(5, status="FAILED"))
    jobs = Script(job_of("DEPLOYING"), job_of("RUNNING"))
    await followed(fetch, jobs)
    assert [asked["query"]["start_epoch_millis"] for asked in fetch.asked[:3]] == [BEGIN_MS] * 3


async def test_metrics_of_a_finished_job_are_asked_for_once_and_within_its_time():
    fetch = Script(metrics_at(1, 2, status="COMPLETED"))
    ended = BEGIN + timedelta(hours=1)
    answers, clock = await followed(fetch, Script(job_of("COMPLETED", updated_at=ended)))
    assert (len(answers), len(fetch.asked), clock.passed_s) == (1, 1, 0)
    assert fetch.asked[0]["query"]["start_epoch_millis"] == BEGIN_MS
    assert 0 < fetch.asked[0]["query"]["end_epoch_millis"] - ended.timestamp() * 1000 < 3_600_000


async def test_metrics_fall_back_when_the_server_refuses_the_window():
    fetch = Script(BadRequest("window too long", status=400), metrics_at(1, status="COMPLETED"))
    answers, _ = await followed(fetch, Script(job_of("COMPLETED")), step_s=1)
    assert len(answers) == 1
    assert {*fetch.asked[-1]["query"].values()} == {None}


async def test_metrics_of_a_long_run_are_read_in_windows_of_a_week():
    ended = BEGIN + timedelta(days=20)
    parts = [metrics_at(day * 86_400, status="COMPLETED", node="node-0") for day in (1, 8, 15)]
    fetch = Script(*parts)
    [whole], _ = await followed(fetch, Script(job_of("COMPLETED", updated_at=ended)))
    bounds = [
        (asked["query"]["start_epoch_millis"], asked["query"]["end_epoch_millis"]) for asked in fetch.asked
    ]
    assert all(end_ms - start_ms <= 7 * 86_400_000 for start_ms, end_ms in bounds)
    assert [start for start, _ in bounds[1:]] == [end for _, end in bounds[:-1]]
    assert bounds[0][0] == BEGIN_MS
    [node] = whole.per_node_metrics
    assert [sample.timestamp for sample in whole.cpu_usage] == [
        BEGIN + timedelta(days=at) for at in (1, 8, 15)
    ]
    assert node.metrics.gpu_utilization["0"] == whole.cpu_usage


@pytest.mark.parametrize("skew", [timedelta(days=400), timedelta(days=-3650), timedelta(days=20_000)])
async def test_metrics_windows_of_a_wrong_clock_are_few_and_not_inverted(skew: timedelta):
    clock = FastClock(begin_s=BEGIN_S + skew.total_seconds())
    fetch = Script(metrics_at(1), metrics_at(2, status="COMPLETED"))
    await followed(fetch, Script(job_of("RUNNING")), clock=clock)
    assert len(fetch.asked) < 60
    for asked in fetch.asked:
        assert (
            asked["query"]["end_epoch_millis"] is None
            or 0 < asked["query"]["end_epoch_millis"] - asked["query"]["start_epoch_millis"] <= 7 * 86_400_000
        )
