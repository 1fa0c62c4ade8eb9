"""Which pause of a run may come again."""

from __future__ import annotations

from collections.abc import Iterable

_SINGLE_PAUSE_S = 1800.0
"""A single longer pause is an accident, not a pattern."""


def recurring_pause(pauses: Iterable[float]) -> float | None:
    """Return the longest pause (seconds) that is likely to recur; None if there is none."""
    *_, second, longest = [0.0, 0.0, *sorted(pauses)]
    if longest > _SINGLE_PAUSE_S and second < longest / 2:
        return second or None
    return longest or None
