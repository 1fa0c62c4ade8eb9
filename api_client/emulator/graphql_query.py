"""Just enough GraphQL: one operation of nested fields with aliases; arguments are skipped."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_TOKEN = re.compile(
    r"""[\s,\ufeff]+ | \#[^\n]* | (?P<text>\"\"\".*?\"\"\"|"(?:\\.|[^"\\\n])*")"""
    r"""|(?P<name>[_A-Za-z]\w*) | (?P<sign>\.\.\.|[{}()\[\]:!=$@|&]) | (?P<number>-?\d[\d.eE+-]*)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
MAXIMUM_DEPTH = 32


class QueryError(Exception):
    """The query cannot be answered; the message is for the caller."""


@dataclass(frozen=True)
class Field:
    """A wanted field: what it is called in the answer, its own name, and what is wanted of it."""

    key: str
    name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Operation:
    """``query`` or ``mutation`` and its wanted fields."""

    kind: str
    fields: tuple[Field, ...]


def parse(query: str) -> Operation:
    """Read the first operation of a document; raises ``QueryError``."""
    return _Reader(_tokens(query)).operation()


def select(value: Any, fields: tuple[Field, ...], *, where: str = "Query") -> Any:
    """What is wanted of a value: mappings are picked from, lists one by one; raises ``QueryError``."""
    if isinstance(value, list):
        return [select(item, fields, where=where) for item in value]
    if not isinstance(value, Mapping):
        return value
    if not fields:
        raise QueryError(f"{where} needs a selection of fields")
    answer: dict[str, Any] = {}
    for field in fields:
        if field.name == "__typename":
            answer[field.key] = where
        elif field.name not in value:
            raise QueryError(f"Cannot query field '{field.name}' on '{where}'")
        else:
            answer[field.key] = select(value[field.name], field.fields, where=field.name)
    return answer


def _tokens(query: str) -> list[str]:
    tokens = []
    position = 0
    while position < len(query):
        match = _TOKEN.match(query, position)
        if match is None:
            raise QueryError(f"Syntax error at offset {position}")
        position = match.end()
        if match.lastgroup is not None:
            tokens.append(match.group())
    return tokens


class _Reader:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._position = 0

    def operation(self) -> Operation:
        kind = "query"
        if self._next() != "{":
            kind = self._take()
            if kind not in ("query", "mutation"):
                raise QueryError(f"Unexpected {kind!r}")
            while self._next() != "{":
                if not self._skip_arguments():
                    self._take()
        return Operation(kind, self._selection(depth=0))

    def _selection(self, depth: int) -> tuple[Field, ...]:
        if depth > MAXIMUM_DEPTH:
            raise QueryError("the query is nested too deeply")
        self._take()
        fields = []
        while self._next() != "}":
            fields.append(self._field(depth))
        self._take()
        return tuple(fields)

    def _field(self, depth: int) -> Field:
        key = name = self._take()
        if not (key.isascii() and key.isidentifier()):
            raise QueryError(f"Unexpected {key!r}")
        if self._next() == ":":
            self._take()
            name = self._take()
        self._skip_arguments()
        return Field(key, name, self._selection(depth + 1) if self._next() == "{" else ())

    def _skip_arguments(self) -> bool:
        if self._next() != "(":
            return False
        open_brackets = 0
        while True:
            token = self._take()
            open_brackets += (token == "(") - (token == ")")
            if open_brackets == 0:
                return True

    def _next(self) -> str:
        if self._position >= len(self._tokens):
            raise QueryError("the query ends too early")
        return self._tokens[self._position]

    def _take(self) -> str:
        token = self._next()
        self._position += 1
        return token
