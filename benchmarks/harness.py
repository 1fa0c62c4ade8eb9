"""What all benchmarks share: rounds in turn, a row for each figure, a table, and where the rows are kept.

A benchmark is a script that makes one ``Report``, adds rows, and ends with ``report.close()``::

    report = Report("log view")
    times = in_turn({"ours": fill_view, "RichLog": fill_rich_log}, rounds=5)
    report.compare("fill", times["ours"], times["RichLog"], against="RichLog", unit="ms", at_most=0.05)
    report.figure("worst stall", stall_ms, unit="ms", at_most=50, cause="the collector's full run")
    report.close()

Run by hand it prints its table; where ``BENCH_ROWS`` names a file, the rows are added to it too, a line of
JSON each: so ``benchmarks/run.py`` unites them. Absolute times move by half from hour to hour: a budget is
a ratio wherever there is something to compare with.
"""

# ruff: noqa: T201 (what a benchmark prints is its product)

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

ROWS_VARIABLE = "BENCH_ROWS"
MET, MISSED, NO_BUDGET = "met", "NOT MET", ""
HEADINGS = ("figure", "ours", "theirs", "ratio", "budget", "verdict")


@dataclass(frozen=True)
class Row:
    """One figure.

    ``ours`` and ``theirs`` are medians in ``unit``; ``against`` says who they are. The budget bounds
    the ratio where there is one, else ``ours``: ``at_most`` or ``at_least``, or neither. ``cause`` is
    why the budget is not met, as far as it was measured; it is shown only then.
    """

    benchmark: str
    name: str
    ours: float
    unit: str = ""
    theirs: float | None = None
    against: str = ""
    at_most: float | None = None
    at_least: float | None = None
    cause: str = ""

    @property
    def ratio(self) -> float | None:
        """Ours by theirs; None where there is nothing to compare with."""
        return self.ours / self.theirs if self.theirs else None

    @property
    def verdict(self) -> str:
        """Whether the budget is met."""
        if self.at_most is None and self.at_least is None:
            return NO_BUDGET
        value = self.ours if self.ratio is None else self.ratio
        good = (self.at_most is None or value <= self.at_most) and (
            self.at_least is None or value >= self.at_least
        )
        return MET if good else MISSED

    @property
    def budget(self) -> str:
        """The budget in words: ``≤ 0.05 ×``, ``≥ 100 ×``, ``≤ 50 ms``."""
        sign, bound = ("≤", self.at_most) if self.at_most is not None else ("≥", self.at_least)
        if bound is None:
            return ""
        return f"{sign} {bound:g}{_suffix('×' if self.ratio is not None else self.unit)}"

    def cells(self) -> tuple[str, ...]:
        """The row as text, under ``HEADINGS``."""
        unit = _suffix(self.unit)
        theirs = "" if self.theirs is None else f"{short(self.theirs)}{unit} ({self.against})"
        ratio = "" if self.ratio is None else f"{short(self.ratio)} ×"
        return (self.name, f"{short(self.ours)}{unit}", theirs, ratio, self.budget, self.verdict)


def _suffix(unit: str) -> str:
    return f" {unit}" if unit and not unit.startswith("%") else unit


def short(value: float) -> str:
    """A number in about three digits: ``268,000``, ``12.3``, ``0.041``."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.3f}"


class Report:
    """The rows of one benchmark."""

    def __init__(self, benchmark: str) -> None:
        self.benchmark = benchmark
        self.rows: list[Row] = []

    def figure(
        self,
        name: str,
        ours: float,
        *,
        unit: str = "",
        at_most: float | None = None,
        at_least: float | None = None,
        cause: str = "",
    ) -> None:
        """Add a figure that stands alone."""
        self._add(Row(self.benchmark, name, ours, unit, None, "", at_most, at_least, cause))

    def compare(
        self,
        name: str,
        ours: float | Sequence[float],
        theirs: float | Sequence[float],
        *,
        against: str,
        unit: str = "",
        at_most: float | None = None,
        at_least: float | None = None,
        cause: str = "",
    ) -> None:
        """Add a figure and its like of another program; of several rounds, the median. Bounds the ratio."""
        one, other = (value if isinstance(value, float | int) else median(value) for value in (ours, theirs))
        self._add(Row(self.benchmark, name, one, unit, other, against, at_most, at_least, cause))

    def _add(self, row: Row) -> None:
        self.rows.append(row)
        print(
            f"  {row.name}: " + ", ".join(cell for cell in row.cells()[1:] if cell),
            file=sys.stderr,
            flush=True,
        )

    def close(self) -> None:
        """Print the table; keep the rows where ``BENCH_ROWS`` says."""
        print(table(self.rows))
        kept = os.environ.get(ROWS_VARIABLE)
        if kept:
            with Path(kept).open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in self.rows)


def read_rows(lines: Iterable[str]) -> list[Row]:
    """Rows kept before; fields that are not known are left out. Raises ValueError for what is not JSON."""
    known = {field.name for field in fields(Row)}
    return [
        Row(**{name: value for name, value in json.loads(line).items() if name in known})
        for line in lines
        if line.strip()
    ]


def table(rows: Sequence[Row]) -> str:
    """A Markdown table, padded so that it reads well as text too; below it, why budgets are missed."""
    lines = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    padded = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in lines
    ]
    padded.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    causes = [f"- {row.name}: {row.cause or 'cause not known'}" for row in rows if row.verdict == MISSED]
    return "\n".join([*padded, *(["", *causes] if causes else [])])


def median(values: Sequence[float]) -> float:
    """The middle one."""
    return statistics.median(values)


def wall_ms(work: Callable[[], object]) -> float:
    """Wall time of one call in ms."""
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000


def cpu_ms(work: Callable[[], object]) -> float:
    """CPU time of one call in this process, in ms: steadier than the wall's on a machine that is shared."""
    begun = time.process_time()
    work()
    return (time.process_time() - begun) * 1000


def in_turn(
    display_options: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    measure: Callable[[Callable[[], object]], float] = wall_ms,
) -> dict[str, list[float]]:
    """Measure the ways one after the other, round by round, so that a slow minute falls on all of them."""
    taken: dict[str, list[float]] = {name: [] for name in display_options}
    for _ in range(rounds):
        for name, work in display_options.items():
            taken[name].append(measure(work))
    return taken
