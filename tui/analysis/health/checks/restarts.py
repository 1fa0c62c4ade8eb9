"""Several restarts, or one that lost many steps, according to the platform, the log, or the step numbers."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from api_client.models import JobStatus
from tui.analysis.health.check import (
    HOUR_S,
    MINUTE_S,
    Check,
    Example,
    FindingKind,
    Findings,
    Watched,
    limit,
)
from tui.analysis.health.windows import first_time
from tui.analysis.series import Series
from tui.text.units import counted, duration


@dataclass(frozen=True, slots=True)
class Limits:
    restarts: int = limit(2, "Minimum number of restarts to report.")
    lost_after_s: float = limit(
        3600.0, "A single restart is reported if it loses this many seconds of steps."
    )


def find(run: Watched, limits: Limits) -> Findings:
    platform_restarts = [
        event.created.timestamp()
        for event in run.run.status_history
        if event.status == JobStatus.RUNNING and event.created is not None
    ][1:]
    logged_restarts = [at for at in run.progress.restarts if not _is_new_training(run, at)]
    lost_s_by_restart = {
        at: lost_s
        for at in max((platform_restarts, logged_restarts), key=len)
        if (lost_s := _lost_s(run, at)) is not None and not _is_planned(run, at)
    }
    count, newest = len(lost_s_by_restart), max(lost_s_by_restart, default=0.0)
    if run.now_s - newest > 6 * HOUR_S or not count:
        return
    ago, lost_s = duration(run.now_s - newest), lost_s_by_restart[newest]
    cost = f", which lost {duration(lost_s)} of steps" if lost_s >= limits.lost_after_s else ""
    if count >= limits.restarts:
        text = f"restarted {counted(count, 'time')}, last {ago} ago{cost}"
    elif cost:
        text = f"restarted {ago} ago{cost}"
    else:
        return
    yield run.finding("critical" if count >= 5 else "warning", text, since_s=min(lost_s_by_restart))


def _lost_s(run: Watched, at: float) -> float | None:
    """Return how many seconds the steps took that a restart (epoch s) has lost; 0 if unknown.

    None if the step count continues after the restart: the run saved before, so it restarted by design.
    """
    marks = run.progress.step_series
    index = bisect_left(marks.times, at)
    if not 0 < index < len(marks.times):
        return 0.0
    if marks.values[index] > marks.values[index - 1]:
        return None
    before = max((other for other in run.progress.restarts if other < at), default=-math.inf)
    return marks.times[index - 1] - first_time(marks, marks.values[index], before)


def _is_planned(run: Watched, at: float) -> bool:
    """Return True if, before a restart (epoch s), the log reports that nodes join or leave, and no error."""
    return _is_before_restart(run, at, run.progress.resizes) and not _is_before_restart(
        run, at, _error_times(run)
    )


def _is_new_training(run: Watched, at: float) -> bool:
    """Return True if steps start over without a reason for a restart: the next training of a sweep."""
    marks = run.progress.step_series
    index = bisect_left(marks.times, at)
    if not 0 < index < len(marks.times):
        return False
    starts = run.progress.count_starts
    if marks.values[index] - starts[bisect_right(starts, marks.values[index]) - 1] > marks.values[0]:
        return False
    reasons = [*run.progress.announced_restarts, *_error_times(run)]
    return not (_is_before_restart(run, at, reasons) or _nodes_were_away(run, marks.times[index - 1], at))


def _nodes_were_away(run: Watched, start: float, end: float) -> bool:
    """Return True if no node sent samples for minutes between two times: they were rebooted or replaced."""
    nodes = run.metrics.nodes
    return bool(nodes) and all(_was_away(node.mean_utilization, start, end) for node in nodes)


def _was_away(utilization: Series, start: float, end: float) -> bool:
    samples = zip(utilization.times, utilization.values, strict=True)
    times = [time for time, value in samples if value == value]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    first, last = (bisect_left(times, edge) for edge in (start, end))
    # Samples older than an hour are further apart.
    usual_s = median(gaps[max(0, first - 20) : first] or [MINUTE_S])
    return max(gaps[max(0, first - 1) : last], default=0.0) > 3 * max(MINUTE_S, usual_s)


def _error_times(run: Watched) -> list[float]:
    return [error.at_s for error in run.progress.errors.kept]


def _is_before_restart(run: Watched, at: float, times: Iterable[float]) -> bool:
    """Return True if one of the times is between the last step before a restart and the restart."""
    marks = run.progress.step_series.times
    # The last step of the old attempt may be logged after the error.
    start = next(iter(marks[max(0, bisect_left(marks, at) - 1) :]), at) - (
        run.progress.step_interval_s or 0.0
    )
    return any(start <= time <= at for time in times)


CHECK = Check(
    FindingKind("restarts", 140, "restarted", figures=("step",)),
    "Restarts",
    "warning; critical from the fifth",
    Limits,
    find,
    needs="the status history, launcher lines in the log, steps that go back to a checkpoint, or steps that"
    " start over after an error, or after all nodes were away.",
    excused="a single restart that loses less than `lost_after_s`, those of more than six hours ago, those"
    " after which steps continue where they were, those for which nodes join or leave by the log, without an"
    " error, steps that start over with each epoch, round, or training of a sweep, and ranks out of turn.",
    costs="the steps between the last checkpoint and each restart, and the time to load it",
    examples=(
        Example(
            "two restarts while it starts",
            "restarted 2 times",
            minutes=60,
            stops_s=0,
            restarts_s=(1500, 3000),
        ),
        Example("two restarts that lose no step", restarts_s=(3000, 6000)),
        Example("one restart", restarts_s=(3000,)),
        Example(
            "one restart from the first step",
            "restarted 29m ago, which lost 1h 23m of steps",
            stops_s=0,
            others=(
                *((at, f"step {at // 10}/9000 loss=2.0") for at in range(10, 5000, 10)),
                (5010, "RuntimeError: CUDA error"),
                *((at, f"step {at // 10 - 540}/9000 loss=2.0") for at in range(5410, 7200, 10)),
            ),
        ),
        Example(
            "a restart from the first step, after minutes without the node",
            "restarted 29m ago, which lost 1h 23m of steps",
            stops_s=0,
            gpu=(lambda at: None if 5000 < at < 5260 else 0.95,),
            others=tuple(
                (at, f"step {at // 10 - back}/9000 loss=2.0")
                for begin, end, back in ((10, 5000, 0), (5410, 7200, 540))
                for at in range(begin, end, 10)
            ),
        ),
        Example(
            "nodes that are exchanged by plan",
            stops_s=0,
            others=tuple(
                (at, f"step {at // 10 - back}/9000 loss=2.0")
                for begin, end, back in ((10, 2400, 0), (2700, 4800, 60), (5100, 7200, 120))
                for at in range(begin, end, 10)
            )
            + tuple(
                (at, f"[INFO] {text}")
                for begin in (2400, 4800)
                for at, text in (
                    (begin + 2, "Detected 1 new node from group_rank=0; will restart worker group"),
                    (begin + 170, "Rendezvous complete for workers. Result: restart_count=1"),
                )
            ),
        ),
        Example(
            "a sweep, each training from its first step",
            stops_s=0,
            others=tuple(
                (begin + 12 * step, f"step {step}/900 loss=2.0")
                for begin, steps in ((0, 90), (1300, 160), (3500, 120), (5200, 150))
                for step in range(1, steps)
            ),
        ),
        Example(
            "a sweep that abandons some of its trainings early",
            stops_s=0,
            others=tuple(
                (begin + 12 * step, f"step {step}/90 loss=2.0")
                for begin, steps in ((0, 90), (1300, 90), (2600, 40), (3300, 90), (4600, 30), (5200, 90))
                for step in range(1, steps + 1)
            ),
        ),
        Example(
            "a training that fails again and again",
            "restarted 14 times",
            stops_s=0,
            others=tuple(
                (at, f"step {at % 500 // 10}/900 loss=2.0" if at % 500 else "RuntimeError: CUDA error")
                for at in range(10, 7200, 10)
            ),
        ),
    ),
)
