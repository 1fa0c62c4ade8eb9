"""Several restarts, or one that lost many steps, according to the platform, the log, or the step numbers."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from api_client.models.logs import NS_PER_S
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
    logged_restarts = [at for at in run.progress.restarts if not _is_by_trainer(run, at)]
    lost_s_by_restart = {
        at: lost_s
        for at in max((run.platform_starts[1:], logged_restarts), key=len)
        if (lost_s := _lost_s(run, at)) is not None
        and (run.follows_error(at) or not run.follows(at, run.progress.resizes))
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


def _is_by_trainer(run: Watched, at: float) -> bool:
    """Return True if steps go back without a sign of a restart, as the trainer itself may do.

    They start over: the next training of a sweep. Or they continue at once from a checkpoint, sooner than
    the run has ever started: the trainer has gone back, such as to before a spike of the loss.
    """
    marks = run.progress.step_series
    index = bisect_left(marks.times, at)
    if not 0 < index < len(marks.times):
        return False
    starts = run.progress.count_starts
    starts_over = (
        marks.values[index] - starts[bisect_right(starts, marks.values[index]) - 1] <= marks.values[0]
    )
    start_up_s = marks.times[0] - (run.progress.first_line_at_ns or math.inf) / NS_PER_S
    if not starts_over and marks.times[index] - marks.times[index - 1] > start_up_s / 2:
        return False
    return not (
        run.follows(at, run.progress.announced_restarts)
        or run.follows_error(at)
        or _nodes_were_away(run, marks.times[index - 1], at)
    )


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


CHECK = Check(
    FindingKind("restarts", 140, "restarted", figures=("step",)),
    "Restarts",
    "warning; critical from the fifth",
    Limits,
    find,
    needs="the status history, launcher lines in the log, steps that go back to a checkpoint, or steps that"
    " start over after an error, or after all nodes were away.",
    excused="a single restart that loses less than `lost_after_s`, those older than six hours, those after"
    " which steps continue where they were, those for which nodes join or leave by the log, steps"
    " that start over with each epoch, round, or training of a sweep, or go back in half"
    " the time of a start-up, all without an error, and ranks out of turn.",
    costs="the steps after the checkpoint, and the time to load it",
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
            "a trainer that goes back by itself, twice",
            stops_s=0,
            others=(
                (1, "spike guard: on"),
                *(
                    (at, f"step {at // 10 - back}/9000 loss=2.0")
                    for begin, end, back in ((600, 3000, 0), (3060, 5000, 60), (5060, 7200, 120))
                    for at in range(begin, end, 10)
                ),
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
