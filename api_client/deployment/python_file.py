"""A config → the Python file that makes it, for ``--config`` here and for the official CLI."""

from __future__ import annotations

import keyword
from collections.abc import Iterator
from enum import Enum
from math import isfinite
from typing import Any

from pydantic import BaseModel

from api_client.definitions import Accelerator, AcceleratorSpec, DeployCheckpointsConfig

_INDENT = "    "
_LINE_LENGTH = 100
_TRUSS_CONFIG_NAMES = (Accelerator, AcceleratorSpec)
"""Everything else is in ``truss_train.definitions``."""

_ABOUT = (
    '"""Deploys checkpoints: `bt-tui deploy_checkpoints --config FILE`, or the same with `truss train`."""'
)
_ABOUT_NO_ENVIRONMENT = (
    "# There is no environment: truss, unlike bt-tui, then asks for a Hugging Face secret; choose None.\n"
)


def render_python(config: DeployCheckpointsConfig) -> str:
    """Source that imports ``truss_train`` alone (and truss for GPUs); running it gives an equal config."""
    value = _source(config, depth=0)
    imports = ["from truss_train import definitions"]
    if "truss_config." in value:
        imports.insert(0, "from truss.base import truss_config")
    has_environment = bool(config.runtime and config.runtime.environment_variables)
    remark = "" if has_environment else _ABOUT_NO_ENVIRONMENT
    joined = "\n".join(imports)
    return f"{_ABOUT}\n\n{joined}\n\n{remark}deploy_config = {value}\n"


def _source(value: Any, depth: int) -> str:
    if isinstance(value, BaseModel):
        return _call(_name_of(type(value)), list(_arguments(value, depth)), depth)
    if isinstance(value, Enum):
        return f"{_name_of(type(value))}.{value.name}"
    if isinstance(value, dict):
        items = [f"{_source(key, depth + 1)}: {_source(each, depth + 1)}" for key, each in value.items()]
        return _bracketed("{", items, "}", depth)
    if isinstance(value, list):
        return _bracketed("[", [_source(each, depth + 1) for each in value], "]", depth)
    if isinstance(value, tuple):
        tail = "," if len(value) == 1 else ""
        return f"({', '.join(_source(each, depth) for each in value)}{tail})"
    if isinstance(value, float) and not isfinite(value):
        return f'float("{value}")'
    return _text(value) if isinstance(value, str) else repr(value)


def _arguments(model: BaseModel, depth: int) -> Iterator[str]:
    """The fields that differ from their defaults, and those that only a newer SDK knows."""
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        is_needed = field.is_required() or value != field.get_default(call_default_factory=True)
        if is_needed:
            yield f"{name}={_source(value, depth + 1)}"
    extra = model.model_extra or {}
    for name in filter(_is_keyword_argument, extra):
        yield f"{name}={_source(extra[name], depth + 1)}"
    others = {name: value for name, value in extra.items() if not _is_keyword_argument(name)}
    if others:
        yield f"**{_source(others, depth + 1)}"


def _is_keyword_argument(name: str) -> bool:
    # Python takes the name "ﬀ" for "ff": only plain letters are safe.
    return name.isascii() and name.isidentifier() and not keyword.iskeyword(name)


def _call(name: str, arguments: list[str], depth: int) -> str:
    return _bracketed(f"{name}(", arguments, ")", depth)


def _bracketed(opening: str, items: list[str], closing: str, depth: int) -> str:
    """On one line if it is simple and short enough, else an item a line."""
    short = f"{opening}{', '.join(items)}{closing}"
    is_simple = "\n" not in short and not any("(" in item for item in items[:-1])
    if is_simple and len(_INDENT) * (depth + 1) + len(short) <= _LINE_LENGTH:
        return short
    inner = _INDENT * (depth + 1)
    lines = "".join(f"{inner}{item},\n" for item in items)
    return f"{opening}\n{lines}{_INDENT * depth}{closing}"


def _name_of(kind: type) -> str:
    module = "truss_config" if kind in _TRUSS_CONFIG_NAMES else "definitions"
    return f"{module}.{kind.__name__}"


def _text(text: str) -> str:
    """A literal as formatters write it: double quotes unless single ones need fewer escapes.

    Nothing invisible stays as it is.
    """
    quote = "'" if text.count('"') > text.count("'") else '"'
    escaped = (f"\\{quote}" if character == quote else _inner(character) for character in text)
    return f"{quote}{''.join(escaped)}{quote}"


def _inner(character: str) -> str:
    return character if character in "'\"" else repr(character)[1:-1]
