"""Load the settings from the file, environment variables and flags, with the origin of each value.

Unknown settings and wrong types are errors, so a misspelled setting is never silently ignored. Every problem
is reported with its line, which tomllib does not provide. A file of any content costs linear time.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field, make_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from api_client.errors import ConfigurationError
from api_client.files import read_small_file
from api_client.words import command_line
from tui.analysis.health.registry import KINDS, Thresholds
from tui.settings import CONFIG_VARIABLE, config_path
from tui.settings.model import Configuration, Loaded
from tui.settings.problems import Problem, advice_on, as_lines, fields_of, key_problems, name_of

Settings: type[Configuration] = make_dataclass(
    Configuration.__name__,  # under which its fields are described
    [("health", Thresholds, field(default_factory=Thresholds))],
    bases=(Configuration,),
    namespace={"__module__": __name__},
    frozen=True,
)
"""The configuration with the thresholds of all checks, which it takes a while to import."""

Tree = dict[str, Any]
"""Nested tables."""


def lines_of(text: str) -> dict[str, int]:
    """Return line numbers (from 1) by dotted name for a valid text; a table has the line of its header.

    An element of an array of tables has its index in the name.
    """
    lines: dict[str, int] = {}
    table = ""
    elements: Counter[str] = Counter()
    for number, statement in _statements(text):
        names = _dotted(tomllib.loads(statement))
        if statement.lstrip().startswith("["):
            *_, table = names
            lines.setdefault(table, number)
            if statement.lstrip().startswith("[["):
                elements[table] += 1
                table = f"{table}.{elements[table] - 1}"
                lines[table] = number
        else:
            for name in names:
                lines.setdefault(f"{table}.{name}" if table else name, number)
    return lines


_TOKEN = re.compile(
    r"""
    \"{3} (?:\\.|.)*? (?:\"{3,5}|\Z)  # strings of several lines, which may end with two quotes of their own
    | '{3} .*? (?:'{3,5}|\Z)
    | " (?:\\[^\n]|[^"\\\n])*+ "?    # others
    | ' [^'\n]* '?
    | \#[^\n]*
    | [^"'#\[\]{}.\n]+
    | .
    """,
    re.DOTALL | re.VERBOSE,
)
"""Outside strings and comments, each of ``[ ] { } .`` and line ends is a token."""


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield the statements with their lines. A statement ends with a line that leaves no bracket open."""
    depth = begin = 0
    first = line = 1
    for token in _TOKEN.finditer(f"{text}\n"):
        word = token[0]
        line += word.count("\n")
        depth += (word in "[{") - (word in "]}")
        if word == "\n" and depth <= 0:
            statement = text[begin : token.end()]
            if statement.strip() and not statement.lstrip().startswith("#"):
                yield first, statement
            begin, first = token.end(), line
    if text[begin:].strip():
        yield first, text[begin:]  # invalid: a bracket stays open


def _dotted(tables: dict[str, Any]) -> Iterator[str]:
    """Yield the name of each key at any depth, which may be more than Python's functions can nest."""
    left = list(tables.items())
    while left:
        name, value = left.pop()
        yield name
        if isinstance(value, dict):
            left += ((f"{name}.{key}", below) for key, below in value.items())


NO_COLOR_VARIABLE = "NO_COLOR"
BOOLEANS = {"1": True, "yes": True, "on": True, "true": True}
BOOLEANS |= {"0": False, "no": False, "off": False, "false": False}


def variable_of(setting: str) -> str:
    """Return the variable of a setting: ``refresh.fleet_s`` → ``BT_TUI_REFRESH_FLEET_S``."""
    return "BT_TUI_" + setting.upper().replace(".", "_")


def setting_names() -> Iterator[tuple[str, Any]]:
    """Yield every setting's dotted name and type; a table with free keys counts as one setting."""
    for name, kind in fields_of(Settings).items():
        if below := fields_of(kind):
            yield from ((f"{name}.{inner}", inner_kind) for inner, inner_kind in below.items())
        else:
            yield name, kind


def _add_environment(values: Tree, origins: dict[str, str], environ: Mapping[str, str]) -> None:
    """Set the values of variables, and their origins; skip empty variables."""
    for setting, kind in setting_names():
        variable = variable_of(setting)
        raw = environ.get(variable, "").strip()
        if not raw and setting == "theme.no_color" and environ.get(NO_COLOR_VARIABLE):
            variable, raw = NO_COLOR_VARIABLE, "true"
        if not raw:
            continue
        section, _, name = setting.rpartition(".")
        if section and not isinstance(values.get(section), dict):
            values[section] = {}
        table = values[section] if section else values
        value, before = _value(raw, kind), table.get(name)
        table[name] = before | value if isinstance(before, dict) and isinstance(value, dict) else value
        origins[setting] = f"environment {variable}"


def _value(raw: str, kind: Any) -> Any:
    """Parse lists, tables and numbers as TOML; what cannot be parsed stays a text, to be rejected."""
    if kind is bool:
        return BOOLEANS.get(raw.lower(), raw)
    if raw[0] not in "[{" and kind not in (int, float):
        return raw
    try:
        return _parsed(f"value = {raw}")["value"]
    except ValueError:
        return raw


def _parsed(text: str) -> dict[str, Any]:
    """Parse TOML. Raises TOMLDecodeError, or another ValueError for what no settings need."""
    if text.count(".") > 3_000:  # tomllib takes quadratic time for those of dotted keys
        raise ValueError("too many dots")
    try:
        values = tomllib.loads(text)
        json.dumps(values, default=str)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # Python refuses to convert this many digits
        raise ValueError("a number is too large") from None
    return values


MAX_FILE_BYTES = 250_000
READONLY = "readonly"
HEALTH = "health"
RETIRED_THRESHOLDS = frozenset(
    {
        "active_from",
        "checkpoint_intervals",
        "loss_history",
        "loss_readings",
        "loss_spreads",
        "checkpoint_grace_s",
        "disk_full_within_s",
        "disk_growth",
        "disk_window_s",
        "gpu_memory_after_s",
        "leak_full_within_s",
        "leak_share",
        "leak_window_s",
        "missing_start_s",
        "restarts_within_s",
        "stall_pause_factor",
        "stall_steps",
        "grad_norm_factor",
        "plateau_after_s",
        "stall_aside_s",
        "stall_talking_s",
        "stall_talking_steps",
        "stall_unread_s",
        "straggler_busy",
    }
)
"""Settings of ``[health]`` of earlier versions; a file that still has them stays valid."""


class ConfigurationBroken(ConfigurationError):
    """The settings are invalid; ``problems`` has the places and reasons, the message all of them."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(as_lines(problems))
        self.problems = problems


def load(environ: Mapping[str, str], flags: Mapping[str, Any] | None = None) -> Loaded:
    """Load the settings; ``flags`` may be None. Raises ConfigurationBroken with every problem."""
    path = config_path(environ)
    ignored: list[Problem] = []
    required = bool(environ.get(CONFIG_VARIABLE, "").strip())
    values, origins, problems = _of_file(path, required=required, ignored=ignored)
    _add_environment(values, origins, environ)
    _add_flags(values, origins, flags)
    problems += _problems(values, origins, path)
    if problems:
        raise ConfigurationBroken(problems)
    return Loaded(validated(values), origins, path, ignored=tuple(ignored))


def load_or_defaults(environ: Mapping[str, str], flags: Mapping[str, Any] | None = None) -> Loaded:
    """Load the settings; if they are invalid, use the defaults with the flags, and keep the problems.

    ``readonly`` stays in force even if the settings cannot be used, so a mistake elsewhere never lifts it.
    """
    try:
        return load(environ, flags)
    except ConfigurationBroken as broken:
        path = config_path(environ)
        values: Tree = {}
        origins = {}
        forbidden_by = _forbidden_by(path, environ)
        if forbidden_by:
            values[READONLY], origins[READONLY] = True, forbidden_by
        _add_flags(values, origins, flags)
        return Loaded(validated(values), origins, path, tuple(broken.problems))


def _forbidden_by(path: Path, environ: Mapping[str, str]) -> str:
    """Return where invalid settings appear to set ``readonly``; empty if they do not.

    A file that cannot be read may set it, so it counts.
    """
    variable = variable_of(READONLY)
    text = environ.get(variable, "").strip().lower()
    if text:
        return "" if BOOLEANS.get(text) is False else f"environment {variable}"
    try:
        content = read_small_file(path, MAX_FILE_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError:
        return f"unreadable {path}"
    match = re.search(rb"^[ \t]*[\"']?readonly[\"']?\s*=(?!\s*false\b)", content, re.MULTILINE)
    if match is None:
        return ""
    line = content.count(b"\n", 0, match.end()) + 1
    return f"{path}:{line}"


def check_file(path: Path, ignored: list[Problem] | None = None) -> list[Problem]:
    """Return the problems of a file; what it sets without effect is added to ``ignored``."""
    values, origins, problems = _of_file(path, required=True, ignored=[] if ignored is None else ignored)
    return problems + _problems(values, origins, path)


def _of_file(
    path: Path, *, required: bool, ignored: list[Problem]
) -> tuple[Tree, dict[str, str], list[Problem]]:
    """Return values, origins and why the file cannot be used; it may be absent unless `required`.

    Settings of earlier versions are left out, and added to ``ignored``.
    """
    try:
        content = read_small_file(path, MAX_FILE_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        missing = [Problem(str(path), "", f"no such file; {command_line('config', 'edit')} creates one")]
        return {}, {}, missing if required else []
    except OSError as error:
        return {}, {}, [Problem(str(path), "", f"cannot be read: {error.strerror or error}")]
    try:
        text = content.decode("utf-8-sig")
        values = _parsed(text)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        return {}, {}, [Problem(f"{path}:{line}", "", "is not UTF-8 text")]
    except tomllib.TOMLDecodeError as error:
        return {}, {}, [_syntax_problem(path, str(error), len(content.splitlines()))]
    except ValueError as error:
        return {}, {}, [Problem(str(path), "", f"invalid TOML: {error}")]
    origins = {name: f"{path}:{line}" for name, line in lines_of(text).items()}
    for name in _without_retired(values):
        where = _origin(f"{HEALTH}.{name.partition('=')[0]}", origins) or str(path)
        ignored.append(Problem(where, f"{HEALTH}.{name}", "no longer exists; it has no effect"))
    return values, origins, []


def _without_retired(values: Tree) -> list[str]:
    """Remove settings of earlier versions; return their names below ``[health]``."""
    table = values.get(HEALTH)
    if not isinstance(table, dict):
        return []
    names = [name for name in table if name in RETIRED_THRESHOLDS]
    for name in names:
        del table[name]
    off = table.get("off")
    if isinstance(off, list) and "plateau" in off:
        table["off"] = [kind for kind in off if kind != "plateau"]
        names.append("off=plateau")
    return names


def _origin(setting: str, origins: Mapping[str, str]) -> str | None:
    """Return the origin of a setting or, if it has none, of the table around it."""
    while setting and setting not in origins:
        setting = setting.rpartition(".")[0]
    return origins.get(setting)


def _syntax_problem(path: Path, message: str, line_count: int) -> Problem:
    why, _, position = message.partition(" (at ")
    if position.startswith("line "):
        line = position.removeprefix("line ").partition(",")[0]
    else:
        line = str(max(1, line_count))
    return Problem(f"{path}:{line}", "", f"invalid TOML: {why[:1].lower()}{why[1:]}")


def _problems(values: Tree, origins: Mapping[str, str], file: Path) -> list[Problem]:
    """Return the problems of the values, in the order of the file."""
    errors: dict[str, ErrorDetails | str] = {}
    try:
        validated(values)
    except ValidationError as invalid:
        errors = {name_of(error): error for error in reversed(invalid.errors(include_url=False))}
    for name, why in value_problems(values):
        errors.setdefault(name, why)
    order = {where: number for number, where in reversed(list(enumerate(origins.values())))}
    places = [(_origin(name, origins) or str(file), name, error) for name, error in errors.items()]
    places.sort(key=lambda place: order.get(place[0], -1))
    return [
        Problem(where, name, error if isinstance(error, str) else advice_on(error, Settings))
        for where, name, error in places[:100]  # more would only scroll by
    ]


def validated(values: Tree) -> Configuration:
    """Validate as JSON, whose strict mode only converts lists to tuples and tables to dataclasses.

    Defaults are not validated: building the validators takes time. ``job.stop_job = "x"`` below ``[keys]``,
    which TOML reads as a nested table, means the same as the quoted key.
    """
    if not values:
        return Settings()
    if isinstance(keys := values.get("keys"), dict):
        values = {**values, "keys": flattened(keys)}
    return _strict().validate_json(json.dumps(values, default=str)) or Settings()


@cache
def _strict() -> TypeAdapter[Configuration | None]:
    """Return the validator. For a dataclass itself, pydantic takes no config from outside."""
    kind: Any = Settings | None
    return TypeAdapter(kind, config=ConfigDict(extra="forbid", strict=True, allow_inf_nan=False))


def _add_flags(values: Tree, origins: dict[str, str], flags: Mapping[str, Any] | None) -> None:
    for name, value in (flags or {}).items():
        if value is not None:
            values[name], origins[name] = value, f"flag --{name}"


def value_problems(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each problem that no type shows, of keys and thresholds, with the setting's name.

    The values may be of any type.
    """
    keys, thresholds = values.get("keys"), values.get("health")
    if isinstance(keys, Mapping):
        yield from ((f"keys.{action}", why) for action, why in key_problems(flattened(keys)))
    for name, value in thresholds.items() if isinstance(thresholds, Mapping) else ():
        if name == "off" and isinstance(value, list):
            if unknown := sorted({kind for kind in value if isinstance(kind, str)} - KINDS.keys()):
                why = f"unknown finding {', '.join(unknown)}; use {', '.join(sorted(KINDS))}"
                yield f"health.{name}", why
        elif isinstance(value, int | float) and (value < 0 or (name.endswith("_s") and value == 0)):
            bound = "greater than 0" if name.endswith("_s") else "0 or greater"
            yield f"health.{name}", f"must be {bound}"


def flattened(table: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            flat |= flattened(value, f"{above}{key}.")
        else:
            flat[f"{above}{key}"] = value
    return flat
