"""More than one restart, according to the platform, the log, or the step numbers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from api_client.models import JobStatus
from tui.analysis.health.check import HOUR_S, Check, Example, FindingKind, Findings, Watched, limit
from tui.text.units import counted, duration


@dataclass(frozen=True, slots=True)
class Limits:
    restarts: int = limit(2, "Number of restarts from which they are reported.")


def find(run: Watched, limits: Limits) -> Findings:
    history = [
        event.created.timestamp()
        for event in run.run.status_history
        if event.status == JobStatus.RUNNING and event.created is not None
    ][1:]
    by_log = [at for at in run.progress.restarts if not _is_new_training(run, at)]
    times = [
        at for at in max((history, by_log), key=len) if _loses_steps(run, at) and not _is_planned(run, at)
    ]
    newest = max(times, default=0.0)
    if len(times) >= limits.restarts and run.now_s - newest <= 6 * HOUR_S:
        text = f"restarted {counted(len(times), 'time')}, last {duration(run.now_s - newest)} ago"
        yield run.finding("critical" if len(times) >= 5 else "warning", text, since_s=min(times))


def _loses_steps(run: Watched, at: float) -> bool:
    """Return False if steps continue where they were: a run that saves first starts again by design."""
    marks = run.progress.step_series
    index = bisect_left(marks.times, at)
    return not 0 < index < len(marks.times) or marks.values[index] <= marks.values[index - 1]


def _is_planned(run: Watched, at: float) -> bool:
    """Return True if the log says that nodes came or went, and reports no error."""
    return _precedes(run, at, run.progress.resizes) and not _precedes(run, at, _errors(run))


def _is_new_training(run: Watched, at: float) -> bool:
    """Return True if the count begins again and nothing says why: the next of several trainings."""
    marks = run.progress.step_series
    index = bisect_left(marks.times, at)
    if not 0 < index < len(marks.times):
        return False
    starts = run.progress.count_starts
    if marks.values[index] - starts[bisect_right(starts, marks.values[index]) - 1] > marks.values[0]:
        return False
    return not _precedes(run, at, [*run.progress.announced_restarts, *_errors(run)])


def _errors(run: Watched) -> list[float]:
    return [error.at_s for error in run.progress.errors.kept]


def _precedes(run: Watched, at: float, times: Iterable[float]) -> bool:
    """Return True if one of the times lies between the last step before a restart and the restart."""
    marks = run.progress.step_series.times
    # A last line of the old attempt may follow the error.
    before = next(iter(marks[max(0, bisect_left(marks, at) - 1) :]), at) - (
        run.progress.step_interval_s or 0.0
    )
    return any(before <= time <= at for time in times)


CHECK = Check(
    FindingKind("restarts", 140, "restarted", figures=("step",)),
    "Restarts",
    "warning; critical from the fifth",
    Limits,
    find,
    needs="the status history, launcher lines in the log, steps that go back to a checkpoint, or steps that"
    " start over after an error.",
    excused="a single restart, those of more than six hours ago, those after which steps continue where"
    " they were, those for which nodes join or leave by the log, without an error, steps that start over with"
    " each epoch, round, or training of a sweep, and ranks out of turn.",
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
