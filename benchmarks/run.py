"""``make bench``: all benchmarks, one after the other, and their rows in one table.

    python benchmarks/run.py [--out benchmarks/RESULTS.md] [NAME …]

Every benchmark is a process of its own. ``TRUSS_BIN`` names an official truss command to be compared with,
``LEET_BIN`` a ``wandb`` command that has ``leet``. Exits with 1 if a benchmark failed; a budget that is not
met is told in the table, with its cause.
"""

# ruff: noqa: T201 (what a benchmark prints is its product)

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from harness import MISSED, ROWS_VARIABLE, Row, read_rows, table

HERE = Path(__file__).resolve().parent
NAMES = (
    "start",
    "first_data",
    "headless",
    "large_account",
    "idle",
    "heavy_screens",
    "row_table",
    "file_tree",
    "cache_listing",
    "charts",
    "matrix",
    "log_view",
    "log_search",
    "log_requests",
    "recordings",
    "downloads",
    "insight",
)
"""In this order; what takes long (the soaks, ``insight`` in full) is run on its own."""
ARGUMENTS = {"log_requests": ["20"], "insight": ["12"], "recordings": ["100000", "64"]}
"""Shorter than by hand: all together is to take less than ten minutes."""
TIMEOUT_S = 300
PACKAGES = ("textual", "httpx", "pydantic", "plotext")
GIB = 1024**3


def main() -> int:
    """Run and write; 1 if a benchmark failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these (default: all)")
    parser.add_argument("--out", type=Path, default=HERE / "RESULTS.md")
    arguments = parser.parse_args()
    names = arguments.names or [name for name in NAMES if (HERE / f"{name}.py").exists()]
    begun = time.monotonic()
    parts: list[tuple[str, float, list[Row], str]] = []
    for name in names:
        print(f"== {name}", file=sys.stderr, flush=True)
        parts.append((name, *run_one(name)))
    minutes = (time.monotonic() - begun) / 60
    arguments.out.write_text(document(parts, minutes, names), encoding="utf-8")
    missed = [row for _, _, rows, _ in parts for row in rows if row.verdict == MISSED]
    print(
        f"{arguments.out}: {sum(len(rows) for _, _, rows, _ in parts)} figures in {minutes:.1f} min", end=""
    )
    print(f", {len(missed)} not met" if missed else ", all met")
    for row in missed:
        print(f"  {row.benchmark}: {row.name}: {row.cause or 'cause not known'}")
    return 1 if any(trouble for *_, trouble in parts) else 0


def run_one(name: str) -> tuple[float, list[Row], str]:
    """Seconds it took, its rows, and the end of what it said if it failed."""
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "rows"
        begun = time.monotonic()
        command = [sys.executable, str(HERE / f"{name}.py"), *ARGUMENTS.get(name, [])]
        environ = os.environ | {ROWS_VARIABLE: str(kept), "PYTHONPATH": str(HERE.parent)}
        try:
            done = subprocess.run(
                command, env=environ, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
            )
            trouble = "" if done.returncode == 0 else (done.stderr or done.stdout)[-1500:]
        except subprocess.TimeoutExpired:
            trouble = f"not done after {TIMEOUT_S} s"
        rows = read_rows(kept.read_text(encoding="utf-8").splitlines()) if kept.exists() else []
        if trouble:
            print(trouble, file=sys.stderr)
        return time.monotonic() - begun, rows, trouble


def document(parts: list[tuple[str, float, list[Row], str]], minutes: float, names: list[str]) -> str:
    """All tables, and what they were made with."""
    rows = [row for _, _, rows, _ in parts for row in rows]
    judged = [row for row in rows if row.verdict]
    missed = [row for row in judged if row.verdict == MISSED]
    whole = (
        "make bench"
        if set(names) >= {n for n in NAMES if (HERE / f"{n}.py").exists()}
        else ("python benchmarks/run.py " + " ".join(names))
    )
    lines = [
        "# Benchmarks",
        "",
        f"Made by `{whole}` in {minutes:.1f} minutes: {len(rows)} figures, {len(judged)} with a budget,"
        f" {len(missed)} of them not met. `python benchmarks/compare.py OLD NEW` compares two such files.",
        "",
        f"- Machine: {machine()}",
        f"- Python {platform.python_version()}; " + ", ".join(f"{each} {version(each)}" for each in PACKAGES),
        *(
            f"- {name}: {'compared with' if os.environ.get(variable) else f'not given ({variable})'}"
            for name, variable in (("truss CLI", "TRUSS_BIN"), ("wandb leet", "LEET_BIN"))
        ),
        "",
        "Ratios are ours by theirs, medians of rounds taken in turn in one run; a budget bounds the ratio"
        " where there is one, else our own figure. Absolute times depend on the machine and its other work.",
    ]
    for name, seconds, found, trouble in parts:
        lines += ["", f"## {name}", ""]
        lines += [table(found)] if found else []
        lines += ["", f"Failed: {trouble.strip().splitlines()[-1]}"] if trouble else []
        lines += ["", f"{seconds:.0f} s"]
    return "\n".join(lines) + "\n"


def machine() -> str:
    """Its class, by what matters here; neither its name nor its owner's."""
    import psutil

    load = os.getloadavg()[0]
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores,"
        f" {psutil.virtual_memory().total / GIB:.0f} GiB; load {load:.1f} at the end"
    )


if __name__ == "__main__":
    sys.exit(main())
