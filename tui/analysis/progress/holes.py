"""Find the steps of a run whose log lines may be unread.

The value at a step is certain only if no hole in the log is next to it. Otherwise, an older value would be
shown instead of an unread one, and a line after the hole would be assigned to a step before it.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from tui.analysis.progress.snapshot import ProgressSnapshot

StepRange = tuple[float, float]
"""From the last step read before a hole up to, but not including, the first step read after it."""

ALL_STEPS: StepRange = (-math.inf, math.inf)


def unread_steps(progress: ProgressSnapshot, *, whole: bool) -> tuple[StepRange, ...]:
    """Return the steps around gaps, and before the first and after the last if not ``whole``."""
    times, steps = progress.step_series.times, progress.step_series.values
    if (progress.gaps or not whole) and (progress.has_relative_steps or not steps):
        return (ALL_STEPS,)
    ranges: list[StepRange] = [] if whole else [(-math.inf, steps[0]), (max(steps), math.inf)]
    for start, end in progress.gaps:
        last, following = bisect_right(times, start) - 1, bisect_left(times, end)
        before = steps[last] if last >= 0 else -math.inf
        after = steps[following] if following < len(steps) else math.inf
        ranges.append((before, after) if before <= after else ALL_STEPS)  # the run restarted in the gap
    return tuple(ranges)


def is_read_between(first: float, last: float, unread: Sequence[StepRange]) -> bool:
    """Return True if all lines after step ``first`` and up to ``last`` have been read."""
    return not any(before <= last and first < after for before, after in unread)
