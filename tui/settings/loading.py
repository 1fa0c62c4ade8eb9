"""Load the settings from the file, environment variables and flags, with the origin of each value.

Unknown settings and wrong types are errors, so a misspelled setting is never silently ignored. Every problem
is reported with its line, which tomllib does not provide. Loading takes linear time for any content.
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
from tui.settings.problems import Problem, advice_on, fields_of, key_problems, name_of

Settings: type[Configuration] = make_dataclass(
    Configuration.__name__,  # the name by which schemas describe its fields
    [("health", Thresholds, field(default_factory=Thresholds))],
    bases=(Configuration,),
    namespace={"__module__": __name__},
    frozen=True,
)
"""``Configuration`` with the thresholds of all health checks as fields; slow to import."""

Tree = dict[str, Any]
"""Values of settings by name, in nested tables as in TOML."""


def lines_of(text: str) -> dict[str, int]:
    """Return the line (from 1) of each dotted name in a valid TOML text; for a table, that of its header.

    The name of an element in an array of tables includes its index.
    """
    lines: dict[str, int] = {}
    table = ""
    element_counts: Counter[str] = Counter()
    for line, statement in _statements(text):
        names = _dotted_names(tomllib.loads(statement))
        if statement.lstrip().startswith("["):
            *_, table = names
            lines.setdefault(table, line)
            if statement.lstrip().startswith("[["):
                element_counts[table] += 1
                table = f"{table}.{element_counts[table] - 1}"
                lines[table] = line
        else:
            for name in names:
                lines.setdefault(f"{table}.{name}" if table else name, line)
    return lines


_TOKEN = re.compile(
    r"""
    \"{3} (?:\\.|.)*? (?:\"{3,5}|\Z)  # multi-line strings; up to two quotes before the end belong to the text
    | '{3} .*? (?:'{3,5}|\Z)
    | " (?:\\[^\n]|[^"\\\n])*+ "?    # single-line strings
    | ' [^'\n]* '?
    | \#[^\n]*
    | [^"'#\[\]{}.\n]+
    | .
    """,
    re.DOTALL | re.VERBOSE,
)
"""Tokens of TOML: strings, comments, brackets, dots, line breaks, and runs of other text."""


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield each statement with its first line. A statement ends at a line end outside of brackets."""
    open_brackets = start = 0
    first_line = line = 1
    for token in _TOKEN.finditer(f"{text}\n"):
        token_text = token[0]
        line += token_text.count("\n")
        open_brackets += (token_text in "[{") - (token_text in "]}")
        if token_text == "\n" and open_brackets <= 0:
            statement = text[start : token.end()]
            if statement.strip() and not statement.lstrip().startswith("#"):
                yield first_line, statement
            start, first_line = token.end(), line
    if text[start:].strip():
        yield first_line, text[start:]  # invalid: a bracket stays open


def _dotted_names(tables: dict[str, Any]) -> Iterator[str]:
    """Yield the dotted name of each key at any depth. Not recursive: nesting may exceed Python's limit."""
    stack = list(tables.items())
    while stack:
        name, value = stack.pop()
        yield name
        if isinstance(value, dict):
            stack += ((f"{name}.{key}", inner) for key, inner in value.items())


NO_COLOR_VARIABLE = "NO_COLOR"
BOOLEANS = {"1": True, "yes": True, "on": True, "true": True}
BOOLEANS |= {"0": False, "no": False, "off": False, "false": False}


def variable_of(setting: str) -> str:
    """Return the environment variable of a setting: ``refresh.fleet_s`` → ``BT_TUI_REFRESH_FLEET_S``."""
    return "BT_TUI_" + setting.upper().replace(".", "_")


def setting_names() -> Iterator[tuple[str, Any]]:
    """Yield every setting's dotted name and type; a table whose keys users choose is one setting."""
    for name, kind in fields_of(Settings).items():
        if inner_fields := fields_of(kind):
            yield from ((f"{name}.{inner}", inner_kind) for inner, inner_kind in inner_fields.items())
        else:
            yield name, kind


def _add_environment_values(values: Tree, origins: dict[str, str], environ: Mapping[str, str]) -> None:
    """Add the values of environment variables, and their origins; skip empty variables."""
    for setting, kind in setting_names():
        variable = variable_of(setting)
        raw_text = environ.get(variable, "").strip()
        if not raw_text and setting == "theme.no_color" and environ.get(NO_COLOR_VARIABLE):
            variable, raw_text = NO_COLOR_VARIABLE, "true"
        if not raw_text:
            continue
        section, _, name = setting.rpartition(".")
        if section and not isinstance(values.get(section), dict):
            values[section] = {}
        table = values[section] if section else values
        value, previous = _parsed_value(raw_text, kind), table.get(name)
        table[name] = previous | value if isinstance(previous, dict) and isinstance(value, dict) else value
        origins[setting] = f"environment {variable}"


def _parsed_value(raw_text: str, kind: Any) -> Any:
    """Parse lists, tables and numbers as TOML; keep other text, which validation rejects if it is invalid."""
    if kind is bool:
        return BOOLEANS.get(raw_text.lower(), raw_text)
    if raw_text[0] not in "[{" and kind not in (int, float):
        return raw_text
    try:
        return _parse_toml(f"value = {raw_text}")["value"]
    except ValueError:
        return raw_text


def _parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML. Raises TOMLDecodeError, or another ValueError for content that settings never need."""
    if text.count(".") > 3_000:  # tomllib takes quadratic time for dotted keys
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
HEALTH_TABLE = "health"
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
"""Settings of ``[health]`` that earlier versions had; a file with such settings stays valid."""


class ConfigurationBroken(ConfigurationError):
    """The settings are invalid; ``problems`` has each problem, the message has all of them as lines."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


def load(environ: Mapping[str, str], flags: Mapping[str, Any] | None = None) -> Loaded:
    """Load the settings; a flag that is None is not given. Raises ConfigurationBroken with every problem."""
    path = config_path(environ)
    ignored: list[Problem] = []
    required = bool(environ.get(CONFIG_VARIABLE, "").strip())
    values, origins, problems = _read_file(path, required=required, ignored=ignored)
    _add_environment_values(values, origins, environ)
    _add_flags(values, origins, flags)
    problems += _validation_problems(values, origins, path)
    if problems:
        raise ConfigurationBroken(problems)
    return Loaded(validated(values), origins, path, ignored=tuple(ignored))


def load_or_defaults(environ: Mapping[str, str], flags: Mapping[str, Any] | None = None) -> Loaded:
    """Load the settings; if they are invalid, use the defaults with the flags, and keep the problems.

    ``readonly`` stays in force even if other settings are invalid: a mistake must never allow changes.
    """
    try:
        return load(environ, flags)
    except ConfigurationBroken as broken:
        path = config_path(environ)
        values: Tree = {}
        origins = {}
        readonly_origin = _readonly_origin(path, environ)
        if readonly_origin:
            values[READONLY], origins[READONLY] = True, readonly_origin
        _add_flags(values, origins, flags)
        return Loaded(validated(values), origins, path, tuple(broken.problems))


def _readonly_origin(path: Path, environ: Mapping[str, str]) -> str:
    """Return where invalid settings appear to set ``readonly``; empty if they do not.

    An unreadable file may set ``readonly``, so its path is returned.
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
    """Return the problems of a file; add its settings of earlier versions, without effect, to ``ignored``."""
    values, origins, problems = _read_file(path, required=True, ignored=[] if ignored is None else ignored)
    return problems + _validation_problems(values, origins, path)


def _read_file(
    path: Path, *, required: bool, ignored: list[Problem]
) -> tuple[Tree, dict[str, str], list[Problem]]:
    """Return a file's values, their origins, and its problems; a missing file is none unless ``required``.

    Settings of earlier versions are removed from the values and added to ``ignored``.
    """
    try:
        content = read_small_file(path, MAX_FILE_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        not_found = [Problem(str(path), "", f"no such file; {command_line('config', 'edit')} creates one")]
        return {}, {}, not_found if required else []
    except OSError as error:
        return {}, {}, [Problem(str(path), "", f"cannot be read: {error.strerror or error}")]
    try:
        text = content.decode("utf-8-sig")
        values = _parse_toml(text)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        return {}, {}, [Problem(f"{path}:{line}", "", "is not UTF-8 text")]
    except tomllib.TOMLDecodeError as error:
        return {}, {}, [_syntax_problem(path, str(error), len(content.splitlines()))]
    except ValueError as error:
        return {}, {}, [Problem(str(path), "", f"invalid TOML: {error}")]
    origins = {name: f"{path}:{line}" for name, line in lines_of(text).items()}
    for name in _remove_retired_settings(values):
        origin = _nearest_origin(f"{HEALTH_TABLE}.{name.partition('=')[0]}", origins) or str(path)
        ignored.append(Problem(origin, f"{HEALTH_TABLE}.{name}", "no longer exists; it has no effect"))
    return values, origins, []


def _remove_retired_settings(values: Tree) -> list[str]:
    """Remove settings of earlier versions; return their names below ``[health]``."""
    health_table = values.get(HEALTH_TABLE)
    if not isinstance(health_table, dict):
        return []
    names = [name for name in health_table if name in RETIRED_THRESHOLDS]
    for name in names:
        del health_table[name]
    disabled_checks = health_table.get("off")
    if isinstance(disabled_checks, list) and "plateau" in disabled_checks:
        health_table["off"] = [kind for kind in disabled_checks if kind != "plateau"]
        names.append("off=plateau")
    return names


def _nearest_origin(setting: str, origins: Mapping[str, str]) -> str | None:
    """Return the origin of a setting, or of its table if the setting itself has no origin."""
    while setting and setting not in origins:
        setting = setting.rpartition(".")[0]
    return origins.get(setting)


def _syntax_problem(path: Path, message: str, line_count: int) -> Problem:
    reason, _, position = message.partition(" (at ")
    if position.startswith("line "):
        line = position.removeprefix("line ").partition(",")[0]
    else:
        line = str(max(1, line_count))
    return Problem(f"{path}:{line}", "", f"invalid TOML: {reason[:1].lower()}{reason[1:]}")


def _validation_problems(values: Tree, origins: Mapping[str, str], file: Path) -> list[Problem]:
    """Return the problems of the values, in the order of the file."""
    errors: dict[str, ErrorDetails | str] = {}
    try:
        validated(values)
    except ValidationError as invalid:
        errors = {name_of(error): error for error in reversed(invalid.errors(include_url=False))}
    for name, problem in value_problems(values):
        errors.setdefault(name, problem)
    position_of_origin = {origin: number for number, origin in reversed(list(enumerate(origins.values())))}
    located_errors = [
        (_nearest_origin(name, origins) or str(file), name, error) for name, error in errors.items()
    ]
    located_errors.sort(key=lambda located_error: position_of_origin.get(located_error[0], -1))
    return [
        Problem(origin, name, error if isinstance(error, str) else advice_on(error, Settings))
        for origin, name, error in located_errors[:100]  # more problems would only scroll by
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
    return _strict_adapter().validate_json(json.dumps(values, default=str)) or Settings()


@cache
def _strict_adapter() -> TypeAdapter[Configuration | None]:
    """Return the validator; its type is a union, as pydantic accepts no config for a dataclass alone."""
    kind: Any = Settings | None
    return TypeAdapter(kind, config=ConfigDict(extra="forbid", strict=True, allow_inf_nan=False))


def _add_flags(values: Tree, origins: dict[str, str], flags: Mapping[str, Any] | None) -> None:
    for name, value in (flags or {}).items():
        if value is not None:
            values[name], origins[name] = value, f"flag --{name}"


def value_problems(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the problems of custom keys and thresholds that types cannot express, with the setting's name.

    The values may be of any type, because other problems are reported at the same time.
    """
    keys, health_settings = values.get("keys"), values.get("health")
    if isinstance(keys, Mapping):
        yield from ((f"keys.{action}", problem) for action, problem in key_problems(flattened(keys)))
    for name, value in health_settings.items() if isinstance(health_settings, Mapping) else ():
        if name == "off" and isinstance(value, list):
            if unknown_kinds := sorted({kind for kind in value if isinstance(kind, str)} - KINDS.keys()):
                problem = f"unknown finding {', '.join(unknown_kinds)}; use {', '.join(sorted(KINDS))}"
                yield f"health.{name}", problem
        elif isinstance(value, int | float) and (value < 0 or (name.endswith("_s") and value == 0)):
            bound = "greater than 0" if name.endswith("_s") else "0 or greater"
            yield f"health.{name}", f"must be {bound}"


def flattened(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            flat |= flattened(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
