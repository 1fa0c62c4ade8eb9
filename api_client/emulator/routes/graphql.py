"""The GraphQL endpoint, for the few operations that the official clients use.

The parser supports one operation of nested fields with aliases and arguments, and nothing else of the
language.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api_client.emulator.answers import ApiFault, JsonAnswer
from api_client.emulator.catalog import INSTANCE_TYPES, PRICES_USD_PER_MINUTE
from api_client.emulator.parameters import Parameters, platform_of, read_object
from api_client.emulator.platform import EMULATOR_USER_EMAIL, Platform
from api_client.emulator.serving.deploying import deploy
from api_client.models import InstanceType

_TOKEN = re.compile(
    r"""[\s,\ufeff]+ | \#[^\n]* | (?P<text>\"\"\".*?\"\"\"|"(?:\\.|[^"\\\n])*")"""
    r"""|(?P<name>[_A-Za-z]\w*) | (?P<sign>\.\.\.|[{}()\[\]:!=$@|&]) | (?P<number>-?\d[\d.eE+-]*)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
MAXIMUM_DEPTH = 32


class QueryError(Exception):
    """The query cannot be answered; the message is returned to the caller."""


@dataclass(frozen=True)
class Variable:
    """``$name`` in an argument; its value is sent alongside the query."""

    name: str


@dataclass(frozen=True)
class Field:
    """A requested field: its key in the answer, its name and its selected subfields.

    ``arguments`` are as written, with a ``Variable`` wherever the query has one; see ``resolve``.
    """

    key: str
    name: str
    fields: tuple[Field, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Operation:
    """``query`` or ``mutation`` and the requested fields."""

    kind: str
    fields: tuple[Field, ...]


def parse(query: str) -> Operation:
    """Parse the first operation of a document; raise ``QueryError`` if it is malformed."""
    return _QueryParser(_tokens(query)).operation()


def select(value: Any, fields: tuple[Field, ...], *, where: str = "Query") -> Any:
    """Return the requested fields of ``value``, item by item for lists.

    Raises ``QueryError`` for unknown fields.
    """
    if isinstance(value, list):
        return [select(item, fields, where=where) for item in value]
    if not isinstance(value, Mapping):
        return value
    if not fields:
        raise QueryError(f"{where} needs a selection of fields")
    answer: dict[str, Any] = {}
    for wanted in fields:
        if wanted.name == "__typename":
            answer[wanted.key] = where
        elif wanted.name not in value:
            raise QueryError(f"Cannot query field '{wanted.name}' on '{where}'")
        else:
            answer[wanted.key] = select(value[wanted.name], wanted.fields, where=wanted.name)
    return answer


def resolve(value: Any, variables: Mapping[str, Any]) -> Any:
    """Replace variables in an argument by their values; raise ``QueryError`` if one is missing."""
    if isinstance(value, Variable):
        if value.name not in variables:
            raise QueryError(f"Variable '${value.name}' was not provided")
        return variables[value.name]
    if isinstance(value, Mapping):
        return {name: resolve(part, variables) for name, part in value.items()}
    if isinstance(value, list):
        return [resolve(part, variables) for part in value]
    return value


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


class _QueryParser:
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
                if not self._skip_definitions():
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
        key = name = self._name()
        if self._next() == ":":
            self._take()
            name = self._take()
        arguments = self._pairs(")", depth) if self._next() == "(" else {}
        return Field(key, name, self._selection(depth + 1) if self._next() == "{" else (), arguments)

    def _pairs(self, end: str, depth: int) -> dict[str, Any]:
        """Read ``(a: 1, b: 2)`` or ``{a: 1, b: 2}``; the opening bracket is the next token."""
        self._take()
        pairs: dict[str, Any] = {}
        while self._next() != end:
            name = self._name()
            if self._take() != ":":
                raise QueryError(f"Expected a colon after {name!r}")
            pairs[name] = self._value(depth + 1)
        self._take()
        return pairs

    def _value(self, depth: int) -> Any:
        if depth > MAXIMUM_DEPTH:
            raise QueryError("the query is nested too deeply")
        if self._next() == "{":
            return self._pairs("}", depth)
        token = self._take()
        if token == "$":
            return Variable(self._name())
        if token == "[":
            items = []
            while self._next() != "]":
                items.append(self._value(depth + 1))
            self._take()
            return items
        return _scalar(token)

    def _name(self) -> str:
        name = self._take()
        if not (name.isascii() and name.isidentifier()):
            raise QueryError(f"Unexpected {name!r}")
        return name

    def _skip_definitions(self) -> bool:
        """Skip the operation's variable definitions: types are not checked."""
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


