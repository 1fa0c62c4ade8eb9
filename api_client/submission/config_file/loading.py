"""Load the definition from a config file by running it, in this process or in another interpreter.

Another interpreter has the packages that the config imports, and isolates it from a running dashboard: the
config may print, fail or never end. Its definition arrives as JSON and is rebuilt here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from api_client.definitions import DeployCheckpointsConfig, TrainingProject
from api_client.definitions.base import Place
from api_client.errors import ConfigFileError
from api_client.submission.config_file import execution
from api_client.submission.config_file.execution import (
    ConfigFailure,
    describe,
    execute,
    only_one,
    refuse_to_push,
)
from api_client.submission.config_file.module_sandbox import module_sandbox, official_modules

LOAD_TIMEOUT_S = 180.0  # time limit for a config, which may import large packages from a slow disk
STOP_POLL_S = 0.1  # interval for checking if the config's process must be stopped
_STDERR_TAIL_LINES = 5

ModelT = TypeVar("ModelT", bound=BaseModel)
UnknownField = tuple[Place, Any]


def load_training_project(
    path: Path | str, *, python: Path | str | None = None, stop: Event | None = None
) -> TrainingProject:
    """Run a config file and return its one TrainingProject. Unknown fields are kept.

    This executes the file's code, so never call it just to list something. The code runs in this process,
    leaving no trace, or in the interpreter ``python``: one that has the packages it needs, or the current
    one (``sys.executable``) to isolate it from a running dashboard. Blocks until the file has run; if it
    runs in another interpreter, another thread can end it with ``stop``. Raises ConfigFileError.
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

    Executes the file's code, in this process or in the interpreter ``python``, and blocks until it has
    run. Raises ConfigFileError.
    """
    config, unknown = _load(Path(path), DeployCheckpointsConfig, python, None)
    used = [".".join(map(str, location)) for location, value in unknown if value is not None]
    if used:
        raise ConfigFileError(f"it sets unknown fields: {', '.join(used)}", path=Path(path))
    return config


def _load(
    path: Path, wanted: type[ModelT], python: Path | str | None, stop: Event | None
) -> tuple[ModelT, list[UnknownField]]:
    """Return the definition, and the fields that a newer SDK in the other interpreter has added."""
    if python is not None:
        return _rebuild(_run(path, Path(python), wanted.__name__, stop or Event()), wanted, path)
    try:
        with module_sandbox(official_modules(refuse_to_push)):
            definition: ModelT = only_one(execute(str(path)), wanted)
    except ConfigFailure as failure:
        raise ConfigFileError(failure.message, path=path, line=failure.line) from failure.__cause__
    return definition, []


def _run(path: Path, python: Path, kind: str, stop: Event) -> dict[str, Any]:
    command = [str(python), execution.__file__, str(path), kind]
    try:
        finished = _finished(command, stop)
    except subprocess.TimeoutExpired as error:
        if stop.is_set():
            raise ConfigFileError("it was killed while loading", path=path) from None
        raise ConfigFileError(f"loading took longer than {LOAD_TIMEOUT_S:.0f} s", path=path) from error
    except OSError as error:
        raise ConfigFileError(f"can't run {python}: {error.strerror or error}", path=path) from error
    output = finished.stderr.decode("utf-8", "replace")
    answer = _answer(finished.stdout)
    if answer is None:
        last = "\n".join(output.strip().splitlines()[-_STDERR_TAIL_LINES:])
        reason = f"{python} exited with status {finished.returncode} without a result"
        raise ConfigFileError(f"{reason}: {last}" if last else reason, path=path)
    sys.stderr.write(output)
    if "definition" in answer:
        definition: dict[str, Any] = answer["definition"]
        return definition
    failure = answer["failure"]
    raise ConfigFileError(failure["message"], path=path, line=failure["line"])


def _finished(command: list[str], stop: Event) -> subprocess.CompletedProcess[bytes]:
    """Run the command to completion. Raises TimeoutExpired after ending the process."""
    give_up_at = time.monotonic() + LOAD_TIMEOUT_S
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=environment
    ) as process:
        try:
            while True:
                try:
                    out, err = process.communicate(timeout=STOP_POLL_S)
                    return subprocess.CompletedProcess(command, process.returncode, out, err)
                except subprocess.TimeoutExpired:
                    if time.monotonic() >= give_up_at or stop.is_set():
                        raise
        except BaseException:
            process.kill()
            raise


def _answer(output: bytes) -> dict[str, Any] | None:
    try:
        answer = json.loads(output)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) and ("definition" in answer or "failure" in answer) else None


def _rebuild(document: dict[str, Any], wanted: type[ModelT], path: Path) -> tuple[ModelT, list[UnknownField]]:
    unknown: list[UnknownField] = []
    while True:
        try:
            return wanted.model_validate_json(json.dumps(document)), unknown
        except ValidationError as error:
            newer = [finding["loc"] for finding in error.errors() if finding["type"] == "unknown_field"]
            if not newer:
                failure = describe(error, str(path))
                raise ConfigFileError(failure.message, path=path) from error
            unknown.extend(_take_out(document, location) for location in newer)


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
