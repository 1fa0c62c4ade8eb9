"""Estimate the longest pause of a run that may recur."""

from __future__ import annotations

from collections.abc import Iterable


def recurring_pause(pauses: Iterable[float]) -> float | None:
    """Return the longest pause (seconds) that is likely to recur; None if there is none."""
    *_, second, longest = [0.0, 0.0, *sorted(pauses)]
    # a single pause of over an hour is an exception, unless a second pause is about as long
    if longest > 3600.0 and second < longest / 2:
        return second or None
    return longest or None
