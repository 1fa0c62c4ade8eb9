"""Paths of downloaded files on this machine."""

import os
from pathlib import Path

from hypothesis import given, settings, strategies as st

from api_client.transfers.file_names import TargetPath, resolve_names
from api_client.transfers.records import ServerName

NASTY = st.sampled_from(
    ["..", ".", "/", "\\", "\n", "\0", "C:", "a", "A", "é", "e\u0301", "CON", ".bt-tui-", "x" * 300]
)
NAMES = st.lists(st.one_of(NASTY, st.just("/"), st.text(max_size=3)), max_size=6).map("".join)
SERVER_NAMES = st.lists(st.builds(ServerName, st.integers(0, 1), NAMES), max_size=12)


def places(*names: str, by_rank: bool = False) -> list[str]:
    found = resolve_names([ServerName(0, name) for name in names], by_rank=by_rank)
    return ["/".join(place.parts) or place.reason for place in found]


@given(SERVER_NAMES, st.booleans())
def test_never_outside_and_never_onto_each_other(names: list[ServerName], by_rank: bool) -> None:
    found = resolve_names(names, by_rank=by_rank)
    distinct = {name: place for name, place in zip(names, found, strict=True) if place.parts}
    for place in distinct.values():
        for part in place.parts:
            assert part not in ("", ".", "..")
            assert not set(part) & set("/\\\0\n\r\x1b")
            assert len(os.fsencode(part)) <= 255
        assert Path("/in", *place.parts).is_relative_to("/in")
    keys = [tuple(part.casefold() for part in place.parts) for place in distinct.values()]
    assert len(set(keys)) == len(keys)
    folders = {key[:depth] for key in keys for depth in range(1, len(key))}
    assert not folders & set(keys)
    assert all(place.reason for place in found if not place.parts)


@settings(max_examples=50)
@given(SERVER_NAMES.flatmap(lambda names: st.tuples(st.just(names), st.permutations(names))))
def test_the_order_does_not_matter(both: tuple[list[ServerName], list[ServerName]]) -> None:
    first, second = both
    placed: dict[ServerName, TargetPath] = dict(zip(first, resolve_names(first, by_rank=True), strict=True))
    assert placed == dict(zip(second, resolve_names(second, by_rank=True), strict=True))


def test_ordinary_names_stay_absolute_ones_end_inside_and_others_are_refused() -> None:
    names = ["checkpoint-40/model-00001-of-00002.safetensors", "a b/[x] ü (1).json", "x:y/CON"]
    assert places(*names) == names
    assert places("/etc/passwd", "C:\\boot.ini") == ["etc/passwd", "C:%5Cboot.ini"]
    assert places("../a", "a/../../b", "a\\..\\b") == ["its name points outside the folder"] * 3


def test_names_that_fall_together_get_a_suffix_that_stays() -> None:
    plain, other = places("Model.bin", "model.bin")
    assert plain == "Model.bin"
    assert other.startswith("model~")
    assert other.endswith(".bin")
    assert places("model.bin", "Model.bin") == [other, plain]
    assert resolve_names([ServerName(3, "c/x")], by_rank=True) == [TargetPath(("rank-3", "c", "x"))]
