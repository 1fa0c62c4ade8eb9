"""Read from the source of the tests what their markers say they prove."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]


@cache
def marked(marker: str) -> frozenset[tuple[str, ...]]:
    """Return the arguments of every ``@pytest.mark.MARKER(…)`` of a test."""
    return frozenset(
        tuple(str(ast.literal_eval(argument)) for argument in decorator.args)
        for function in _tests()
        for decorator in function.decorator_list
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == f"pytest.mark.{marker}"
    )


def _tests() -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for path in TESTS.rglob("test_*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield node
