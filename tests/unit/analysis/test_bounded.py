"""A dict of bounded size."""

from __future__ import annotations

import pickle

import pytest

from tui.analysis.bounded import Bounded


def test_oldest_entry_makes_room_for_a_new_one() -> None:
    lists: Bounded[str, list[int]] = Bounded(2, list)
    for key in "abac":
        lists[key].append(1)
    assert lists == {"b": [1], "c": [1]}


def test_copy_makes_missing_values_too() -> None:
    lists: Bounded[str, list[int]] = Bounded(2, list)
    lists["a"].append(1)
    copy = pickle.loads(pickle.dumps(lists))
    assert copy == {"a": [1]}
    assert copy["b"] == []


def test_value_that_nothing_makes_is_missing() -> None:
    with pytest.raises(KeyError):
        Bounded[str, int](2)["a"]
