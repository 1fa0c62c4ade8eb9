"""Load the definition from a config file by running it in a process of its own.

A config may print, change its process, fail or never end. Its definition arrives as JSON and is rebuilt here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from api_client.definitions import DeployCheckpointsConfig, TrainingProject
from api_client.definitions.base import Place
from api_client.errors import ConfigFileError
from api_client.submission.config_file import execution
from api_client.submission.config_file.execution import describe

LOAD_TIMEOUT_S = 180.0  # time limit for a config, which may import large packages from a slow disk

ModelT = TypeVar("ModelT", bound=BaseModel)
UnknownField = tuple[Place, Any]


def load_training_project(
    path: Path | str, *, python: Path | str | None = None, stop: Event | None = None
) -> TrainingProject:
    """Run a config file and return its one TrainingProject. Unknown fields are kept.

    This executes the file's code, so never call it just to list something. The code runs in a process of
    its own, in the interpreter ``python`` if it needs packages of another environment; input is empty, and
    output goes to stderr. Blocks until it ends; another thread can end it with ``stop``. Raises
    ConfigFileError.
    """
    project, unknown = _load(Path(path), TrainingProject, python, stop)
    for location, value in unknown:
        if location[0] == "job":
            project.job.keep_newer_field(location[1:], value)
        else:
            project.keep_newer_field(location, value)
    return project


def load_deploy_checkpoints_config(
    path: Path | str, *, python: Path | str | None = None
) -> DeployCheckpointsConfig:
    """Run a config file and return its one DeployCheckpointsConfig, as ``load_training_project`` does.

    Raises ConfigFileError.
    """
    config, unknown = _load(Path(path), DeployCheckpointsConfig, python, None)
    used = [".".join(map(str, location)) for location, value in unknown if value is not None]
    if used:
        raise ConfigFileError(f"it sets unknown fields: {', '.join(used)}", path=Path(path))
    return config


def _load(
    path: Path, definition: type[ModelT], python: Path | str | None, stop: Event | None
) -> tuple[ModelT, list[UnknownField]]:
    """Return the definition, and the fields that only a newer SDK of the interpreter knows."""
    document = _run(path, Path(python or sys.executable), definition.__name__, stop or Event())
    unknown: list[UnknownField] = []
    while True:
        try:
            return definition.model_validate_json(json.dumps(document)), unknown
        except ValidationError as error:
            newer = [problem["loc"] for problem in error.errors() if problem["type"] == "unknown_field"]
            if not newer:
                raise ConfigFileError(describe(error, str(path)).message, path=path) from error
            unknown.extend(_take_out(document, location) for location in newer)


def _run(path: Path, python: Path, kind: str, stop: Event) -> dict[str, Any]:
    status, output, messages = _finished(path, python, kind, stop)
    try:
        answer = json.loads(output)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        last = "\n".join(messages.strip().splitlines()[-5:])
        reason = f"{python} exited with status {status} without a result"
        raise ConfigFileError(f"{reason}: {last}" if last else reason, path=path)
    sys.stderr.write(messages)
    if "failure" in answer:
        raise ConfigFileError(answer["failure"]["message"], path=path, line=answer["failure"]["line"])
    definition: dict[str, Any] = answer["definition"]
    return definition


def _finished(path: Path, python: Path, kind: str, stop: Event) -> tuple[int, bytes, str]:
    """Return the status, stdout and stderr of the process. Raises ConfigFileError after ending it."""
    give_up_at = time.monotonic() + LOAD_TIMEOUT_S
    try:
        process = subprocess.Popen(
            [str(python), execution.__file__, str(path), kind],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
    except OSError as error:
        raise ConfigFileError(f"can't run {python}: {error.strerror or error}", path=path) from error
    with process:
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    output, messages = process.communicate(timeout=0.1)
                    return process.returncode, output, messages.decode("utf-8", "replace")
                if stop.is_set():
                    raise ConfigFileError("it was killed while loading", path=path)
                if time.monotonic() >= give_up_at:
                    raise ConfigFileError(f"loading took longer than {LOAD_TIMEOUT_S:.0f} s", path=path)
        except BaseException:
            process.kill()
            raise


def _take_out(document: Any, location: Place) -> UnknownField:
    """Remove a field from a document, and return its path and value.

    Steps that name a union member are dropped from the path: they do not exist in the document.
    """
    path: list[str | int] = []
    for step in location[:-1]:
        is_step = step in document if isinstance(document, dict) else isinstance(step, int)
        if is_step:
            path.append(step)
            document = document[step]
    return (*path, location[-1]), document.pop(location[-1])
