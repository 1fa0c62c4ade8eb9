"""In which order the children of a directory are shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tui.insight.file_tree.steps import STEP_ITEMS, Steps
from tui.insight.file_tree.tree import FileTree

RUN_ITEMS = 4096
"""Sorted at a time; the runs are then merged, which costs a fraction of sorting them."""

_DIGITS = re.compile(r"[0-9]+")
_LONGEST_NUMBER = 99


class SortKey(StrEnum):
    """What a listing can be sorted by."""

    NAME = "name"
    SIZE = "size"
    TIME = "time"
    TYPE = "type"


@dataclass(frozen=True, slots=True)
class Order:
    """A sort key and its direction. Equal ones stand by name, upwards."""

    key: SortKey = SortKey.NAME
    descending: bool = False

    def next(self) -> Order:
        """The key after this one, in the direction that people want it in first."""
        keys = list(SortKey)
        key = keys[(keys.index(self.key) + 1) % len(keys)]
        return Order(key, descending=key in (SortKey.SIZE, SortKey.TIME))

    def reversed(self) -> Order:
        """The same key the other way round."""
        return Order(self.key, not self.descending)


BY_NAME = Order()


def name_key(name: str) -> str:
    """A text that sorts ``part-2`` before ``part-10``, capitals beside small letters."""
    return _DIGITS.sub(_counted, name.lower())


def _counted(match: re.Match[str]) -> str:
    digits = match.group().lstrip("0") or "0"
    return f"{min(len(digits), _LONGEST_NUMBER):02}{digits}"


def sort_steps(tree: FileTree, nodes: Sequence[int], order: Order) -> Steps[list[int]]:
    """The nodes (of one directory) in that order, in steps."""
    done = list(nodes)
    if order.key is not SortKey.NAME:
        done = yield from _sorted_by(done, lambda node: name_key(tree.names[node]), descending=False)
    return (yield from _sorted_by(done, _key_of(tree, order.key), descending=order.descending))


def _key_of(tree: FileTree, key: SortKey) -> Callable[[int], Any]:
    if key is SortKey.SIZE:
        return tree.sizes.__getitem__
    if key is SortKey.TIME:
        newest_s = tree.newest_s
        return lambda node: newest_s[node] or 0.0
    if key is SortKey.TYPE:
        return lambda node: f"{tree.children[node] is None:d}{tree.type_of(node)}"
    return lambda node: name_key(tree.names[node])


def _sorted_by(nodes: list[int], key_of: Callable[[int], Any], *, descending: bool) -> Steps[list[int]]:
    """A stable sort in either direction: keys, then runs, then all (which merges the runs)."""
    keys: dict[int, Any] = {}
    size = len(nodes)
    for start in range(0, size, STEP_ITEMS):
        for node in nodes[start : start + STEP_ITEMS]:
            keys[node] = key_of(node)
        if size > STEP_ITEMS:
            yield start / size / 2
    if size > RUN_ITEMS:
        runs: list[int] = []
        for start in range(0, size, RUN_ITEMS):
            runs += sorted(nodes[start : start + RUN_ITEMS], key=keys.__getitem__, reverse=descending)
            yield 0.5 + start / size / 2
        nodes = runs
    return sorted(nodes, key=keys.__getitem__, reverse=descending)
