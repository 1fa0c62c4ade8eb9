"""Figures with budgets, and the ways to take them.

A benchmark is a module with a generator ``figures``, plain or async, which ``run.py`` reads in a process of
its own::

    def figures() -> Iterator[Figure]:
        times = in_turn({"ours": fill_view, "RichLog": fill_rich_log}, rounds=5)
        yield compared("fill", times["ours"], times["RichLog"], "RichLog", unit="ms", at_most=0.05)
        yield Figure("worst stall", stall_ms, unit="ms", at_most=50, cause="the collector's full run")

Absolute times move by half from hour to hour: a budget is a ratio wherever there is something to compare
with.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MET, MISSED, NO_BUDGET = "met", "NOT MET", ""
HEADINGS = ("figure", "ours", "theirs", "ratio", "budget", "verdict")


@dataclass(frozen=True)
class Figure:
    """A measured figure.

    ``ours`` and ``theirs`` are in ``unit``; ``against`` names the other program. The budget, ``at_most`` or
    ``at_least``, bounds the ratio if there is one, else ``ours``. ``cause`` is why it is not met, as far as
    it was measured; it is shown only then.
    """

    name: str
    ours: float
    theirs: float | None = None
    against: str = ""
    unit: str = ""
    at_most: float | None = None
    at_least: float | None = None
    cause: str = ""

    @property
    def ratio(self) -> float | None:
        """Ours by theirs; None without anything to compare with."""
        return self.ours / self.theirs if self.theirs else None

    @property
    def verdict(self) -> str:
        """Whether the budget is met."""
        value = self.ours if self.ratio is None else self.ratio
        if self.at_most is not None:
            return MET if value <= self.at_most else MISSED
        if self.at_least is not None:
            return MET if value >= self.at_least else MISSED
        return NO_BUDGET

    @property
    def cells(self) -> tuple[str, ...]:
        """The figure as text, under ``HEADINGS``."""
        unit = _suffix(self.unit)
        theirs = "" if self.theirs is None else f"{short(self.theirs)}{unit} ({self.against})"
        ratio = "" if self.ratio is None else f"{short(self.ratio)} ×"
        return self.name, f"{short(self.ours)}{unit}", theirs, ratio, self._budget, self.verdict

    @property
    def _budget(self) -> str:
        unit = _suffix(self.unit if self.ratio is None else "×")
        if self.at_most is not None:
            return f"≤ {self.at_most:g}{unit}"
        return "" if self.at_least is None else f"≥ {self.at_least:g}{unit}"


def compared(
    name: str, ours: Sequence[float], theirs: Sequence[float], against: str, **options: Any
) -> Figure:
    """Return the figure of the medians of rounds of two programs."""
    return Figure(name, statistics.median(ours), statistics.median(theirs), against, **options)


def _suffix(unit: str) -> str:
    return f" {unit}" if unit and not unit.startswith("%") else unit


def short(value: float) -> str:
    """Return a number in about three digits: ``268,000``, ``12.3``, ``0.041``."""
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:#.3g}"


def table(figures: Sequence[Figure]) -> str:
    """Return a Markdown table, padded to be read as text too; below it, why budgets are missed."""
    lines = [HEADINGS, *(figure.cells for figure in figures)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = [
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |"
        for line in lines
    ]
    padded.insert(1, f"|{'|'.join('-' * (width + 2) for width in widths)}|")
    causes = [f"- {one.name}: {one.cause or 'cause not known'}" for one in figures if one.verdict == MISSED]
    return "\n".join([*padded, *(["", *causes] if causes else [])])


def wall_ms(work: Callable[[], object]) -> float:
    """Return the wall time of one call."""
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000


def cpu_ms(work: Callable[[], object]) -> float:
    """Return the CPU time of one call in this process: steadier than the wall's on a shared machine."""
    begun = time.process_time()
    work()
    return (time.process_time() - begun) * 1000


async def cpu_ms_to_paint(work: Callable[[], object], rest: Callable[[], Awaitable[object]]) -> float:
    """Return the CPU time from a change to the painted screen."""
    begun = time.process_time()
    work()
    await rest()
    return (time.process_time() - begun) * 1000


def in_turn(
    ways: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    measure: Callable[[Callable[[], object]], float] = wall_ms,
) -> dict[str, list[float]]:
    """Measure the ways one after the other, round by round, so that a slow minute falls on all of them."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, work in ways.items():
            taken[name].append(measure(work))
    return taken
