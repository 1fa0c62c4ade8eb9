"""Safetensors headers: what the format says, and whatever somebody may have put in its place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from api_client.checkpoints import UnreadableFile, parse_header, parse_trainer_state
from api_client.checkpoints.reading import preview
from api_client.checkpoints.safetensors import MAX_HEADER_BYTES, header_length


def tensor(begin: int, end: int, shape: list[int], dtype: str = "BF16") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def encoded(**entries: Any) -> bytes:
    return json.dumps(entries).encode()


def test_tensors_come_in_the_order_of_their_bytes_with_counts_by_type() -> None:
    header = encoded(
        __metadata__={"format": "pt"},
        second=tensor(24, 40, [4], "F32"),
        first=tensor(0, 24, [3, 4]),
        scalar=tensor(40, 48, [], "I64"),
        nothing=tensor(48, 48, [0, 7]),
    )
    parsed = parse_header(header + b"   ", 8 + len(header) + 3 + 48)
    assert [one.name for one in parsed.tensors] == ["first", "second", "scalar", "nothing"]
    assert parsed.parameters_by_dtype == {"BF16": 12, "F32": 4, "I64": 1}
    assert (parsed.parameter_count, parsed.data_bytes, parsed.metadata) == (17, 48, {"format": "pt"})
    # A type of later days is taken as it is.
    assert parse_header(encoded(x=tensor(0, 5, [10], "Q4_NEW"))).parameters_by_dtype == {"Q4_NEW": 10}
    assert parse_header(encoded(x=tensor(0, 2, [3], "F4"))).parameter_count == 3


@pytest.mark.parametrize(
    ("header", "file_bytes", "words"),
    [
        (b"", None, "its header: Invalid JSON"),
        (b"[]", None, "its header: Input should be an object"),
        (b'{"a":' * 100_000, None, "Invalid JSON: recursion limit"),
        (encoded(x=1), None, "x: Input should be an object"),
        (encoded(x=tensor(0, 8, [4]), y=tensor(4, 12, [4])), None, "bytes of 'y' do not follow"),
        (encoded(x=tensor(0, 8, [4]), y=tensor(12, 20, [4])), None, "bytes of 'y' do not follow"),
        (encoded(x=tensor(8, 0, [4])), None, "bytes of 'x' do not follow"),
        (encoded(x=tensor(-8, 0, [4])), None, "x.data_offsets.0: Input should be greater"),
        (encoded(x=tensor(0, 8, [-4])), None, "x.shape.0: Input should be greater"),
        (encoded(x=tensor(0, 8, [2**63, 2**63])), None, "does not match its shape"),
        (encoded(x=tensor(0, 8, [1] * 100)), None, "x.shape: Tuple should have at most 64 items"),
        (encoded(x=tensor(0, 8, "4")), None, "x.shape: Input should be a valid"),  # type: ignore[arg-type]
        (encoded(x=tensor(0, 8, [True])), None, r"x.shape.0: Input should be a valid integer"),
        (encoded(x=tensor(0, 8, [4], dtype=7)), None, "x.dtype: Input should be"),  # type: ignore[arg-type]
        (encoded(__metadata__={"a": 1}), None, "__metadata__.a: Input should be"),
        (encoded(x=tensor(0, 8, [4])), 1000, "its tensors need 8 bytes"),
        (b'{"x": ' + b"9" * 5000 + b"}", None, "x: Input should be an object|Invalid JSON"),
    ],
)
def test_what_the_format_forbids_is_said_plainly(header: bytes, file_bytes: int | None, words: str) -> None:
    with pytest.raises(UnreadableFile, match=words):
        parse_header(header, file_bytes)


@pytest.mark.parametrize(
    ("first", "file_bytes", "words"),
    [
        (b"1234567", 7, "too short"),
        (b"1", 1, r"\(1 byte\)"),
        ((2**64 - 1).to_bytes(8, "little"), None, "the format allows"),
        ((MAX_HEADER_BYTES + 1).to_bytes(8, "little"), None, "the format allows"),
        ((500).to_bytes(8, "little"), 100, "truncated, or"),
        (bytes(8), None, "empty"),
        (b"<!DOCTYPE html>", 15, "the format allows"),
    ],
)
def test_a_length_that_cannot_be(first: bytes, file_bytes: int | None, words: str) -> None:
    with pytest.raises(UnreadableFile, match=words):
        header_length(first, file_bytes)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_read_or_refused(value: Any) -> None:
    content = json.dumps(value).encode()
    for read in (parse_header, parse_trainer_state):
        try:
            read(content)
        except UnreadableFile as error:
            assert error.problem


def test_the_trainers_history_is_curves_by_step() -> None:
    history = [
        {"step": 20, "loss": 1.5, "epoch": 0.2, "note": "x"},
        {"step": 10, "loss": 2.0, "learning_rate": 1e-5},
        {"step": 20, "eval_loss": float("nan")},
        {"loss": 9.0},
        "nonsense",
        {"step": True, "loss": 1},
    ]
    state = parse_trainer_state(
        json.dumps({"global_step": 20, "max_steps": 100, "best_metric": 1.2, "log_history": history}).encode()
    )
    assert state.curve("loss") == ((10, 2.0), (20, 1.5))
    assert state.last("learning_rate") == 1e-5
    assert set(state.curves) == {"loss", "learning_rate", "eval_loss"}
    assert (state.global_step, state.max_steps, state.best_metric) == (20, 100, 1.2)


def test_a_preview_is_text_or_says_that_there_is_none() -> None:
    assert preview("grüße\n".encode(), 8).text == "grüße\n"
    assert preview("grü".encode()[:3], 100).text == "gr"
    assert preview(b"\x80\x02}q\x00", 5).text is None
    assert preview(b"", 0).is_whole
    assert not preview(b"abc", 4).is_whole
