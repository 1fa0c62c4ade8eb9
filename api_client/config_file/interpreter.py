"""Loading a config with another environment's interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from api_client.config_file import in_interpreter
from api_client.config_file.execution import describe
from api_client.definitions import DeployCheckpointsConfig, TrainingProject
from api_client.errors import ConfigFileError

LOAD_TIMEOUT_S = 180.0
"""How long a config may take: it may import large packages from a slow disk."""

_LAST_WORDS_LINES = 5

T = TypeVar("T", bound=BaseModel)


def training_project_from(path: Path, python: Path) -> TrainingProject:
    """Load a config's TrainingProject with ``python``. Fields that we do not know are sent on as they are."""
    document = _run(path, python, "training")
    project, unknown = _rebuild(document, TrainingProject, path)
    for place, value in unknown:
        if place[0] == "job":
            project.job.keep_newer_field(place[1:], value)
        else:
            project.keep_newer_field(place, value)
    return project


def deploy_config_from(path: Path, python: Path) -> DeployCheckpointsConfig:
    """Load a file's DeployCheckpointsConfig with ``python``."""
    document = _run(path, python, "deployment")
    config, unknown = _rebuild(document, DeployCheckpointsConfig, path)
    used = [".".join(map(str, place)) for place, value in unknown if value is not None]
    if used:
        raise ConfigFileError(f"it sets fields that are not known here: {', '.join(used)}", path=path)
    return config


def _run(path: Path, python: Path, kind: str) -> dict[str, Any]:
    command = [str(python), in_interpreter.__file__, str(path), kind]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        finished = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LOAD_TIMEOUT_S,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ConfigFileError(f"it was still running after {LOAD_TIMEOUT_S:.0f} s", path=path) from error
    except OSError as error:
        raise ConfigFileError(f"{python} cannot be run: {error.strerror or error}", path=path) from error
    words = finished.stderr.decode("utf-8", "replace")
    answer = _answer(finished.stdout)
    if answer is None:
        last = "\n".join(words.strip().splitlines()[-_LAST_WORDS_LINES:])
        reason = f"{python} ended with status {finished.returncode} and gave no answer"
        raise ConfigFileError(f"{reason}: {last}" if last else reason, path=path)
    sys.stderr.write(words)
    if "definition" in answer:
        definition: dict[str, Any] = answer["definition"]
        return definition
    failure = answer["failure"]
    raise ConfigFileError(failure["message"], path=path, line=failure["line"])


def _answer(output: bytes) -> dict[str, Any] | None:
    try:
        answer = json.loads(output)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) and ("definition" in answer or "failure" in answer) else None


def _rebuild(
    document: dict[str, Any], wanted: type[T], path: Path
) -> tuple[T, list[tuple[tuple[str | int, ...], Any]]]:
    """Our definition of a document, and the fields that a newer SDK has put in, each with its place."""
    unknown: list[tuple[tuple[str | int, ...], Any]] = []
    while True:
        try:
            return wanted.model_validate_json(json.dumps(document)), unknown
        except ValidationError as error:
            newer = [finding["loc"] for finding in error.errors() if finding["type"] == "unknown_field"]
            if not newer:
                failure = describe(error, str(path))
                raise ConfigFileError(failure.message, path=path) from error
            unknown.extend(_take_out(document, location) for location in newer)


def _take_out(document: Any, location: tuple[str | int, ...]) -> tuple[tuple[str | int, ...], Any]:
    """Remove a field from a document. Steps that name a member of a union are no steps of the document."""
    place: list[str | int] = []
    for step in location[:-1]:
        is_step = step in document if isinstance(document, dict) else isinstance(step, int)
        if is_step:
            place.append(step)
            document = document[step]
    return (*place, location[-1]), document.pop(location[-1])
