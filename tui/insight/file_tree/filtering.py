"""Which nodes a typed pattern keeps."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from dataclasses import dataclass

from tui.insight.file_tree.steps import STEP_ITEMS, Steps
from tui.insight.file_tree.tree import ROOT, FileTree

GLOB_SIGNS = "*?["


@dataclass(frozen=True, slots=True)
class Matches:
    """What a pattern keeps: ``kept[node]`` is 1 for matches, their directories, and all in a matching one.

    ``sizes`` (bytes) and ``file_counts`` are totals over what is kept, the tree's own for the rest.
    """

    pattern: str
    kept: bytearray
    hits: bytearray
    sizes: list[int]
    file_counts: list[int]

    @property
    def file_count(self) -> int:
        """How many files are kept."""
        return self.file_counts[ROOT]

    @property
    def total_bytes(self) -> int:
        """Bytes of the files that are kept."""
        return self.sizes[ROOT]


def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """A test of names: a glob where it has a sign of one (``* ? [``), else a substring; in any case."""
    if any(sign in pattern for sign in GLOB_SIGNS):
        expression = re.compile(fnmatch.translate(pattern), re.IGNORECASE)
        return lambda text: expression.match(text) is not None
    wanted = pattern.lower()
    return lambda text: wanted in text.lower()


def filter_steps(tree: FileTree, pattern: str) -> Steps[Matches]:
    """What the pattern keeps, in steps. A pattern with a slash is held against listed paths, else names."""
    matches = compile_pattern(pattern)
    size = len(tree)
    hits, kept = bytearray(size), bytearray(size)
    sizes, counts = list(tree.sizes), list(tree.file_counts)
    by_path = "/" in pattern
    for node in range(1, size):
        if by_path:
            # Directories that are not listed are kept by their files: their paths take long to put together.
            entry = tree.entry(node)
            text = entry.path if entry else ""
        else:
            text = tree.names[node]
        if hits[tree.parents[node]] or matches(text):
            hits[node] = kept[node] = 1
        if node % STEP_ITEMS == 0:
            yield node / size / 2
    for node in range(size - 1, ROOT, -1):
        parent = tree.parents[node]
        if kept[node]:
            kept[parent] = 1
        else:
            sizes[node] = counts[node] = 0
        if node % STEP_ITEMS == 0:
            yield 0.5 + (size - node) / size / 4
    yield from _add_up(tree, sizes, counts)
    return Matches(pattern=pattern, kept=kept, hits=hits, sizes=sizes, file_counts=counts)


def _add_up(tree: FileTree, sizes: list[int], counts: list[int]) -> Steps[None]:
    """Make the totals of directories anew, from files that count or no longer do."""
    size = len(tree)
    for node in range(size):
        if tree.children[node] is not None:
            sizes[node] = counts[node] = 0
    for node in range(size - 1, ROOT, -1):
        parent = tree.parents[node]
        sizes[parent] += sizes[node]
        counts[parent] += counts[node]
        if node % STEP_ITEMS == 0:
            yield 0.75 + (size - node) / size / 4
