"""A loss, or gradients, that are not finite for good."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import takewhile

from tui.analysis.health.check import Check, Example, FindingKind, Findings, NoLimits, Watched
from tui.analysis.progress.snapshot import MAX_SKIPPED
from tui.text.units import number


def find(run: Watched, _limits: NoLimits) -> Findings:
    losses, norms = run.progress.loss_series, run.progress.grad_norm_series
    broken = _broken_at_end(losses.values)
    # A single NaN may be a batch that was skipped, unless nothing follows it.
    if broken and run.progress.loss is not None:
        since = losses.times[-broken]
        if run.is_held() or broken > 2 or run.now_s - since > 600.0 / broken:
            text = f"loss is {number_or_nan(run.progress.loss)}"
            yield run.finding("critical", text, since_s=since)
            return
    skipped, half_s = run.progress.skipped_steps, 300.0
    last_loss_s = losses.times[-1] if losses.times else run.now_s
    only_skips = len(skipped) == MAX_SKIPPED and last_loss_s < skipped[0]
    if only_skips and run.now_s - skipped[-1] < half_s < run.now_s - last_loss_s:
        text = "no loss any more: gradients overflow, and steps are skipped"
        yield run.finding("critical", text, since_s=last_loss_s)
        return
    broken = _broken_at_end(norms.values)
    # While the loss scale is found, the first norms are infinite.
    if broken >= (3 if broken < len(norms) else 20):
        text = f"grad norm is {number_or_nan(norms.values[-1])}"
        yield run.finding("critical", text, since_s=norms.times[-broken])


def _broken_at_end(values: Sequence[float]) -> int:
    """Return how many of the newest values are not finite."""
    return sum(1 for _ in takewhile(lambda value: not math.isfinite(value), reversed(values)))


def number_or_nan(value: float) -> str:
    """Format a number for display, also if it is ``NaN``, ``inf`` or ``-inf``."""
    return number(value) if math.isfinite(value) else "NaN" if math.isnan(value) else str(value)


CHECK = Check(
    FindingKind(
        "loss-not-finite",
        20,
        "loss is NaN{since}",
        loss="not finite",
        wastes_all=True,
        lines="onset",
        figures=("loss", "gradient norm"),
    ),
    "Non-finite loss",
    "critical",
    NoLimits,
    find,
    needs="the last three losses to be NaN or infinite, or the last two for five minutes, or the last one"
    " for ten, or the last three gradient norms (some trainers then print a loss of 0); or ten steps that"
    " the log calls skipped because of an overflow, and no loss for five minutes.",
    excused="one or two such losses (a skipped batch), and infinite norms while the loss scale is still"
    " found.",
    ends="with a finite loss",
    costs="everything from then on: nothing that follows can be used",
    examples=(
        Example("NaN from step 500 on", "loss is NaN", loss=lambda step: math.nan if step > 500 else 2.0),
        Example("a NaN each 200 steps", loss=lambda step: math.nan if step % 200 == 7 else 2.0),
    ),
)
