"""Load config files written for the official SDK, without the SDK; each in a process of its own.

A config file may print, change its process, fail or never end. Its definition is returned as JSON and rebuilt
here.
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
from api_client.definitions.base import FROM_SDK, StrictDefinition, unknown_fields
from api_client.errors import ConfigFileError
from api_client.submission.config_file import execution
from api_client.submission.config_file.execution import describe

LOAD_TIMEOUT_S = 180.0  # time limit for a config, which may import large packages from a slow disk

ModelT = TypeVar("ModelT", bound=BaseModel)


def load_training_project(
    path: Path | str, *, python: Path | str | None = None, stop: Event | None = None
) -> TrainingProject:
    """Run a config file and return its only TrainingProject. Unknown fields are kept.

    This executes the file's code, so never call it just to list something. The code runs in a process of its
    own: with ``python``, in an interpreter that has the packages it needs. Its stdin is empty, and its output
    goes to stderr. Blocks until it ends; another thread can end it by setting ``stop``. Raises
    ConfigFileError.
    """
    return _load(Path(path), TrainingProject, python, stop)


def load_deploy_checkpoints_config(
    path: Path | str, *, python: Path | str | None = None
) -> DeployCheckpointsConfig:
    """Run a config file and return its only DeployCheckpointsConfig, as ``load_training_project`` does.

    Raises ConfigFileError, also for unknown fields.
    """
    config = _load(Path(path), DeployCheckpointsConfig, python, None)
    unknown = ", ".join(unknown_fields(config, StrictDefinition))
    if unknown:
        raise ConfigFileError(f"it sets unknown fields: {unknown}", path=Path(path))
    return config


def _load(path: Path, definition: type[ModelT], python: Path | str | None, stop: Event | None) -> ModelT:
    document = _run(path, Path(python or sys.executable), definition.__name__, stop or Event())
    try:
        return definition.model_validate_json(json.dumps(document), context=FROM_SDK)
    except ValidationError as error:
        raise ConfigFileError(describe(error, str(path)).message, path=path) from error


def _run(path: Path, python: Path, kind: str, stop: Event) -> dict[str, Any]:
    status, output, stderr_text = _run_process(path, python, kind, stop)
    try:
        document = json.loads(output)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        last_lines = "\n".join(stderr_text.strip().splitlines()[-5:])
        reason = f"{python} exited with status {status} without a result"
        raise ConfigFileError(f"{reason}: {last_lines}" if last_lines else reason, path=path)
    sys.stderr.write(stderr_text)
    if "failure" in document:
        raise ConfigFileError(document["failure"]["message"], path=path, line=document["failure"]["line"])
    definition: dict[str, Any] = document["definition"]
    return definition


def _run_process(path: Path, python: Path, kind: str, stop: Event) -> tuple[int, bytes, str]:
    """Run the process and return its status, stdout and stderr. Raises ConfigFileError after killing it."""
    deadline_s = time.monotonic() + LOAD_TIMEOUT_S
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
                    output, stderr_bytes = process.communicate(timeout=0.1)
                    return process.returncode, output, stderr_bytes.decode("utf-8", "replace")
                if stop.is_set():
                    raise ConfigFileError("it was killed while loading", path=path)
                if time.monotonic() >= deadline_s:
                    raise ConfigFileError(f"loading took longer than {LOAD_TIMEOUT_S:.0f} s", path=path)
        except BaseException:
            process.kill()
            raise
