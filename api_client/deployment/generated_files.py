"""Text to copy or save: example calls, a ``config.py`` for the official SDK, and the truss config.

The ``config.py`` is generated as source code that recreates an equal config when it runs.
"""

from __future__ import annotations

import json
import keyword
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from math import isfinite
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from api_client.addresses import BaseUrl, parse_base_url
from api_client.definitions import Accelerator, AcceleratorSpec, DeployCheckpointsConfig
from api_client.deployment.sending import DeploymentResult
from api_client.files import write_file
from api_client.models import Checkpoint
from api_client.remotes import Remote
from api_client.servable import kind_of

_PRODUCTION_API_HOST = "api.baseten.co"
_KEY = "$BASETEN_API_KEY"
_QUESTION = "What did you learn in training?"


def serves_nothing(remote: Remote) -> bool:
    """Return True if the remote is on this machine, where deployments change state but serve nothing."""
    return _api_address(remote).is_loopback


def serving_url(remote: Remote, model_id: str, deployment_id: str) -> str:
    """Return the OpenAI-compatible base URL of a deployment."""
    api = _api_address(remote)
    # Host names below localhost do not lead to a model.
    host = _PRODUCTION_API_HOST if api.is_loopback else api.netloc
    return f"https://model-{model_id}.{host}/deployment/{deployment_id}/sync/v1"


@dataclass(frozen=True, slots=True)
class Calls:
    """A curl command and a program with the ``openai`` package that call a deployment."""

    url: str
    curl: str
    python: str


def calls(remote: Remote, result: DeploymentResult, checkpoints: Sequence[Checkpoint]) -> Calls | None:
    """Return calls of the first checkpoint; None without ids or without checkpoints."""
    if not checkpoints or not result.model_id or not result.version_id:
        return None
    name, is_whisper = checkpoints[0].checkpoint_id, kind_of(checkpoints[0]) == "whisper"
    return calls_of(remote, result.model_id, result.version_id, name, is_whisper=is_whisper)


def calls_of(
    remote: Remote, model_id: str, deployment_id: str, checkpoint_name: str, *, is_whisper: bool = False
) -> Calls:
    """Return calls of a deployment's checkpoint."""
    url = serving_url(remote, model_id, deployment_id)
    return Calls(
        url,
        curl_example(url, checkpoint_name, is_whisper=is_whisper),
        openai_example(url, checkpoint_name, is_whisper=is_whisper),
    )


def _api_address(remote: Remote) -> BaseUrl:
    return parse_base_url(remote.api_url, source=f"the API address of remote '{remote.name}'")


def curl_example(base_url: str, checkpoint_name: str, *, is_whisper: bool = False) -> str:
    """Return a curl command that calls it; ``model`` is the checkpoint's name."""
    header = f'-H "Authorization: Api-Key {_KEY}"'
    if is_whisper:
        form = f"-F file=@audio.wav -F {shlex.quote(f'model={checkpoint_name}')}"
        return f"curl {shlex.quote(f'{base_url}/audio/transcriptions')} \\\n  {header} \\\n  {form}"
    body = json.dumps({"model": checkpoint_name, "messages": [{"role": "user", "content": _QUESTION}]})
    return (
        f"curl {shlex.quote(f'{base_url}/chat/completions')} \\\n  {header} \\\n"
        f"  -H 'Content-Type: application/json' \\\n  -d {shlex.quote(body)}"
    )


def openai_example(base_url: str, checkpoint_name: str, *, is_whisper: bool = False) -> str:
    """Return a program that calls it with the ``openai`` package; ``model`` is the checkpoint's name."""
    call = (
        f"""answer = client.audio.transcriptions.create(
    model={json.dumps(checkpoint_name)},
    file=open("audio.wav", "rb"),
)
print(answer.text)"""
        if is_whisper
        else f"""answer = client.chat.completions.create(
    model={json.dumps(checkpoint_name)},
    messages=[{{"role": "user", "content": {json.dumps(_QUESTION)}}}],
)
print(answer.choices[0].message.content)"""
    )
    return f"""import os

from openai import OpenAI

client = OpenAI(base_url={json.dumps(base_url)}, api_key=os.environ["BASETEN_API_KEY"])
{call}
"""


