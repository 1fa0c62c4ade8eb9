"""Run every expression of some packages over long texts of its own words.

Each text has much CPU time, of which linear time needs a fraction. The kernel kills the process
(``python -m support.expressions PACKAGE…``) in the middle of the first slow expression,
which is the last one that it printed.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import signal
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from re import (
    _constants as codes,  # type: ignore[attr-defined]
    _parser as parser,  # type: ignore[attr-defined]
)
from types import ModuleType
from typing import Any

CHARACTERS = 2**14
CPU_S = 0.25
"""Quadratic time is noticed from a nanosecond for each pair of characters."""
MANY = 16
"""Fewer repetitions cost nothing."""
REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
FROM_START = {"match", "fullmatch"}
SOME_CHARACTERS = "a0 A_-./:,=\n\t\x01ä━"


def modules(packages: Iterable[str]) -> Iterator[ModuleType]:
    for name in packages:
        module = importlib.import_module(name)
        yield module
        for found in pkgutil.walk_packages(getattr(module, "__path__", []), f"{name}."):
            yield importlib.import_module(found.name)


def expressions_of(packages: list[str]) -> dict[re.Pattern[str], tuple[str, set[str]]]:
    """Return all expressions that the packages compile when imported, wherever they hide, and their uses."""
    compiled: list[tuple[str, re.Pattern[str]]] = []
    compile_one = re._compile  # type: ignore[attr-defined]

    def remember(pattern: Any, flags: int) -> Any:
        done = compile_one(pattern, flags)
        frame = inspect.currentframe()
        while frame is not None and frame.f_globals["__name__"] in {__name__, "re"}:
            frame = frame.f_back
        if frame is not None:
            compiled.append((frame.f_globals["__name__"], done))
        return done

    re._compile = remember  # type: ignore[attr-defined]
    loaded = list(modules(packages))
    re._compile = compile_one  # type: ignore[attr-defined]
    uses: dict[str, set[str]] = defaultdict(set)
    for module in loaded:
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                uses[f"{module.__name__}.{node.value.id}"].add(node.attr)
    names = {
        value: f"{module.__name__}.{name}"
        for module in loaded
        for name, value in vars(module).items()
        if isinstance(value, re.Pattern)
    }
    return {
        pattern: (
            module,
            uses[names.get(pattern, "")] & {*FROM_START, "search", "sub", "findall", "finditer", "split"},
        )
        for module, pattern in compiled
        if module.startswith(tuple(packages)) and isinstance(pattern.pattern, str)
    }


def texts_for(pattern: re.Pattern[str]) -> set[str]:
    """Return long texts of the expression's own words: what it repeats, what leads there, and near misses."""
    tree = parser.parse(pattern.pattern, pattern.flags)
    whole = _example(tree)
    words = {whole, whole[:-1], *(word for pair in _repetitions(tree, "") for word in _words(*pair))}
    texts = {(word * (CHARACTERS // len(word) + 1))[:CHARACTERS] for word in words if word}
    return texts | {lead + body * (CHARACTERS // len(body)) for lead, body in _repetitions(tree, "") if body}


def _words(lead: str, body: str) -> tuple[str, ...]:
    return body, lead, f"{lead} ", lead + body, lead + 3 * body


def _repetitions(tree: Any, lead: str) -> Iterator[tuple[str, str]]:
    """Yield what leads to each repetition, and what it repeats."""
    for code, value in tree:
        if code in REPEATS:
            if value[1] >= MANY:
                yield lead, _example(value[2])
            yield from _repetitions(value[2], lead)
        for part in _parts(code, value):
            yield from _repetitions(part, lead)
        lead += _example([(code, value)])


def _parts(code: Any, value: Any) -> list[Any]:
    if code is codes.BRANCH:
        return list(value[1])
    if code is codes.SUBPATTERN:
        return [value[3]]
    if code is codes.ATOMIC_GROUP:
        return [value]
    if code in (codes.ASSERT, codes.ASSERT_NOT):
        return [value[1]]
    return []


def _example(tree: Any) -> str:
    """Return a short text that the expression matches, look-arounds aside."""
    text = ""
    for code, value in tree:
        if code is codes.LITERAL:
            text += chr(value)
        elif code in (codes.IN, codes.ANY, codes.NOT_LITERAL):
            text += _member(code, value)
        elif code in REPEATS:
            text += _example(value[2]) * max(1, value[0])
        elif code not in (codes.ASSERT, codes.ASSERT_NOT):
            text += next((_example(part) for part in _parts(code, value)), "")
    return text


def _member(code: Any, value: Any) -> str:
    own = (
        [chr(low) for kind, one in value if kind in (codes.LITERAL, codes.RANGE) for low in _low(kind, one)]
        if (code is codes.IN)
        else []
    )
    # A set in a tree is compiled by itself, so that its classes and negation mean what they mean there.
    state = parser.State()
    one = parser.SubPattern(state, [(code, value)])
    holds = re._compiler.compile(one).fullmatch  # type: ignore[attr-defined]
    return next((each for each in [*own, *SOME_CHARACTERS] if holds(each)), "a")


def _low(kind: Any, value: Any) -> list[int]:
    return [value] if kind is codes.LITERAL else [value[0]]


def run_over(pattern: re.Pattern[str], uses: set[str], text: str) -> None:
    pattern.match(text)
    pattern.fullmatch(text)
    if not uses or uses - FROM_START:
        for _ in pattern.finditer(text):
            pass


def limit_cpu(seconds: float) -> None:
    """Let the kernel end this process after some more seconds of CPU time."""
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)


def main(packages: list[str]) -> None:
    for pattern, (module, uses) in expressions_of(packages).items():
        sys.stdout.write(f"{module}: {pattern.pattern!r}\n")
        sys.stdout.flush()
        for text in sorted(texts_for(pattern)):
            limit_cpu(CPU_S)
            run_over(pattern, uses, text)
    sys.stdout.write("all are linear\n")


if __name__ == "__main__":
    main(sys.argv[1:])
