"""Definitions → what is sent: exactly what the official CLI sends for the same file (API facts, 3.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError

from api_client.definitions.base import SentDefinition
from api_client.definitions.jobs import TrainingJob, TrainingProject
from api_client.errors import ConfigurationError


def project_payload(project: TrainingProject) -> dict[str, Any]:
    """The body's ``training_project``: its name, and its team when it names one."""
    payload: dict[str, Any] = {"name": project.name}
    if project.team_name is not None:
        payload["team_name"] = project.team_name
    _add_newer_fields(payload, project)
    return payload


def job_payload(
    job: TrainingJob,
    *,
    artifact: tuple[str, str] | None,
    user_env: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The body's ``training_job``; what is not set goes out as null, as the official CLI does it.

    ``artifact`` is the uploaded archive's bucket and key, ``user_env`` describes the sender. Raises
    ConfigurationError when an unknown field of a lax class holds something that JSON has no words for.
    """
    try:
        payload = job.model_dump(mode="json")
    except PydanticSerializationError as error:
        raise ConfigurationError(f"the job cannot be written as JSON: {error}") from error
    runtime = payload["runtime"]
    runtime["artifacts"] = [{"s3_bucket": artifact[0], "s3_key": artifact[1]}] if artifact else []
    payload["truss_user_env"] = None if user_env is None else dict(user_env)
    _add_newer_fields(payload, job)
    return payload


def _add_newer_fields(payload: dict[str, Any], definition: SentDefinition) -> None:
    for place, value in definition.newer_fields():
        part: Any = payload
        try:
            for step in place[:-1]:
                part = part[step]
            part.setdefault(place[-1], value)
        except (AttributeError, IndexError, KeyError, TypeError):
            continue  # the part that it belonged to has been replaced since


def unknown_fields(project: TrainingProject) -> tuple[str, ...]:
    """Paths of the set fields that are sent without being known here, such as ``weights.0.sources``.

    Lax classes take any field; others come from a newer SDK's interpreter.
    """
    newer = [*project.newer_fields(), *project.job.newer_fields()]
    places = (".".join(str(step) for step in place) for place, value in newer if value is not None)
    return (*_unknown(project.job, ""), *places)


def _unknown(value: Any, place: str) -> Iterator[str]:
    if isinstance(value, BaseModel):
        yield from (f"{place}{name}" for name in value.model_extra or ())
        for name in type(value).model_fields:
            yield from _unknown(getattr(value, name), f"{place}{name}.")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(item, f"{place}{index}.")
