"""Break what must not break, one rule at a time, and see that the suite notices: ``make mutants``.

    python tests/mutants.py [NAME …] [--list]

In a temporary copy of the working tree each mutant replaces one line of the source by a wrong one and runs
the fast tests that are about that rule (the whole suite would take hours). A mutant that those tests let
pass has survived: the exit code is 1 then, and a test is missing. The tests run unbroken first, as they
could not accuse a mutant otherwise. A line that is no longer there as mutants.txt has it is an error too
(exit code 2): the rule has moved, and its mutant has to follow.
"""

# ruff: noqa: T201 - what it prints is what it is for

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPIED = ("api_client", "tui", "tests", "docs", "pyproject.toml", "README.md", "SECURITY.md")
LIMIT_S = 240.0


@dataclass(frozen=True, slots=True)
class Mutant:
    """``right``, which is there once in ``file``, becomes ``wrong``; one of ``tests`` must fail then."""

    name: str
    file: str
    right: str
    wrong: str
    tests: tuple[str, ...]


TABLE = Path(__file__).with_suffix(".txt")
"""The tests of those below, and of each mutant its name, its file, the right line and the wrong one."""


def _parsed(table: str) -> Iterator[Mutant]:
    name = file = right = ""
    tests: tuple[str, ...] = ()
    for line in table.splitlines():
        if line.startswith("tests/"):
            tests = tuple(line.split())
        elif line.startswith("-"):
            right = line[1:]
        elif line.startswith("+"):
            yield Mutant(name, file, right, line[1:], tests)
        else:
            name, _, file = line.partition(" @ ")


MUTANTS = tuple(_parsed(TABLE.read_text(encoding="utf-8")))


class Moved(Exception):
    """A line to break is not there, or not once."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants whose names hold one of the words given, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("words", nargs="*", metavar="NAME", help="only mutants with this in their name")
    parser.add_argument("--list", action="store_true", help="print their names, and check their lines")
    given = parser.parse_args(arguments)
    chosen = [one for one in MUTANTS if not given.words or any(word in one.name for word in given.words)]
    try:
        for one in chosen:
            _broken(ROOT, one)
    except Moved as moved:
        print(moved, file=sys.stderr)
        return 2
    if given.list:
        print("\n".join(one.name for one in chosen))
        return 0
    with tempfile.TemporaryDirectory(prefix="bt-tui-mutants-") as folder:
        return _try_all(Path(folder), chosen)


def _try_all(copy: Path, chosen: Sequence[Mutant]) -> int:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, copy / name)
    for tests in dict.fromkeys(one.tests for one in chosen):
        failure = _first_failure(copy, tests)
        if failure is not None:
            print(f"{failure} fails without any mutant: mend that first", file=sys.stderr)
            return 2
    survivors = 0
    width = max(len(one.name) for one in chosen)
    for one in chosen:
        path = copy / one.file
        right = path.read_text(encoding="utf-8")
        path.write_text(_broken(copy, one), encoding="utf-8")
        began_s = time.monotonic()
        failure = _first_failure(copy, one.tests)
        path.write_text(right, encoding="utf-8")
        survivors += failure is None
        verdict = "SURVIVED" if failure is None else "caught"
        print(
            f"{one.name:<{width}}  {verdict:<8}  {time.monotonic() - began_s:5.1f} s  {failure or ''}",
            flush=True,
        )
    print(f"{len(chosen) - survivors} of {len(chosen)} mutants caught")
    return 1 if survivors else 0


def _broken(root: Path, mutant: Mutant) -> str:
    """The file's text with the mutant in it. Raises Moved."""
    text = (root / mutant.file).read_text(encoding="utf-8")
    if text.count(mutant.right) != 1:
        times = text.count(mutant.right)
        raise Moved(f"{mutant.name}: in {mutant.file} this is there {times} times: {mutant.right.strip()}")
    return text.replace(mutant.right, mutant.wrong)


def _first_failure(copy: Path, tests: Sequence[str]) -> str | None:
    """The name of a test that fails, None if all pass; one that never ends has failed."""
    options = ("-x", "-q", "-p", "no:cacheprovider", "--no-header")
    command = [sys.executable, "-B", "-m", "pytest", *options, *tests]
    try:
        done = subprocess.run(
            command, cwd=copy, capture_output=True, text=True, timeout=LIMIT_S, check=False, errors="replace"
        )
    except subprocess.TimeoutExpired:
        return "(it never ended)"
    if done.returncode == 0:
        return None
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].partition(" - ")[0].rpartition("::")[2] if failed else done.stdout[-200:]


if __name__ == "__main__":
    sys.exit(main())
