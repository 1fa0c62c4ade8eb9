"""What has become faster or slower between two result files: ``python benchmarks/compare.py OLD NEW``.

``git show COMMIT:benchmarks/RESULTS.md`` prints an old one. Compares ratios where there are any, else our own
figures, which depend on the machine. Exits with 1 if a budget is missed now that was met before.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from harness import HEADINGS, MET, MISSED

NOTEWORTHY = 0.25
"""Changes of less than a quarter are noise."""
NUMBER = re.compile(r"-?[\d,]+(?:\.\d+)?")


@dataclass(frozen=True)
class Result:
    """A line of a results' table."""

    shown: str
    budget: str
    verdict: str

    @property
    def value(self) -> float:
        """The number in what is shown."""
        number = NUMBER.search(self.shown)
        return float(number[0].replace(",", "")) if number else 0.0


def read(path: Path) -> dict[str, Result]:
    """Return the figures of a results file by benchmark, name and what they are compared with."""
    results: dict[str, Result] = {}
    section = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:].strip()
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == len(HEADINGS) and cells[0] != HEADINGS[0] and not cells[0].startswith("--"):
            name, ours, theirs, ratio, budget, verdict = cells
            against = theirs[theirs.find("(") :] if theirs else ""
            results[f"{section}: {name} {against}".rstrip()] = Result(ratio or ours, budget, verdict)
    return results


def change(before: Result | None, after: Result | None) -> str:
    """Return a noteworthy change in words, else nothing."""
    if before is None or after is None:
        return "is gone" if after is None else f"is new: {after.shown} {after.verdict}"
    shown = f"{before.shown} → {after.shown}"
    if (before.verdict, after.verdict) == (MET, MISSED):
        return f"NO LONGER MET ({after.budget}): {shown}"
    if (before.verdict, after.verdict) == (MISSED, MET):
        return f"met now ({after.budget}): {shown}"
    factor = after.value / before.value - 1 if before.value else 0.0
    return f"{shown} ({factor:+.0%})" if abs(factor) >= NOTEWORTHY else ""


def main() -> int:
    """Print every figure that changed noteworthily; return 1 if a budget is missed that was met."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    old, new = (read(Path(name)) for name in sys.argv[1:])
    changes = {name: change(old.get(name), new.get(name)) for name in {**old, **new}}
    for name, words in changes.items():
        if words:
            print(f"{name}: {words}")
    lost = sum(words.startswith("NO LONGER") for words in changes.values())
    print(f"{len(new)} figures, {lost} budgets no longer met")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
