"""What the soaks say: a wish, what was measured, and whether that meets it."""

# ruff: noqa: T201 (what a benchmark prints is its product)

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

FAULT_RATE = 0.3
SKEW_S = 90.0
MEMORY_RATIO = 1.1
"""The second half may take so much of the first's memory."""


@dataclass
class Row:
    """A wish, what was measured, and whether that meets it."""

    wish: str
    measured: str
    is_met: bool


def told(rows: Sequence[Row]) -> int:
    """Print them; the exit code is 1 if one is not met."""
    for row in rows:
        print(f"{row.wish:<42} {row.measured:<58} {'met' if row.is_met else 'NOT MET'}")
    return 0 if all(row.is_met for row in rows) else 1
