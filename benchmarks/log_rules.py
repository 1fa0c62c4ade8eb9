"""Measure what each rule of the log reader contributes, by disabling each constant and expression in turn.

    python benchmarks/log_rules.py [--only NAME] [--words] EXCERPTS.json […] NOISE.txt […]

A JSON file is a list of excerpts: ``lines`` of a log, and ``expect``, the expected fields by line (none for a
chat). Any other file, such as code or documentation, must have no fields. A disabled expression matches
nothing, a set or table is empty or lacks one entry, a number is doubled or halved. For each file, the program
prints how many fields are lost and how many false fields appear; "nothing" if a rule changes no file.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import re2

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tui.analysis.progress import lines as reader_package
from tui.analysis.progress.lines import vocabulary
from tui.analysis.progress.lines.reader import Reader
from tui.analysis.progress.lines.reading import ParsedMetrics, merged

MODULES = [
    importlib.import_module(f"{reader_package.__name__}.{info.name}")
    for info in pkgutil.iter_modules(reader_package.__path__)
]
FIELDS = {
    "step": ("step", "epoch_step"),
    "total_steps": ("total_steps", "epoch_steps"),
    "throughput": ("tokens_per_s", "samples_per_s"),
    **{name: (name,) for name in ("epoch", "loss", "eval_loss", "learning_rate", "grad_norm")},
}
"""The names of expected fields, and the fields of ``ParsedMetrics`` that may have the value."""


def main() -> None:
    """Print the effect of each rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--only", default="", help="only rules with this in their names, such as vocabulary")
    parser.add_argument("--words", action="store_true", help="also each word and entry of a set or table")
    arguments = parser.parse_args()
    excerpts_by_file = [excerpts_of(path) for path in arguments.files]
    baseline = [score(excerpts) for excerpts in excerpts_by_file]
    print(f"{'as it is':60}", *(f"{right:4} right {false:3} false" for right, false in baseline))
    for rule, original, changed, label in rules(words=arguments.words):
        if arguments.only not in label:
            continue
        replace_rule(rule, original, changed)
        results = [score(excerpts) for excerpts in excerpts_by_file]
        replace_rule(rule, changed, original)
        effects = [
            "" if result == before else f"{before[0] - result[0]:+4} lost {result[1] - before[1]:+3} false"
            for result, before in zip(results, baseline, strict=True)
        ]
        print(
            f"{label:60}",
            *(mark.rjust(16) for mark in effects),
            "" if any(effects) else "nothing",
            flush=True,
        )


def excerpts_of(path: Path) -> list[dict[str, Any]]:
    """Read the excerpts of a file; a file that is not JSON is a single excerpt without expected fields."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return json.loads(text) if path.suffix == ".json" else [{"lines": text.splitlines(), "expect": []}]


def rules(*, words: bool) -> Iterator[tuple[str, Any, Any, str]]:
    """Yield each change of a rule: the rule's name, its value, the changed value, and a label."""
    for module in MODULES:
        for name, value in list(vars(module).items()):
            if name.lstrip("_").isupper() and _is_defined_in(module, name):
                for change, changed in changes(value, words=words):
                    yield name, value, changed, f"{module.__name__.rpartition('.')[2]}.{name} {change}"


def changes(value: Any, *, words: bool) -> Iterator[tuple[str, Any]]:
    """Yield a description and the result of each possible change to a value."""
    if isinstance(value, re.Pattern):
        yield "never matches", re.compile(r"(?!)")
    elif type(value).__module__.startswith("re2"):
        yield "never matches", re2.compile(rb"\x00\x01\x02")
    elif isinstance(value, int | float):
        yield from (("doubled", value * 2), ("halved", type(value)(value / 2)))
    elif type(value) in (frozenset, tuple) and value:
        yield "empty", type(value)()
        if words:
            yield from (
                (f"without {word!r}", type(value)(entry for entry in value if entry != word))
                for word in value
            )
    elif isinstance(value, dict):
        yield "empty", {}
        if words:
            yield from (
                (f"without {key!r}", {name: entry for name, entry in value.items() if name != key})
                for key in value
            )


def replace_rule(name: str, before: Any, after: Any) -> None:
    """Replace a value in the module that defines it, and in the modules that import it."""
    for module in MODULES:
        if vars(module).get(name) is before:
            setattr(module, name, after)
    vocabulary.meaning.cache_clear()


def score(excerpts: list[dict[str, Any]]) -> tuple[int, int]:
    """Return how many fields are read as expected, and how many are read although they are not expected."""
    right_count = false_count = 0
    for excerpt in excerpts:
        expected = {entry["line"]: entry for entry in excerpt["expect"]}
        try:
            readings = read(excerpt["lines"])
        except (KeyError, IndexError, TypeError, StopIteration):  # other code requires the rule
            continue
        for index in range(len(excerpt["lines"])):
            fields = expected.get(index, {})
            reading = readings.get(index, ParsedMetrics())
            for field, names in FIELDS.items():
                values = [value for name in names if (value := getattr(reading, name)) is not None]
                allowed = [fields[field], *fields.get("alt", {}).get(field, [])] if field in fields else []
                is_expected = any(_is_close(value, other) for value in values for other in allowed)
                right_count += is_expected
                false_count += bool(values) and not is_expected
            expects_checkpoint = bool(fields.get("checkpoint_saved"))
            right_count += expects_checkpoint and reading.checkpoint is not None
            false_count += not expects_checkpoint and reading.checkpoint is not None
    return right_count, false_count


def read(lines: list[str]) -> dict[int, ParsedMetrics]:
    """Return what the reader finally reports, by the index of the line."""
    reader = Reader()
    readings: dict[int, ParsedMetrics] = {}
    for index, line in enumerate(lines):
        for line_index, _, reading in reader.read(line, at_ns=index):
            readings[line_index] = merged(readings.get(line_index, ParsedMetrics()), reading)
    return readings


def _is_close(value: float, expected: Any) -> bool:
    other = float(expected)
    return math.isclose(value, other, rel_tol=1e-6) or (math.isnan(value) and math.isnan(other))


def _is_defined_in(module: ModuleType, name: str) -> bool:
    source = Path(module.__file__ or "").read_text(encoding="utf-8")
    return re.search(rf"^{name}\b[^=\n]*=", source, re.MULTILINE) is not None


if __name__ == "__main__":
    main()