_INDENT = "    "
_LINE_LENGTH = 100
_TRUSS_CONFIG_NAMES = (Accelerator, AcceleratorSpec)  # everything else is in truss_train.definitions

_ABOUT = (
    '"""Deploys checkpoints: `bt-tui deploy_checkpoints --config FILE`, or the same with `truss train`."""'
)
_ABOUT_NO_ENVIRONMENT = (
    "# There is no environment: truss, unlike bt-tui, then asks for a Hugging Face secret; choose None.\n"
)


def render_python(config: DeployCheckpointsConfig) -> str:
    """Render source that imports only ``truss_train`` (and truss for GPUs); it creates an equal config."""
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
        return _bracketed(f"{_name_of(type(value))}(", list(_arguments(value, depth)), ")", depth)
    if isinstance(value, Enum):
        return f"{_name_of(type(value))}.{value.name}"
    if isinstance(value, dict):
        items = [f"{_source(key, depth + 1)}: {_source(item, depth + 1)}" for key, item in value.items()]
        return _bracketed("{", items, "}", depth)
    if isinstance(value, list):
        return _bracketed("[", [_source(item, depth + 1) for item in value], "]", depth)
    if isinstance(value, tuple):
        tail = "," if len(value) == 1 else ""
        return f"({', '.join(_source(item, depth) for item in value)}{tail})"
    if isinstance(value, float) and not isfinite(value):
        return f'float("{value}")'
    return _text(value) if isinstance(value, str) else repr(value)


def _arguments(model: BaseModel, depth: int) -> Iterator[str]:
    """Yield the fields that differ from their defaults, and those known only to a newer SDK."""
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
    # Python normalizes the name "ﬀ" to "ff"; only ASCII letters are safe.
    return name.isascii() and name.isidentifier() and not keyword.iskeyword(name)


def _bracketed(opening: str, items: list[str], closing: str, depth: int) -> str:
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
    """Return a string literal in formatter style: double quotes unless single quotes need fewer escapes.

    Invisible characters are escaped.
    """
    quote = "'" if text.count('"') > text.count("'") else '"'
    escaped = (f"\\{quote}" if character == quote else _inner(character) for character in text)
    return f"{quote}{''.join(escaped)}{quote}"


def _inner(character: str) -> str:
    return character if character in "'\"" else repr(character)[1:-1]


FOLDER = Path("truss_configs")
FILE_NAME = "config.yaml"

_UNSAFE = re.compile(r"[^0-9A-Za-z_.-]+")
_LONGEST_NAME = 120


def truss_config_path(result: DeploymentResult, directory: Path | None, now: datetime) -> Path:
    """Return the path: in ``directory``, else in a folder named after the deployment.

    For a dry run the folder is named after ``now``, which is local time, as in the official CLI's names.
    """
    if directory is not None:
        return directory / FILE_NAME
    if result.version_id is None:
        return FOLDER / f"dry_run_{now:%Y%m%d_%H%M%S}" / FILE_NAME
    # Text from the server must not lead out of the folder.
    name = _UNSAFE.sub("_", f"{result.name}_{result.version_id}")[-_LONGEST_NAME:].lstrip(".")
    return FOLDER / (name or "deployment") / FILE_NAME


def write_truss_config(result: DeploymentResult, directory: Path | None, now: datetime) -> Path | None:
    """Write the config and return its path; None if the server returned none. Raises OSError."""
    if not result.truss_config:
        return None
    path = truss_config_path(result, directory, now)
    text = truss_config_yaml(result.truss_config)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, text.encode())
    return path


def truss_config_yaml(truss_config: str) -> str:
    """Convert the returned JSON to YAML; text that is not JSON stays unchanged."""
    import yaml

    try:
        content = json.loads(truss_config)
    except ValueError:
        return truss_config
    text: str = yaml.safe_dump(content, sort_keys=True, allow_unicode=True)
    return text
