"""``make bench``: measure everything and write the tables to ``RESULTS.md``.

    python benchmarks/run.py [--out RESULTS.md] [NAME[=SIZE] …]

With names, only these are measured and nothing is written unless ``--out`` is given. ``SIZE`` is the hours,
seconds or minutes of a benchmark that takes some: ``insight=72``, ``soak=10``. ``TRUSS_BIN`` names an
official truss command to be compared with, ``LEET_BIN`` a ``wandb`` command that has ``leet``. Exits with 1
if a benchmark failed; a budget that is not met is in the table, with its cause.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import inspect
import json
import os
import platform
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import psutil
from harness import MISSED, ROOT, Figure, table

RESULTS = ROOT / "benchmarks" / "RESULTS.md"
NAMES = (
    *("start", "first_data", "headless", "large_account", "idle", "heavy_screens", "row_table", "file_tree"),
    *("cache_listing", "charts", "matrix", "log_view", "log_search", "log_requests", "recordings"),
    *("downloads", "insight"),
)
"""In this order; ``soak`` takes ten minutes and is run on its own."""
TIMEOUT_S = 900
PACKAGES = ("textual", "httpx", "pydantic", "plotext")
GIB = 1024**3


@dataclass
class Section:
    """The figures of one benchmark; ``exit_code`` is not 0 if it failed."""

    name: str
    figures: list[Figure]
    seconds: float
    exit_code: int


def main() -> int:
    """Measure and write; return 1 if a benchmark failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME[=SIZE]", help="only these (default: all)")
    parser.add_argument("--out", type=Path, help="file for the tables (default: RESULTS.md if all are run)")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        measure_here(*options.names)
        return 0
    sections = [measured(name) for name in options.names or NAMES]
    if options.names and options.out is None:
        print("\n\n".join(table(section.figures) for section in sections))
    else:
        command = " ".join(["python benchmarks/run.py", *options.names]) if options.names else "make bench"
        (options.out or RESULTS).write_text(document(sections, command), encoding="utf-8")
    return 1 if any(section.exit_code for section in sections) else 0


def measure_here(name: str) -> None:
    """Print each figure of a benchmark as a line of JSON."""
    module, _, size = name.partition("=")
    measure = importlib.import_module(module).figures
    figures = measure(int(size)) if size else measure()

    async def show_as_they_come() -> None:
        async for figure in figures:
            show(figure)

    if inspect.isasyncgen(figures):
        asyncio.run(show_as_they_come())
    else:
        for figure in figures:
            show(figure)


def show(figure: Figure) -> None:
    """Print a figure for ``measured`` to read."""
    print(json.dumps(asdict(figure)), flush=True)


def measured(name: str) -> Section:
    """Run a benchmark in a process of its own, and show its figures as they come."""
    print(f"== {name}", file=sys.stderr, flush=True)
    begun, figures = time.monotonic(), []
    environ = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests")))}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each command would compile every module again
    command = [sys.executable, __file__, "--here", name]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as process:
        limit = threading.Timer(TIMEOUT_S, process.kill)
        limit.daemon = True
        limit.start()
        for line in process.stdout or ():
            figures.append(Figure(**json.loads(line)))
            print("  " + ", ".join(filter(None, figures[-1].cells)), file=sys.stderr, flush=True)
        limit.cancel()
    return Section(name, figures, time.monotonic() - begun, process.returncode)


def document(sections: list[Section], command: str) -> str:
    """Return all tables, and what they were made with."""
    figures = [figure for section in sections for figure in section.figures]
    verdicts = [figure.verdict for figure in figures if figure.verdict]
    minutes = sum(section.seconds for section in sections) / 60
    packages = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    others = (("truss CLI", "TRUSS_BIN"), ("wandb leet", "LEET_BIN"))
    memory_gib = psutil.virtual_memory().total / GIB
    lines = [
        "# Benchmarks",
        "",
        f"Made by `{command}` in {minutes:.1f} minutes: {len(figures)} figures, {len(verdicts)} with a"
        f" budget, {verdicts.count(MISSED)} of them not met."
        " `python benchmarks/compare.py OLD NEW` compares two such files.",
        "",
        f"- Machine: {platform.system()} {platform.machine()}, {os.cpu_count()} cores, {memory_gib:.0f} GiB;"
        f" load {os.getloadavg()[0]:.1f} at the end",
        f"- Python {platform.python_version()}; {packages}",
        *(
            f"- {name}: {'compared with' if variable in os.environ else f'not given ({variable})'}"
            for name, variable in others
        ),
        "",
        "Ratios are ours by theirs, medians of rounds taken in turn in one run; a budget bounds the ratio"
        " where there is one, else our own figure. Absolute times depend on the machine and its other work.",
    ]
    for section in sections:
        lines += ["", f"## {section.name}", "", table(section.figures)]
        lines += ["", f"Failed with exit code {section.exit_code}"] if section.exit_code else []
        lines += ["", f"{section.seconds:.0f} s"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
