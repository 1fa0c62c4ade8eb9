"""Long lists read by difference: the same as read whole, and what is unchanged is the object it was."""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from api_client.http.decoding import NotDecodable, decode
from api_client.http.known_items import LARGE_BYTES, ItemCache
from api_client.models import TrainingJob
from api_client.resources.jobs import JOBS

JOB = TypeAdapter(TrainingJob)
ENOUGH_JOBS = 1500


def _fresh_reader() -> Any:
    return ItemCache(JOBS, "training_jobs", JOB)


def _reader() -> Any:
    """One that has read its first answer, which it reads whole."""
    reader = _fresh_reader()
    decode(_written([], filler="x" * LARGE_BYTES), reader)
    return reader


def _jobs(changed: int | None = None) -> list[dict[str, Any]]:
    return [
        {
            "id": f"job{number}",
            "current_status": "TRAINING_JOB_STOPPED" if number == changed else "TRAINING_JOB_RUNNING",
            "name": f'naïve ✓ {number} ] }} , \\ "',
            "unknown": {"nested": [1, {"deep": None}]},
        }
        for number in range(ENOUGH_JOBS)
    ]


def _written(jobs: object, **others: object) -> bytes:
    content = json.dumps({"before": [1, 2], "training_jobs": jobs, **others}, ensure_ascii=False).encode()
    assert len(content) > LARGE_BYTES
    return content


def test_what_is_unchanged_is_the_object_it_was_and_what_changed_is_read_anew() -> None:
    reader = _reader()
    first = decode(_written(_jobs()), reader)["training_jobs"]
    second = decode(_written(_jobs(changed=7)), reader)["training_jobs"]
    assert first == decode(_written(_jobs()), JOBS)["training_jobs"]
    assert [number for number in range(ENOUGH_JOBS) if first[number] is not second[number]] == [7]
    assert second[7].current_status == "TRAINING_JOB_STOPPED"


def test_the_first_answer_is_read_whole_and_the_third_by_difference() -> None:
    reader = _fresh_reader()
    first, second, third = (decode(_written(_jobs()), reader)["training_jobs"] for _ in range(3))
    assert first == second == third
    assert not any(one is other for one, other in zip(first, second, strict=True))
    assert all(one is other for one, other in zip(second, third, strict=True))


def test_what_nobody_holds_any_more_is_forgotten() -> None:
    reader = _reader()
    kept = decode(_written(_jobs()), reader)["training_jobs"][3]
    gc.collect()
    assert len(reader._known) == 1
    assert kept.id == "job3"


@pytest.mark.parametrize(
    "content",
    [
        _written([*_jobs(), None]),
        _written([*_jobs(), {"current_status": "no id"}]),
        _written([*_jobs(), 5]),
        _written(_jobs())[:-1],
        _written(_jobs())[:-40],
        _written(_jobs()) + b"]",
        _written(_jobs()).replace(b"}, {", b"} {", 1),
        b"[" * LARGE_BYTES,
        b'{"training_jobs": ' + b"[" * LARGE_BYTES,
        b'{"other": ' + _written(_jobs()) + b"}",
        b"\xff" + _written(_jobs()),
    ],
    ids=[
        "null",
        "no id",
        "number",
        "no end",
        "cut",
        "more",
        "no comma",
        "deep",
        "deep list",
        "elsewhere",
        "odd",
    ],
)
def test_an_odd_answer_is_refused_as_the_whole_reader_refuses_it(content: bytes) -> None:
    with pytest.raises(NotDecodable) as found:
        decode(content, _reader())
    with pytest.raises(NotDecodable) as expected:
        decode(content, JOBS)
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("others", [{"training_jobs_more": []}, {"after": {"training_jobs": [1]}}])
def test_other_fields_do_not_matter(others: dict[str, object]) -> None:
    found = decode(_written(_jobs(), **others), _reader())
    assert found == decode(_written(_jobs(), **others), JOBS)


def test_null_repeated_fields_and_broken_text_are_read_as_ever() -> None:
    filler = json.dumps("x" * LARGE_BYTES).encode()
    job = b'{"id": "a", "current_status": "b"}'
    for content in (
        b'{"filler": ' + filler + b', "training_jobs": null}',
        b'{"training_jobs": [], "filler": ' + filler + b', "training_jobs": [' + job + b"]}",
        b'{"filler": ' + filler + b', "training_jobs": [{"id": "\xff\\ud800", "current_status": "b"}]}',
        b'\xef\xbb\xbf{"filler": ' + filler + b', "training_jobs": [ ] }\n',
    ):
        assert decode(content, _reader()) == decode(content, JOBS)


@given(
    st.lists(
        st.dictionaries(st.text(max_size=5), st.none() | st.text(max_size=9) | st.floats(allow_nan=False))
    ),
    st.sampled_from([None, 0, 3]),
)
def test_any_items_are_read_as_the_whole_reader_reads_them(extras: list[Any], indent: int | None) -> None:
    jobs = [{**extra, "id": str(number), "current_status": "x"} for number, extra in enumerate(extras)]
    filler = "x" * LARGE_BYTES
    content = json.dumps({"filler": filler, "training_jobs": jobs}, indent=indent).encode()
    try:
        expected = decode(content, JOBS)
    except NotDecodable:
        with pytest.raises(NotDecodable):
            decode(content, _reader())
        return
    assert decode(content, _reader()) == expected
