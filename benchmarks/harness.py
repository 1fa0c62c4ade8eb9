"""Figures with budgets, and functions that measure them.

A benchmark is a module with a generator ``figures``, sync or async. ``run.py`` runs it in a child process::

    def figures() -> Iterator[Figure]:
        times = measure_in_turn({"ours": fill_view, "RichLog": fill_rich_log}, rounds=5)
        yield compared("fill", times["ours"], times["RichLog"], "RichLog", unit="ms", at_most=0.05)
        yield Figure("worst stall", stall_ms, unit="ms", at_most=50, cause="the collector's full run")

Absolute times vary by half from hour to hour, so a budget is a ratio if there is another program to compare.
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

    ``ours`` and ``theirs`` are in ``unit``; ``other_program`` names the program to compare with. The budget,
    ``at_most`` or ``at_least``, limits the ratio if there is one, else ``ours``. ``cause`` explains why the
    budget is not met, and is displayed only in that case.
    """

    name: str
    ours: float
    theirs: float | None = None
    other_program: str = ""
    unit: str = ""
    at_most: float | None = None
    at_least: float | None = None
    cause: str = ""

    @property
    def ratio(self) -> float | None:
        """``ours`` divided by ``theirs``; None without another program."""
        return self.ours / self.theirs if self.theirs else None

    @property
    def verdict(self) -> str:
        """``MET`` or ``MISSED``; ``NO_BUDGET`` without a budget."""
        value = self.ours if self.ratio is None else self.ratio
        if self.at_most is not None:
            return MET if value <= self.at_most else MISSED
        if self.at_least is not None:
            return MET if value >= self.at_least else MISSED
        return NO_BUDGET

    @property
    def cells(self) -> tuple[str, ...]:
        """The texts of the figure's table row, in the order of ``HEADINGS``."""
        unit = _suffix(self.unit)
        theirs = "" if self.theirs is None else f"{format_number(self.theirs)}{unit} ({self.other_program})"
        ratio = "" if self.ratio is None else f"{format_number(self.ratio)} ×"
        return self.name, f"{format_number(self.ours)}{unit}", theirs, ratio, self._budget, self.verdict

    @property
    def _budget(self) -> str:
        unit = _suffix(self.unit if self.ratio is None else "×")
        if self.at_most is not None:
            return f"≤ {self.at_most:g}{unit}"
        return "" if self.at_least is None else f"≥ {self.at_least:g}{unit}"


def compared(
    name: str, ours: Sequence[float], theirs: Sequence[float], other_program: str, **options: Any
) -> Figure:
    """Return a figure that compares the medians of the rounds of two programs."""
    return Figure(name, statistics.median(ours), statistics.median(theirs), other_program, **options)


def _suffix(unit: str) -> str:
    return f" {unit}" if unit and not unit.startswith("%") else unit


def format_number(value: float) -> str:
    """Format a number with three digits or more: ``268,000``, ``12.3``, ``0.0410``."""
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:#.3g}"


def table(figures: Sequence[Figure]) -> str:
    """Return a Markdown table, padded so that it is readable as text, and the causes of missed budgets."""
    lines = [HEADINGS, *(figure.cells for figure in figures)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = [
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |"
        for line in lines
    ]
    padded.insert(1, f"|{'|'.join('-' * (width + 2) for width in widths)}|")
    causes = [
        f"- {figure.name}: {figure.cause or 'cause not known'}"
        for figure in figures
        if figure.verdict == MISSED
    ]
    return "\n".join([*padded, *(["", *causes] if causes else [])])


def wall_ms(action: Callable[[], object]) -> float:
    """Return the wall time of one call."""
    started_s = time.perf_counter()
    action()
    return (time.perf_counter() - started_s) * 1000


def cpu_ms(action: Callable[[], object]) -> float:
    """Return the CPU time of one call in this process; on a shared machine, it varies less than wall time."""
    started_s = time.process_time()
    action()
    return (time.process_time() - started_s) * 1000


async def cpu_ms_to_paint(
    action: Callable[[], object], wait_for_paint: Callable[[], Awaitable[object]]
) -> float:
    """Return the CPU time of an action until ``wait_for_paint`` returns."""
    started_s = time.process_time()
    action()
    await wait_for_paint()
    return (time.process_time() - started_s) * 1000


def measure_in_turn(
    programs: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    measure: Callable[[Callable[[], object]], float] = wall_ms,
) -> dict[str, list[float]]:
    """Measure the programs in turn in each round, so that a slow minute affects all of them."""
    times: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, action in programs.items():
            times[name].append(measure(action))
    return times
