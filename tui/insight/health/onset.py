"""Since when something has been so: what is found now is followed back to where it began.

Not ``now − window``: that would slide as time goes on, and differ from one look to the next.
"""

from __future__ import annotations

from collections.abc import Callable

from tui.insight.series import Series


def began(series: Series, holds: Callable[[float], bool], *, forgiven: int = 0) -> float | None:
    """When the newest stretch of values began for all of which ``holds`` is true; None without one.

    Gaps do not end it, nor do up to ``forgiven`` values in a row that are otherwise.
    """
    first: float | None = None
    missed = 0
    for place in range(len(series.values) - 1, -1, -1):
        value = series.values[place]
        if value != value:
            continue
        if holds(value):
            first = series.times[place]
            missed = 0
        else:
            missed += 1
            if missed > forgiven:
                break
    return first


def growth_began(series: Series, at: float, rate: float, level: float, window_s: float) -> float:
    """When a growth of ``rate`` a second to ``level`` at ``at`` began: at the latest a window ago.

    The line through the window is followed back as long as the values lie near it (half of what a window
    adds); where they leave it, the line met the level they had before.
    """
    near = rate * window_s / 2
    since = at - window_s
    for place in range(len(series.values) - 1, -1, -1):
        time, value = series.times[place], series.values[place]
        if value != value or time > at - window_s:
            continue
        if abs(value - (level + rate * (time - at))) > near:
            return min(at - window_s, max(time, at - (level - value) / rate))
        since = time
    return since
