"""A run that has become slow.

The API reports neither the power nor the clocks of GPUs. If GPUs are throttled, steps take longer while the
utilization stays the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import groupby, pairwise

from api_client.models.logs import NS_PER_S
from tui.analysis.health.check import Check, Example, FindingKind, Findings, Watched, limit
from tui.analysis.health.watched import IDLE
from tui.analysis.health.windows import EARLIER, binned, flipped, mean_speed, paced, segment_means
from tui.analysis.health.worse import Worse, worsened
from tui.analysis.node_metrics import mean_known
from tui.analysis.series import Series, mean_between, values_between
from tui.text.units import number, percent

_BINS = 3
"""Number of bins of the window; the speed must be low in each."""
_SEGMENT_S = 120.0
"""Seconds for which GPUs count as idle or working: two samples."""


@dataclass(frozen=True, slots=True)
class Limits:
    slowdown_share: float = limit(0.8, "A run is slow if its speed is below this share of its usual speed.")
    slowdown_window_s: float = limit(1200.0, "Time during which the run must be slow without interruption.")


def find(run: Watched, limits: Limits) -> Findings:
    series, unit = run.speed
    # In reinforcement learning, the work per step depends on the lengths of responses: without them in the
    # log, a slow step means nothing.
    is_unclear = run.is_reinforcement and not any(len(size) for size in run.work_per_step)
    if run.training_since is None or not series.times or is_unclear:
        return
    bin_s = limits.slowdown_window_s / _BINS
    # The machines of another attempt may be slower, so the earlier ones count, too.
    earlier_end = min(max(run.attempt_since, series.times[0]), series.times[-1])
    speeds = binned(series, series.times[0] + bin_s, earlier_end, bin_s, mean_speed)
    speeds |= binned(series, run.training_since + bin_s, series.times[-1], bin_s, mean_speed)
    is_held = run.is_held()
    share = run.eased(limits.slowdown_share, 1.0, held=is_held)
    curve = flipped([*speeds], speeds.values())
    find_fall = partial(worsened, curve, earlier=EARLIER, descends=False)
    # A larger fall is sure after fewer bins.
    fall = find_fall(1 - share, newest=_BINS - is_held, held=is_held) or find_fall(
        1 - share**2, newest=_BINS - 1
    )
    only_with_stops = fall is None
    if fall is None:
        fall, unit = _fall_with_stops(run, 2 * bin_s, is_held), run.step_unit
    if fall is None or (
        only_with_stops and not is_held and not _waits_more_often(run, fall.since, 6 * bin_s)
    ):
        return
    # Leave out the start-up, in which GPUs hold less memory.
    begin = max(min(speeds, default=run.training_since), fall.since - 4 * limits.slowdown_window_s)
    times = ((begin, fall.since), (fall.since, run.metrics.at or fall.since))
    old, new = (
        mean_known(mean_between(node.mean_utilization, *time) for node in run.metrics.nodes) for time in times
    )
    # The GPUs are as busy as before if they have at least 85% of the former utilization.
    is_busy = old is not None and new is not None and new >= 0.85 * old
    cause = f"GPUs {percent(new or 0.0)} busy as before: throttled, or larger inputs"
    if old is None or new is None:
        # The fall is older than the metrics: the former utilization and memory are unknown.
        cause = "see what has changed" if is_held or not run.metrics.nodes else ""
    elif not is_busy:
        cause = f"GPUs {percent(new)} busy, were {percent(old)}: waiting for data or the network"
    # Other work changes steps or tokens per second, but not the FLOP/s of the GPUs.
    if unit not in ("MFU", "TFLOP/s") and (
        _is_more_work(run, series, unit, *times)
        or (is_busy and not is_held and _is_other_work(run, series, bin_s, *times))
    ):
        cause = ""
    if cause:
        slowed_by = 1 - fall.now / fall.best
        short = f"{percent(slowed_by)} slower: {number(-fall.now)} {unit}, was {number(-fall.best)}"
        yield run.finding(
            "warning", f"{short}; {cause}", short=short, since_s=fall.since, slowed_by=slowed_by
        )


def _fall_with_stops(run: Watched, bin_s: float, is_held: bool) -> Worse | None:
    """Return how the speed including all pauses has fallen, as in a run that waits for data repeatedly."""
    start, end = run.training_since or 0.0, run.now_s
    edges = [end - number * bin_s for number in range(int((end - start) // bin_s), -1, -1)]
    speeds = [run.steps_between(*edge) / bin_s for edge in pairwise(edges)]
    if not all(speeds[-_BINS:]):
        return None  # a single long stop, such as an evaluation
    min_change = 0.15 if is_held else 0.35
    return worsened(
        flipped(edges[:-1], speeds), min_change, earlier=EARLIER, newest=_BINS, descends=False, held=is_held
    )


def _waits_more_often(run: Watched, since: float, window_s: float) -> bool:
    """Return True if all GPUs have been idle several times in the newest window, but hardly before."""
    utilizations = [node.mean_utilization for node in run.metrics.nodes]
    newest, before = (
        [mean < IDLE for mean in segment_means(utilizations, end, _SEGMENT_S, int(length_s / _SEGMENT_S))]
        for end, length_s in ((run.now_s, window_s), (since, 3 * window_s))
    )
    # Evaluations and saves, which the log reports or which begin at a round step, are no waiting, nor is a
    # new stage.
    other_work = {
        *run.progress.eval_loss_series.times,
        *(at_ns / NS_PER_S for _, at_ns in run.progress.saves),
        *(begin for begin, _ in run.pauses if run.is_round_step(begin)),
    }
    if any(abs(at - since) < window_s / 4 for at in run.progress.new_words):
        return False
    stops = sum(1 for is_idle, _ in groupby(newest) if is_idle)
    stops -= sum(1 for at in other_work if at > run.now_s - window_s)
    return stops >= _BINS and sum(newest) > len(newest) / 4 and sum(before) < len(before) / 20


Time = tuple[float, float]
"""A time range: start and end (epoch s)."""


def _is_more_work(run: Watched, speeds: Series, unit: str, before: Time, after: Time) -> bool:
    """Return True if the log or the GPU memory shows that a step is more work than before."""

    def change(series: Series) -> tuple[float | None, float | None]:
        return mean_between(series, *before), mean_between(series, *after)

    # Larger inputs are a tenth longer, or use a tenth more GPU memory; other data has another loss.
    sizes = [change(series) for series in (*run.work_per_step, run.progress.loss_series)]
    sizes += [change(node.mean_memory) for node in run.metrics.nodes]
    if unit == "tok/s":
        old_tokens, new_tokens = change(speeds)
        old_steps, new_steps = change(paced(run.progress.step_series))
        if old_steps and new_steps and new_steps > 0.9 * old_steps:
            return True  # fewer tokens in each step, as with shorter answers
        if old_tokens and new_tokens and old_steps and new_steps:
            sizes.append((old_tokens / old_steps, new_tokens / new_steps))
    return any(old and new is not None and new > 1.1 * old for old, new in sizes)


def _is_other_work(run: Watched, speeds: Series, near_s: float, before: Time, after: Time) -> bool:
    """Return True if another stage began, or if inputs are mixed and more of them are large than before.

    A stage shows as words that the log never had before, or as nodes that join or leave. In a mix, the
    fastest and the slowest steps are as fast as before.
    """
    stages = (*run.progress.new_words, *run.progress.resizes)
    ends = [
        (values[len(values) // 10], values[-1 - len(values) // 10])
        for time in (before, after)
        if (values := sorted(values_between(speeds, *time)))
    ]
    is_mix = len(ends) == 2 and all(new > 0.9 * old for old, new in zip(*ends, strict=True))
    return is_mix or any(abs(at - after[0]) <= near_s for at in stages)


CHECK = Check(
    FindingKind("slowdown", 130, "slower{since}", figures=("speed", "GPU use", "cores")),
    "Slowdown",
    "warning",
    Limits,
    find,
    needs="a speed (operations, tokens, samples or steps a second, by the log) below `slowdown_share` of the"
    " usual one in each third of the window, or below the square of that share in two, after 45 minutes of"
    " training; or, with all stops, a third less in each third of 40 minutes, in which the GPUs wait.",
    excused="single pauses, those at round steps, a speed that comes back or was nearly as low before"
    " (batches sorted by length), reinforcement learning without the length of the answers, and,"
    " unless the log says what the GPUs compute, other inputs: longer sequences or batches by the log,"
    " more or fewer tokens in each step, or more GPU memory; or, if the GPUs are as busy, a mix of"
    " the same steps as before, and words new in the log, or nodes that join or leave, as it began.",
    costs="the missing share of all GPUs",
    covered_by=frozenset({"stalled"}),
    examples=(
        Example(
            "steps that take half as long again", "3", minutes=240, step_s=lambda at: 10 if at < 7200 else 15
        ),
        Example(
            "stops of five minutes, again and again, in which the GPUs wait",
            "4",
            minutes=200,
            step_s=lambda at: 300 if at > 7200 and at % 600 < 10 else 10,
            gpu=(lambda at: 0.0 if at > 7200 and at % 600 < 300 else 0.95,),
        ),
        Example(
            "evaluations that begin at round steps, and report nothing",
            minutes=240,
            step_s=lambda at: 300 if at >= 7000 and (at - 7000) % 790 < 10 else 10,
            gpu=(lambda at: 0.0 if at >= 7000 and (at - 7000) % 790 < 300 else 0.95,),
        ),
        Example(
            "a stage that the log announces",
            minutes=240,
            step_s=lambda at: 10 if at < 7200 else 15,
            others=((7150, "[Schedule] gradient accumulation is now 16"),),
        ),
        Example(
            "a node that leaves by plan",
            minutes=240,
            step_s=lambda at: 10 if at < 7200 else 15,
            others=tuple((at, "membership changed: 3 nodes") for at in (3000, 7150)),
        ),
        Example(
            "slow steps of a run whose GPUs held less while it started",
            "3",
            minutes=240,
            step_s=lambda at: 1500 if at < 10 else 10 if at < 7200 else 15,
            gpu_memory_gib=lambda at: 5.0 if at < 1500 else 60.0,
        ),
        Example(
            "longer sequences, of which fewer tokens a second are read",
            minutes=240,
            step_s=lambda at: 10 if at < 7200 else 40,
            line="step {step}/90000 loss=2.0 tokens/s={loss:.0f}",
            loss=lambda step: 40_000 if step < 720 else 26_000,
        ),
        Example(
            "longer sequences, of which as much is computed in a second",
            minutes=240,
            step_s=lambda at: 10 if at < 7200 else 15,
            line="step {step}/90000 loss=2.0 tflops=430.{step} tokens/s={loss:.0f}",
            loss=lambda step: 40_000 if step < 720 else 26_000,
        ),
        Example(
            "large inputs in a mix, of which there are more",
            minutes=240,
            step_s=lambda at: 20 if at % 400 < (160 if at < 7200 else 340) else 8,
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
            "shorter inputs, of which fewer tokens a second are read",
            minutes=240,
            line="step {step}/90000 loss=2.0 tokens/s={loss:.0f}",
            loss=lambda step: 40_000 if step < 720 else 26_000,
        ),
        Example(
            "eight times as many tokens in each step, by the log's count",
            minutes=240,
            step_s=lambda at: 10 if at < 7200 else 80,
            line="step {step}/90000 loss=2.0 num_tokens={loss:.0f}",
            loss=lambda step: 65_536.0 * (step if step < 720 else 720 + 8 * (step - 720)),
        ),
        Example(
            "slow answers of the same length in reinforcement learning",
            "3",
            minutes=240,
            step_s=lambda at: 10 if at < 7200 else 15,
            line="step {step}/9000 loss={loss:.4f} reward=0.4 response_length=900",
        ),
        Example(
            "answers in reinforcement learning that are twice as long",
            minutes=240,
            step_s=lambda at: 10 if at < 7200 else 15,
            line="step {step}/9000 loss=0.01 reward=0.4 response_length={loss:.0f}",
            loss=lambda step: 900 if step < 720 else 1800,
        ),
        Example(
            "longer answers in reinforcement learning",
            minutes=240,
            step_s=lambda at: 10 if at < 7200 else 15,
            line="step {step}/9000 loss={loss:.4f} reward=0.4",
        ),
    ),
)
