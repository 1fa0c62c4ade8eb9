"""``benchmarks/compare.py`` tells what became slower between two files of ``benchmarks/run.py``."""

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SCRIPT = """
import sys
from pathlib import Path
from compare import main
from harness import Row
from run import document

def write(path, against_bare, against_truss, stall_ms, *other):
    rows = [
        Row("start", "--help", against_bare, "ms", 100.0, "python -c 'pass'"),
        Row("start", "--help", against_truss, "ms", 1000.0, "truss train --help", at_most=0.2),
        Row("start", "worst stall", stall_ms, "ms", at_most=50.0, cause="a page is folded in one turn"),
        Row("start", "steady", 1234.0, "s"), *other,
    ]
    Path(path).write_text(document([("start", 1.0, rows, "")], 0.1, ["start"]), encoding="utf-8")

write(sys.argv[1], 150.0, 190.0, 60.0, Row("start", "left out", 7.0))
write(sys.argv[2], 300.0, 210.0, 40.0, Row("start", "taken in", 312.0, at_least=100.0))
sys.exit(main())
"""


def test_what_is_missed_now_what_moved_and_what_came_and_went(tmp_path: Path) -> None:
    """Figures beside two programs are told apart."""
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "old.md"), str(tmp_path / "new.md")]
    compared = subprocess.run(command, cwd=BENCHMARKS, check=False, capture_output=True, text=True)
    assert (compared.returncode, compared.stderr) == (1, "")
    assert compared.stdout.splitlines() == [
        "start: --help (python -c 'pass'): 1.50 × → 3.00 × (+100%)",
        "start: --help (truss train --help): NO LONGER MET (≤ 0.2 ×): 0.19 × → 0.21 ×",
        "start: worst stall: met now (≤ 50 ms): 60.0 ms → 40.0 ms",
        "start: left out: is gone",
        "start: taken in: is new: 312 met",
        "5 figures, 1 budgets no longer met",
    ]
