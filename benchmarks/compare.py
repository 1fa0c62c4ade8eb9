"""Print what changed between two results files: ``python benchmarks/compare.py OLD NEW``.

``git show COMMIT:benchmarks/RESULTS.md`` prints an old results file. Ratios are compared if a figure has one,
else our own figures, which depend on the machine. Exits with 1 if a budget that was met is missed now.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from harness import HEADINGS, MET, MISSED

MIN_CHANGE = 0.25
"""Relative changes below this are noise."""
NUMBER = re.compile(r"-?[\d,]+(?:\.\d+)?")


@dataclass(frozen=True)
class Result:
    """A row of a results table; ``shown`` is the text of its ratio, or else of our figure."""

    shown: str
    budget: str
    verdict: str

    @property
    def value(self) -> float:
        """The number in ``shown``."""
        number = NUMBER.search(self.shown)
        return float(number[0].replace(",", "")) if number else 0.0


def read(path: Path) -> dict[str, Result]:
    """Return the results in a file by benchmark, figure, and program that is compared."""
    results: dict[str, Result] = {}
    section = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:].strip()
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == len(HEADINGS) and cells[0] != HEADINGS[0] and not cells[0].startswith("--"):
            name, ours, theirs, ratio, budget, verdict = cells
            other_program = theirs[theirs.find("(") :] if theirs else ""
            results[f"{section}: {name} {other_program}".rstrip()] = Result(ratio or ours, budget, verdict)
    return results


def change(before: Result | None, after: Result | None) -> str:
    """Describe a change of at least ``MIN_CHANGE``, or of the verdict; empty for a smaller change."""
    if before is None or after is None:
        return "is gone" if after is None else f"is new: {after.shown} {after.verdict}"
    values = f"{before.shown} → {after.shown}"
    if (before.verdict, after.verdict) == (MET, MISSED):
        return f"NO LONGER MET ({after.budget}): {values}"
    if (before.verdict, after.verdict) == (MISSED, MET):
        return f"met now ({after.budget}): {values}"
    factor = after.value / before.value - 1 if before.value else 0.0
    return f"{values} ({factor:+.0%})" if abs(factor) >= MIN_CHANGE else ""


def main() -> int:
    """Print the figures that changed; return 1 if a budget that was met is missed now."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    old, new = (read(Path(name)) for name in sys.argv[1:])
    changes = {name: change(old.get(name), new.get(name)) for name in {**old, **new}}
    for name, description in changes.items():
        if description:
            print(f"{name}: {description}")
    missed_count = sum(description.startswith("NO LONGER") for description in changes.values())
    print(f"{len(new)} figures, {missed_count} budgets no longer met")
    return 1 if missed_count else 0


if __name__ == "__main__":
    sys.exit(main())
