import json
from datetime import UTC, datetime

import pytest
from pydantic import TypeAdapter

from api_client.http.decoding import NotDecodable, decode
from api_client.models import JobMetrics

METRICS = TypeAdapter(JobMetrics)


def decoded(stamp: str) -> JobMetrics:
    return decode(f'{{"cpu_usage": [{{"timestamp": {stamp}, "value": 1}}]}}'.encode(), METRICS)


def test_samples_with_fields_of_a_newer_server_are_read() -> None:
    sample = {"value": 0.5, "timestamp": "2026-03-01T12:00:00Z", "confidence": "high"}
    answer = JobMetrics.model_validate({"gpu_utilization": {"0": [sample]}, "cpu_usage": [sample]})
    assert answer.gpu_utilization["0"][0].value == answer.cpu_usage[0].value == 0.5


def test_null_series_are_empty_ones() -> None:
    nulls = ("gpu_memory_usage_bytes", "cpu_usage", "ephemeral_storage", "per_node_metrics", "cache")
    document = {"gpu_utilization": {"0": None}, **dict.fromkeys(nulls)}
    for answer in (JobMetrics.model_validate(document), decode(json.dumps(document).encode(), METRICS)):
        assert (answer.gpu_utilization, answer.gpu_memory_usage_bytes) == ({"0": []}, {})
        assert answer.cpu_usage == answer.per_node_metrics == []


@pytest.mark.parametrize(
    "stamp", ['"2026-03-01T12:00:00Z"', '"2026-03-01T14:00:00+02:00"', '"2026-03-01T12:00:00"', "1772366400"]
)
def test_a_sample_is_stamped_in_utc_however_that_is_written(stamp: str) -> None:
    moment = decoded(stamp).cpu_usage[0].timestamp
    assert moment == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert moment.tzinfo is UTC
    assert decoded(stamp).model_dump(mode="json")["cpu_usage"][0]["timestamp"] == "2026-03-01T12:00:00Z"


@pytest.mark.parametrize("stamp", ['"hunter2"', '["hunter2"]', '{"hunter2": 1}', "null", "true"])
def test_a_stamp_that_is_none_is_said_to_be_wrong_and_not_quoted(stamp: str) -> None:
    with pytest.raises(NotDecodable, match=r"cpu_usage\.0\.timestamp") as caught:
        decoded(stamp)
    assert "hunter2" not in str(caught.value)
