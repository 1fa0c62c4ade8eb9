"""``benchmarks/compare.py`` tells what became slower between two files of ``benchmarks/run.py``."""

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
WRITE = """
import sys
from pathlib import Path
from harness import Row
from run import document
against_bare, against_truss, stall_ms, gone, fresh = map(float, sys.argv[2:])
rows = [
    Row("start", "--help", against_bare, "ms", 100.0, "python -c 'pass'"),
    Row("start", "--help", against_truss, "ms", 1000.0, "truss train --help", at_most=0.2),
    Row("start", "worst stall", stall_ms, "ms", at_most=50.0, cause="a page is folded in one turn"),
    Row("start", "steady", 1234.0, "s"),
]
rows += [Row("start", "left out", gone)] if gone else []
rows += [Row("start", "taken in", fresh, at_least=100.0)] if fresh else []
Path(sys.argv[1]).write_text(document([("start", 1.0, rows, "")], 0.1, ["start"]), encoding="utf-8")
"""


def ran(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=BENCHMARKS, check=False, capture_output=True, text=True)


def test_what_is_missed_now_what_moved_and_what_came_and_went(tmp_path: Path) -> None:
    """Figures beside two programs are told apart."""
    old, new = tmp_path / "old.md", tmp_path / "new.md"
    for path, figures in ((old, (150, 190, 60, 7, 0)), (new, (300, 210, 40, 0, 312))):
        assert ran("-c", WRITE, path, *figures).returncode == 0
    compared = ran("compare.py", old, new)
    assert compared.returncode == 1
    assert compared.stdout.splitlines() == [
        "start: --help (python -c 'pass'): 1.50 × → 3.00 × (+100%)",
        "start: --help (truss train --help): NO LONGER MET (≤ 0.2 ×): 0.19 × → 0.21 ×",
        "start: worst stall: met now (≤ 50 ms): 60.0 ms → 40.0 ms",
        "start: left out: is gone",
        "start: taken in: is new: 312 met",
        "5 figures, 1 budgets no longer met",
    ]