def _scalar(token: str) -> Any:
    if token.startswith('"""'):
        return token[3:-3].strip()
    if token.isascii() and token.isidentifier() and token not in ("true", "false", "null"):
        return token
    try:
        return json.loads(token)
    except ValueError as error:
        raise QueryError(f"Unexpected {token!r}") from error


ORGANISATION_ID = "emulator"
DEPLOY = "create_model_version_from_inference_template"
FAULT_CODES = {"NOT_FOUND": "RESOURCE_NOT_FOUND"}
"""GraphQL error codes where they differ from those of REST."""


def _root(platform: Platform) -> dict[str, Any]:
    return {
        "teams": [team.model_dump(mode="json") for team in platform.stores.teams.all()],
        "listed_instances": [_listed_instance(machine) for machine in INSTANCE_TYPES],
        "organization": {"id": ORGANISATION_ID, "workspace_name": platform.workspace_name},
        "user": {"email": EMULATOR_USER_EMAIL},
    }


def _listed_instance(machine: InstanceType) -> dict[str, Any]:
    return {
        "id": machine.id,
        "name": machine.name,
        "millicpu_limit": machine.millicpu_limit,
        "memory_limit": machine.memory_limit_mib,
        "gpu_count": machine.gpu_count,
        "gpu_type": machine.gpu_type,
        "gpu_memory": machine.gpu_memory_limit_mib,
        "default": machine is INSTANCE_TYPES[0],
        "display_name": machine.name,
        "node_count": 1,
        "price": PRICES_USD_PER_MINUTE.get(machine.id),
        "limited_capacity": None,
    }


def _deploy(platform: Platform, field: Field, variables: Mapping[str, Any]) -> Any:
    """Deploy, or only render on a dry run. The selection is checked before anything is created."""
    answer: dict[str, Any] = {
        "model_version": {"id": "", "name": "", "model_id": ""},
        "truss_config": "",
    }
    select(answer, field.fields, where=field.name)
    if "request" not in field.arguments:
        raise QueryError(f"{DEPLOY} needs the argument 'request'")
    made = deploy(platform, resolve(field.arguments["request"], variables))
    version = made.deployment
    answer["truss_config"] = made.truss_config
    answer["model_version"] = (
        None if version is None else {"id": version.id, "name": version.name, "model_id": version.model_id}
    )
    return select(answer, field.fields, where=field.name)


def _mutate(platform: Platform, fields: tuple[Field, ...], variables: Mapping[str, Any]) -> Response:
    if [field.name for field in fields] != [DEPLOY]:
        names = ", ".join(field.name for field in fields)
        return _errors(f"the emulator does not serve {names}", "NOT_IMPLEMENTED")
    try:
        return JsonAnswer({"data": {fields[0].key: _deploy(platform, fields[0], variables)}})
    except ApiFault as fault:
        return _errors(fault.message, FAULT_CODES.get(fault.code, fault.code))


def _answer(platform: Platform, query: str, variables: Mapping[str, Any]) -> Response:
    try:
        operation = parse(query)
        if operation.kind == "mutation":
            return _mutate(platform, operation.fields, variables)
        return JsonAnswer({"data": select(_root(platform), operation.fields)})
    except QueryError as error:
        return _errors(str(error), "GRAPHQL_VALIDATION_FAILED")


def _errors(message: str, code: str) -> Response:
    """Return errors with status 200 (API facts, 2.4)."""
    extensions = {"code": code, "description": message}
    return JsonAnswer({"data": None, "errors": [{"message": message, "extensions": extensions}]})


async def _post(request: Request) -> Response:
    content = await read_object(request)
    query = Parameters(content).required_text("query")
    variables = content.get("variables")
    given = variables if isinstance(variables, dict) else {}
    return await run_in_threadpool(_answer, platform_of(request), query, given)


GRAPHQL_ROUTES = [Route(path, _post, methods=["POST"]) for path in ("/graphql/", "/graphql")]
