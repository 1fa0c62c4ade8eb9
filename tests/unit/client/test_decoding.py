"""Whatever the bytes, the answer is a value or NotDecodable: logs, jobs, metrics and listings of caches."""

import contextlib
import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st
from pydantic import TypeAdapter

from api_client.http.decoding import NotDecodable, decode
from api_client.models import JobMetrics, LogsPage, TrainingJob

LOGS = TypeAdapter(LogsPage)
JOB = TypeAdapter(TrainingJob)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"caf\xc3\xa9", "café"),
        (b"caf\xe9", "caf�"),
        (rb"half \ud83d", "half �"),
        (rb"\ud83d\ude00 and half \ude00", "😀 and half �"),
        (rb"\u0000\u001b[2J", "\x00\x1b[2J"),
        (b"raw\nnewline", "raw\nnewline"),
    ],
)
def test_log_text_of_any_kind_arrives(body: bytes, message: str) -> None:
    logs = decode(b'\xef\xbb\xbf{"logs":[{"timestamp":"1","message":"' + body + b'"}]}', LOGS)["logs"]
    assert logs is not None
    assert logs[0]["message"] == message


@given(st.binary(max_size=200))
def test_no_bytes_crash_it(content: bytes) -> None:
    with contextlib.suppress(NotDecodable):
        decode(content, LOGS)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[" * 100_000,
        b'{"logs":[],"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"logs":[],"x":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}",
        b'{"logs":[],"x":' + b"9" * 10_000 + b"}",
        # Deep enough for us, though not for json, and read the tolerant way because of the \xff.
        b'{"logs":[],"x":"\xff","y":' + b"[" * 150 + b"]" * 150 + b"}",
        b'{"logs":[5]}',
        b"{}",
        b"<html>",
    ],
)
def test_what_is_no_answer_is_said_to_be_none(content: bytes) -> None:
    with pytest.raises(NotDecodable):
        decode(content, LOGS)


@pytest.mark.parametrize("content", [b'{"id":"j","current_status":["hunter2"]}', b'{"id": hunter2}'])
def test_the_reason_names_the_place_but_quotes_no_values(content: bytes) -> None:
    with pytest.raises(NotDecodable) as caught:
        decode(content, JOB)
    assert ("current_status" in str(caught.value)) == (b"current_status" in content)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_known_status_is_known_in_either_spelling_and_others_stay_as_they_are() -> None:
    for sent, read in (("COMPLETED",) * 2, ("deploy-failed", "DEPLOY_FAILED"), ("TRAINING_JOB_X", "X")):
        job = TrainingJob.model_validate({"id": "j", "current_status": sent})
        assert job.current_status == f"TRAINING_JOB_{read}"


METRICS = TypeAdapter(JobMetrics)


def decoded(stamp: str) -> JobMetrics:
    return decode(f'{{"cpu_usage": [{{"timestamp": {stamp}, "value": 1}}]}}'.encode(), METRICS)


def test_null_series_are_empty_ones() -> None:
    nulls = ("gpu_memory_usage_bytes", "cpu_usage", "ephemeral_storage", "per_node_metrics", "cache")
    document = {"gpu_utilization": {"0": None}, **dict.fromkeys(nulls)}
    for answer in (JobMetrics.model_validate(document), decode(json.dumps(document).encode(), METRICS)):
        assert (answer.gpu_utilization, answer.gpu_memory_usage_bytes) == ({"0": []}, {})
        assert answer.cpu_usage == answer.per_node_metrics == []


def test_nodes_without_metrics_leave_the_others_theirs() -> None:
    cpu = [{"timestamp": "2026-03-01T12:00:00Z", "value": 1}]
    nodes = [
        {"node_id": "a", "metrics": None},
        {"node_id": "b"},
        {"node_id": "c", "metrics": {"cpu_usage": cpu}},
    ]
    answer = decode(json.dumps({"per_node_metrics": nodes}).encode(), METRICS)
    assert [(node.node_id, len(node.metrics.cpu_usage)) for node in answer.per_node_metrics] == [
        ("a", 0),
        ("b", 0),
        ("c", 1),
    ]


@pytest.mark.parametrize(
    "stamp", ['"2026-03-01T12:00:00Z"', '"2026-03-01T14:00:00+02:00"', '"2026-03-01T12:00:00"', "1772366400"]
)
def test_a_sample_is_stamped_in_utc_however_that_is_written(stamp: str) -> None:
    moment = decoded(stamp).cpu_usage[0].timestamp
    assert moment == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert moment.utcoffset() == timedelta(0)
    assert decoded(stamp).model_dump(mode="json")["cpu_usage"][0]["timestamp"] == "2026-03-01T12:00:00Z"


@pytest.mark.parametrize("stamp", ['"hunter2"', '{"hunter2": 1}', "null", "true"])
def test_a_stamp_that_is_none_is_said_to_be_wrong_and_not_quoted(stamp: str) -> None:
    with pytest.raises(NotDecodable, match=r"cpu_usage\.0\.timestamp") as caught:
        decoded(stamp)
    assert "hunter2" not in str(caught.value)
