"""``make bench``: measure everything and write the tables to ``RESULTS.md``.

    python benchmarks/run.py [--out RESULTS.md] [NAME[=SIZE] …]

With names, only these benchmarks are run, and nothing is written unless ``--out`` is given. ``SIZE`` is the
duration of a benchmark that has one, in its unit: ``insight=72`` (hours), ``soak=10`` (minutes). The
environment variables ``TRUSS_BIN`` and ``LEET_BIN`` name an official truss command, and a ``wandb`` command
that has ``leet``, to compare with. Exits with 1 if a benchmark failed. A budget that is not met is only
reported in the table, with its cause.
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
DEFAULT_BENCHMARKS = (
    *("start", "first_data", "headless", "large_account", "idle", "heavy_screens", "row_table", "file_tree"),
    *("cache_listing", "charts", "matrix", "log_view", "log_search", "log_requests", "recordings"),
    *("downloads", "insight"),
)
"""The benchmarks of ``make bench``, in order; ``soak`` is not among them, because it takes ten minutes."""
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
    """Run the benchmarks and write the tables; return 1 if a benchmark failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME[=SIZE]", help="run only these (default: all)")
    parser.add_argument("--out", type=Path, help="file for the tables (default: RESULTS.md if all are run)")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        run_in_this_process(*options.names)
        return 0
    sections = [run_in_child(name) for name in options.names or DEFAULT_BENCHMARKS]
    if options.names and options.out is None:
        print("\n\n".join(table(section.figures) for section in sections))
    else:
        command = " ".join(["python benchmarks/run.py", *options.names]) if options.names else "make bench"
        (options.out or RESULTS).write_text(document(sections, command), encoding="utf-8")
    return 1 if any(section.exit_code for section in sections) else 0


def run_in_this_process(name: str) -> None:
    """Run a benchmark and print each figure as a line of JSON, which ``run_in_child`` reads."""
    module, _, size = name.partition("=")
    figures_of_module = importlib.import_module(module).figures
    figures = figures_of_module(int(size)) if size else figures_of_module()

    async def print_async_figures() -> None:
        async for figure in figures:
            print_json(figure)

    if inspect.isasyncgen(figures):
        asyncio.run(print_async_figures())
    else:
        for figure in figures:
            print_json(figure)


def print_json(figure: Figure) -> None:
    print(json.dumps(asdict(figure)), flush=True)


def run_in_child(name: str) -> Section:
    """Run a benchmark in a child process, and print its figures as they arrive."""
    print(f"== {name}", file=sys.stderr, flush=True)
    started_s, figures = time.monotonic(), []
    environ = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests")))}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # with it, each command would compile every module again
    command = [sys.executable, __file__, "--here", name]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as process:
        kill_timer = threading.Timer(TIMEOUT_S, process.kill)
        kill_timer.daemon = True
        kill_timer.start()
        for line in process.stdout or ():
            figures.append(Figure(**json.loads(line)))
            print("  " + ", ".join(filter(None, figures[-1].cells)), file=sys.stderr, flush=True)
        kill_timer.cancel()
    return Section(name, figures, time.monotonic() - started_s, process.returncode)


def document(sections: list[Section], command: str) -> str:
    """Return all tables as Markdown, after the machine and the versions that were used."""
    figures = [figure for section in sections for figure in section.figures]
    verdicts = [figure.verdict for figure in figures if figure.verdict]
    minutes = sum(section.seconds for section in sections) / 60
    packages = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    other_programs = (("truss CLI", "TRUSS_BIN"), ("wandb leet", "LEET_BIN"))
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
            for name, variable in other_programs
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
