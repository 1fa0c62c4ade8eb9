"""Label the ticks of an axis so that no two labels are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import floor, log10

Label = Callable[[float], str]


def labeled(ticks: Sequence[float], formats: Iterable[Label]) -> tuple[tuple[float, str], ...]:
    """Label the ticks with the first format that gives each of them a different label.

    If there is none, use the last format, and keep only the first of the ticks with the same label.
    """
    tick_of: dict[str, float] = {}
    for label in formats:
        tick_of = {}
        for tick in ticks:
            tick_of.setdefault(label(tick), tick)
        if len(tick_of) == len(ticks):
            break
    return tuple((tick, text) for text, tick in tick_of.items())


def decimal_label(step: float) -> Label:
    """Return a formatter with enough digits to distinguish numbers that are ``step`` apart."""
    decimals = -floor(log10(step) + 1e-9) if step > 0 else 0
    for _ in range(2):  # a step of 2.5 needs one more, 1.25 two
        scaled = step * 10.0**decimals
        if abs(scaled - round(scaled)) <= 1e-6:
            break
        decimals += 1

    def label(value: float) -> str:
        if abs(value) >= 1e6 or (value and abs(value) < 1e-4):
            digits = floor(log10(abs(value))) + 1 + decimals
            return f"{value:.{min(max(digits, 3), 17)}g}"
        return f"{value:,.{max(0, decimals)}f}"

    return label


def number_formats(ticks: Sequence[float]) -> tuple[Label, ...]:
    """Return formatters with enough digits to distinguish the ticks, the shortest first."""
    smallest_step = min(
        (abs(after - before) for before, after in pairwise(ticks) if after != before), default=0.0
    )
    return decimal_label(smallest_step), decimal_label(smallest_step / 100)
