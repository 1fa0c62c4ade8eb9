"""Windows, limits, directions and levels of the logs route; what the metrics route passes on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import httpx
import pytest

from api_client.models import JobStatus, QueueEvent
from support.fake_backend import START, START_MS
from support.served_platform import NOW, Served

NOW_MS = int(NOW.timestamp() * 1000)
MINUTE_MS = 60_000
WEEK_MS = 7 * 24 * 60 * MINUTE_MS
Read = Callable[..., list[str]]


def fill(served: Served, *stamps_ms: int, level: str | None = None) -> None:
    served.backend.lines[served.job_id] = [
        {"timestamp": f"{stamp}000000", "message": f"line {number}", "replica": "node-0", "level": level}
        for number, stamp in enumerate(stamps_ms)
    ]


@pytest.fixture
def read(http: httpx.Client, served: Served) -> Read:
    """The messages that the logs route answers; the deprecated form answers the same."""

    def messages(**parameters: object) -> list[str]:
        answer = http.get(served.job_path + "/logs", params=parameters)
        assert answer.status_code == 200, answer.text
        assert http.post(served.job_path + "/logs", json=parameters).json() == answer.json()
        return [line["message"] for line in answer.json()["logs"]]

    return messages


def test_without_bounds_it_is_half_an_hour_newest_first(read: Read, served: Served) -> None:
    fill(served, NOW_MS - 31 * MINUTE_MS, NOW_MS - 29 * MINUTE_MS, NOW_MS)
    assert read() == ["line 2", "line 1"]
    assert read(end_epoch_millis=NOW_MS) == ["line 1"]


def test_direction_and_limit_choose_the_end_of_the_window(read: Read, served: Served) -> None:
    fill(served, *range(START_MS, START_MS + 1500))
    window = {"start_epoch_millis": START_MS, "end_epoch_millis": START_MS + 2000}
    assert len(read(**window)) == 500
    assert len(read(**window, limit=1000)) == 1000
    assert read(**window, limit=1, direction="asc") == ["line 0"]
    assert read(**window, limit=1, direction="desc") == ["line 1499"]


@pytest.mark.proves("docs/emulator.md", "Logs")
def test_pages_of_a_job_that_has_ended_are_called_complete(http: httpx.Client, served: Served) -> None:
    fill(served, START_MS)
    path = served.job_path + "/logs"
    assert "complete" not in http.get(path).json()
    served.backend.add(served.job_id, served.project_id, "TRAINING_JOB_COMPLETED")
    assert http.get(path).json()["complete"] is True
    assert http.post(path, json={"end_epoch_millis": START_MS}).json() == {"logs": [], "complete": True}


def test_wrong_parameters_are_validation_errors(http: httpx.Client, served: Served) -> None:
    path = served.job_path + "/logs"
    for wrong in (
        *({"limit": limit} for limit in (0, 1001, "some")),
        *({"direction": "up"}, {"min_level": "LOUD"}),
        *({"start_epoch_millis": START_MS, "end_epoch_millis": START_MS + n} for n in (-1, WEEK_MS + 1)),
        *({"start_epoch_millis": -1, "end_epoch_millis": 5}, {"start_epoch_millis": "9" * 5000}),
    ):
        for answer in (http.get(path, params=wrong), http.post(path, json=wrong)):
            assert (answer.status_code, answer.json()["code"]) == (400, "VALIDATION_ERROR"), wrong


def test_a_week_is_allowed_an_empty_window_is_empty_and_levels_select(read: Read, served: Served) -> None:
    fill(served, START_MS)
    window = {"start_epoch_millis": START_MS, "end_epoch_millis": START_MS + WEEK_MS}
    assert read(**window) == ["line 0"]
    assert read(start_epoch_millis=START_MS, end_epoch_millis=START_MS) == []
    assert read(**window, min_level="DEBUG") == [], "a line without a level"
    fill(served, START_MS, level="WARNING")
    assert read(**window, min_level="INFO") == ["line 0"]
    assert read(**window, min_level="ERROR") == []


def test_bounds_and_step_of_metrics_reach_the_backend(http: httpx.Client, served: Served) -> None:
    path = served.job_path + "/metrics"
    assert http.get(path).status_code == 200
    window = {"start_epoch_millis": START_MS, "end_epoch_millis": START_MS + 500, "step_seconds": 5}
    assert http.get(path, params=window).status_code == 200
    assert http.post(path, json=window).status_code == 200
    start_s = START_MS / 1000
    assert served.backend.metric_requests == [(None, None, None), *[(start_s, start_s + 0.5, 5)] * 2]
    backwards = {"start_epoch_millis": START_MS, "end_epoch_millis": START_MS - 1}
    assert http.get(path, params=backwards).status_code == 400
    assert http.get(path, params={"step_seconds": 0}).status_code == 400


def test_capacity_counts_the_gpus_that_jobs_hold(http: httpx.Client, served: Served) -> None:
    served.backend.add("job00002", served.project_id, "TRAINING_JOB_DEPLOYING", availability_model="spot")
    served.backend.add("job00003", served.project_id, "TRAINING_JOB_PENDING")
    capacity = http.get("/v1/training/capacity").json()
    h100 = next(item for item in capacity["gpu_capacities"] if item["gpu_type"] == "H100")
    assert (h100["usage_count"], h100["dedicated_usage_count"], h100["spot_usage_count"]) == (32, 16, 16)
    team_id = capacity["team_gpu_capacities"][0]["team_id"]
    limit = {"team_id": team_id, "gpu_type": "H100", "max_gpus": 24}
    assert http.patch("/v1/training/capacity", json=limit).json()["team_gpu_capacity"]["limit"] == 24
    again = http.get("/v1/training/capacity").json()["team_gpu_capacities"]
    assert next(item["limit"] for item in again if item["gpu_type"] == "H100") == 24


def test_queue_context_names_who_held_and_who_waited(http: httpx.Client, served: Served) -> None:
    later = served.backend.by_id[served.job_id].created_at + timedelta(minutes=1)
    served.backend.add("waiting1", served.project_id, "TRAINING_JOB_PENDING", priority=5)
    served.backend.add("target01", served.project_id, "TRAINING_JOB_PENDING", created_at=later)
    context = http.get("/v1/training/jobs/target01/queue_context").json()
    assert [job["training_job_id"] for job in context["active_at_submit"]] == [served.job_id]
    assert [job["training_job_id"] for job in context["pending_ahead_at_submit"]] == ["waiting1"]
    assert (context["requested_gpus"], context["released_at"]) == (16, None)


@pytest.mark.proves("docs/emulator.md", "The emulator")
def test_the_bill_has_the_minutes_of_each_node_up_to_the_hour(http: httpx.Client, served: Served) -> None:
    # It ran from 12:00 to 13:00, and from 23:30 to the next day; at 00:40, the bill is as of 00:00.
    served.clock.moment = START + timedelta(hours=12, minutes=40)
    for status, hours in ((JobStatus.PENDING, 1.0), (JobStatus.RUNNING, 11.5)):
        created = START + timedelta(hours=hours)
        event = QueueEvent(training_job_id=served.job_id, status=status, created=created)
        served.backend.histories[served.job_id].append(event)
    served.backend.add("waits", served.project_id, JobStatus.PENDING)

    def usage(days: float, start: datetime = START) -> httpx.Response:
        dates = {"start_date": start.isoformat(), "end_date": (start + timedelta(days=days)).isoformat()}
        return http.get("/v1/billing/usage_summary", params=dates)

    bill = usage(31).json()["training_usage"]
    (item,) = bill["breakdown"]
    assert item["billable_resource"]["id"] == served.job_id
    # 2 nodes × (60 + 30) minutes at $0.86667
    assert (item["minutes"], item["subtotal"], bill["total"]) == (180, 156.0006, 156.0006)
    assert [(day["date"], day["minutes"]) for day in item["daily"]] == [("2026-03-01", 180)]
    served.clock.moment = START + timedelta(hours=14, minutes=1)
    (later,) = usage(31).json()["training_usage"]["breakdown"]
    assert [(day["date"][-2:], day["minutes"]) for day in later["daily"]] == [("01", 180), ("02", 240)]
    for refused in (usage(90, START - timedelta(days=90)), usage(31.5)):
        assert (refused.status_code, "date" in refused.json()["message"]) == (400, True)
