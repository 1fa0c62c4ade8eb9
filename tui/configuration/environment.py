"""Settings by environment variables: ``BT_TUI_`` and the setting's name, as in ``BT_TUI_REFRESH_FLEET_S``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from tui.configuration.model import Configuration

PREFIX = "BT_TUI_"
NO_COLOR_VARIABLE = "NO_COLOR"
_SAYS_YES = frozenset({"1", "yes", "on", "true"})
SAYS_NO = frozenset({"0", "no", "off", "false"})


def variable_of(setting: str) -> str:
    """``refresh.fleet_s`` → ``BT_TUI_REFRESH_FLEET_S``."""
    return PREFIX + setting.upper().replace(".", "_")


def setting_names() -> Iterator[tuple[str, Any]]:
    """Every setting's dotted name and type; a table of free keys is one setting."""
    for name, field in Configuration.model_fields.items():
        kind: Any = field.annotation
        if hasattr(kind, "model_fields"):
            for below, inner in kind.model_fields.items():
                yield f"{name}.{below}", inner.annotation
        elif isinstance(kind, type) and is_dataclass(kind):
            for one in fields(kind):
                yield f"{name}.{one.name}", one.type
        else:
            yield name, kind


def environment_values(environ: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """What the variables set, as nested tables, and the origin of each setting; empty ones say nothing."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for setting, kind in setting_names():
        variable = variable_of(setting)
        raw = environ.get(variable, "").strip()
        if not raw and setting == "theme.no_color" and environ.get(NO_COLOR_VARIABLE):
            variable, raw = NO_COLOR_VARIABLE, "true"
        if not raw:
            continue
        section, _, name = setting.rpartition(".")
        table = values.setdefault(section, {}) if section else values
        table[name] = _value(raw, kind)
        origins[setting] = f"environment {variable}"
    return values, origins


def _value(raw: str, kind: Any) -> Any:
    """A text as it is; anything else as TOML has it, or, if it is not that, as a text that is refused."""
    if kind is bool:
        return True if raw.lower() in _SAYS_YES else False if raw.lower() in SAYS_NO else raw
    if "str" in str(kind) and "list" not in str(kind) and "dict" not in str(kind) and "set" not in str(kind):
        return raw
    if "Literal" in str(kind):
        return raw
    try:
        return tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        return raw
