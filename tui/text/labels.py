"""Label the ticks of an axis so that no two labels are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import floor, log10

LabelFormat = Callable[[float], str]
"""Formats the position of a tick as its label."""


def labeled_ticks(ticks: Sequence[float], formats: Iterable[LabelFormat]) -> tuple[tuple[float, str], ...]:
    """Return the ticks with their labels, in the first format that gives every tick a different label.

    If no format does, use the last one, and drop each tick whose label an earlier tick has.
    """
    tick_by_label: dict[str, float] = {}
    for format_label in formats:
        tick_by_label = {}
        for tick in ticks:
            tick_by_label.setdefault(format_label(tick), tick)
        if len(tick_by_label) == len(ticks):
            break
    return tuple((tick, text) for text, tick in tick_by_label.items())


def decimal_format(step: float) -> LabelFormat:
    """Return a format with enough digits to distinguish numbers that are ``step`` apart."""
    decimals = -floor(log10(step) + 1e-9) if step > 0 else 0
    for _ in range(2):  # a step of 2.5 needs one more decimal, a step of 1.25 two more
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


def number_formats(ticks: Sequence[float]) -> tuple[LabelFormat, ...]:
    """Return two formats for the ticks: enough digits to distinguish adjacent ticks, then two digits more."""
    smallest_step = min(
        (abs(after - before) for before, after in pairwise(ticks) if after != before), default=0.0
    )
    return decimal_format(smallest_step), decimal_format(smallest_step / 100)
