"""What has become faster or slower between two result files: ``python benchmarks/compare.py OLD NEW``.

Compares ratios where there are any, else our own figures, which depend on the machine. Exits with 1 if a
budget is missed now that was met before.
"""

# ruff: noqa: T201 (what a benchmark prints is its product)

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from harness import HEADINGS, MET, MISSED

NOTEWORTHY = 0.25
"""Changes of less than a quarter are noise."""
_AGAINST = re.compile(r"\((.+)\)$")
_NUMBER = re.compile(r"-?[\d,]+(?:\.\d+)?")


@dataclass(frozen=True)
class Figure:
    """A line of a results' table."""

    value: float
    shown: str
    budget: str
    verdict: str


def read(path: Path) -> dict[tuple[str, str], Figure]:
    """The figures of a results file by benchmark and name. Raises OSError."""
    found: dict[tuple[str, str], Figure] = {}
    section = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:].strip()
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) != len(HEADINGS) or cells[0] == HEADINGS[0] or set(cells[0]) <= {"-"}:
            continue
        name, ours, theirs, ratio, budget, verdict = cells
        against = _AGAINST.search(theirs)
        name = f"{name} ({against[1]})" if against else name  # one figure may stand beside several programs
        number = _NUMBER.search(ratio or ours)
        if number is not None:
            found[section, name] = Figure(float(number[0].replace(",", "")), ratio or ours, budget, verdict)
    return found


def main() -> int:
    """Print every figure that changed noteworthily; 1 if a budget is missed now that was met."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    old, new = (read(Path(name)) for name in sys.argv[1:])
    lost = 0
    for key in [*old, *(key for key in new if key not in old)]:
        before, after = old.get(key), new.get(key)
        words = ""
        if after is None:
            words = "is gone"
        elif before is None:
            words = f"is new: {after.shown} {after.verdict}"
        else:
            change = after.value / before.value - 1 if before.value else 0.0
            if before.verdict == MET and after.verdict == MISSED:
                lost += 1
                words = f"NO LONGER MET ({after.budget}): {before.shown} → {after.shown}"
            elif before.verdict == MISSED and after.verdict == MET:
                words = f"met now ({after.budget}): {before.shown} → {after.shown}"
            elif abs(change) >= NOTEWORTHY:
                words = f"{before.shown} → {after.shown} ({change:+.0%})"
        if words:
            print(f"{key[0]}: {key[1]}: {words}")
    print(f"{len(new)} figures, {lost} budgets no longer met")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
