"""A run that has become slow.

The API publishes no power and no clocks. A throttled GPU shows as steps that take longer while the GPUs are
as busy as before.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from tui.analysis.health.check import Check, Example, FindingKind, Findings, Watched, limit
from tui.analysis.health.speed import mean_speed, paced
from tui.analysis.health.windows import noise_of
from tui.analysis.node_metrics import mean_known
from tui.analysis.series import Series, mean_between
from tui.text.units import number, percent

_BINS, _EARLIER = 3, 4
"""A slow time consists of so many bins, each of them slow, after at least so many others."""


@dataclass(frozen=True, slots=True)
class Limits:
    slowdown_share: float = limit(0.8, "A run is slow if its speed is below this share of its usual speed.")
    slowdown_window_s: float = limit(1800.0, "Time during which the run must be slow without interruption.")


def find(run: Watched, limits: Limits) -> Findings:
    series, unit = run.speed
    # In reinforcement learning, a step is as much work as the answers are long.
    if run.training_since is None or not series.times or run.is_reinforcement:
        return
    bin_s = limits.slowdown_window_s / _BINS
    speeds = _speeds(series, run.training_since + bin_s, bin_s)
    if len(speeds) < _BINS + _EARLIER:
        return
    earlier, newest = speeds[:-_BINS], [speed for _, speed in speeds[-_BINS:]]
    usual = sorted(speed for _, speed in earlier)[3 * len(earlier) // 4]
    is_held = run.is_held()
    slow_below = run.eased(limits.slowdown_share, 1.0, held=is_held) * usual
    now = median(newest)
    # A speed that rises by this much within the window is coming back.
    if (now if is_held else max(newest)) >= slow_below or (not is_held and newest[-1] > 1.08 * newest[0]):
        return
    began = speeds[-_BINS][0]
    for time, speed in reversed(earlier):
        if speed >= slow_below:
            break
        began = time
    before = [speed for time, speed in earlier if time < began]
    # A run that was as slow before, for a while and within its noise, and came back to its speed does so by
    # design.
    if not is_held and (
        len(before) < _EARLIER or now > 0.9 * sorted(before)[_BINS - 1] - 2.0 * noise_of(before)
    ):
        return
    cause = _cause(run, began, limits.slowdown_window_s, series if unit == "tok/s" else None)
    if cause is not None:
        short = f"{percent(1 - now / usual)} slower: {number(now)} {unit}, was {number(usual)}"
        slowed_by = 1 - now / usual
        yield run.finding("warning", f"{short}; {cause}", short=short, since_s=began, slowed_by=slowed_by)


def _speeds(series: Series, start: float, bin_s: float) -> list[tuple[float, float]]:
    """Return the start and the mean speed of each bin that has values; the last one ends with the series."""
    end = series.times[-1]
    count = max(0, int((end - start) // bin_s))
    starts = [end - number * bin_s for number in range(count, -1, -1)]
    edges = [bisect_left(series.times, at + 1e-6) for at in starts]
    return [
        (at, mean_speed(series.values[first:last]))
        for at, (first, last) in zip(starts, pairwise(edges), strict=False)
        if last > first
    ]


def _cause(run: Watched, began: float, window_s: float, counted: Series | None) -> str | None:
    """Return what the metrics say of a slow time since then; None if it is more work, not less speed."""
    nodes, at, before = run.metrics.nodes, run.metrics.at or began, began - 4 * window_s

    def change(series: Series) -> tuple[float | None, float | None]:
        return mean_between(series, before, began), mean_between(series, began, at)

    # Larger inputs are a tenth longer, or use a tenth more GPU memory; other data has another loss.
    sizes = [change(series) for series in (*run.work_per_step, run.progress.loss_series)]
    if counted is None:
        sizes += [change(node.mean_memory) for node in nodes]
    else:
        # Tokens a second by steps a second: tokens a step.
        pairs = zip(change(counted), change(paced(run.progress.step_series)), strict=True)
        old_size, new_size = (tokens / steps if tokens and steps else None for tokens, steps in pairs)
        sizes.append((old_size, new_size))
    if any(old and new is not None and new > 1.1 * old for old, new in sizes):
        return None
    uses = [change(node.mean_utilization) for node in nodes]
    old, new = mean_known(old for old, _ in uses), mean_known(new for _, new in uses)
    if old is None or new is None:
        return "see what has changed"
    # GPUs busier than this share of before are as busy as before.
    if new >= 0.93 * old:
        return f"GPUs {percent(new)} busy as before: throttled, or larger inputs"
    return f"GPUs {percent(new)} busy, were {percent(old)}: waiting for data or the network"


CHECK = Check(
    FindingKind("slowdown", 130, "slower{since}", figures=("GPU use", "CPU")),
    "Slowdown",
    "warning",
    Limits,
    find,
    needs="a speed (tokens, samples or steps a second, by the log) below `slowdown_share` of the usual one"
    " in each third of the window, after 50 minutes of training. The text says whether the GPUs are as busy"
    " as before.",
    excused="pauses, a speed that is coming back or was as low before for long, but for its noise (batches"
    " sorted by length),"
    " reinforcement learning, whose steps vary in work, and larger inputs: longer sequences or batches by the"
    " log, more tokens in each step, or, unless tokens are counted, more GPU memory.",
    costs="the missing share of all GPUs",
    covered_by=frozenset({"stalled"}),
    examples=(
        Example(
            "steps that take half as long again", "3", minutes=240, step_s=lambda at: 10 if at < 7200 else 15
        ),
        Example(
            "longer sequences, of which fewer tokens a second are read",
            minutes=240,
            step_s=lambda at: 10 if at < 7200 else 40,
            line="step {step}/90000 loss=2.0 tokens/s={loss:.0f}",
            loss=lambda step: 40_000 if step < 720 else 26_000,
        ),
        Example(
            "fewer tokens a second at the same length",
            "3",
            minutes=240,
            step_s=lambda at: 10 if at < 7200 else 15,
            line="step {step}/90000 loss=2.0 tokens/s={loss:.0f}",
            loss=lambda step: 40_000 if step < 720 else 26_000,
        ),
        Example(
            "longer answers in reinforcement learning",
            minutes=240,
            step_s=lambda at: 10 if at < 7200 else 15,
            line="step {step}/9000 loss={loss:.4f} reward=0.4",
        ),
    ),
)
