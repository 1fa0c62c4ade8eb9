"""Build the requests for a project and its job, after applying overrides such as ``push --job-name``.

The overrides are the official push flags. The config file is not changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from api_client.definitions import (
    AvailabilityModel,
    InteractiveSession,
    InteractiveSessionTrigger,
    TrainingJob,
    TrainingProject,
)
from api_client.errors import ConfigurationError

EnumT = TypeVar("EnumT", bound=Enum)


@dataclass(frozen=True, slots=True)
class Overrides:
    """Values that take precedence over the config's; None keeps the config's value.

    ``entrypoint`` replaces all start commands by one. ``accelerator`` is the short form (``H100:8``),
    ``availability`` one of dedicated, spot, ``interactive_trigger`` one of on_startup, on_failure, on_demand.
    ``team`` is a team's name.
    """

    job_name: str | None = None
    accelerator: str | None = None
    node_count: int | None = None
    entrypoint: str | None = None
    priority: int | None = None
    availability: str | None = None
    interactive_trigger: str | None = None
    interactive_timeout_minutes: int | None = None
    team: str | None = None


def apply_overrides(
    project: TrainingProject, overrides: Overrides
) -> tuple[TrainingProject, tuple[str, ...]]:
    """Return a changed copy, and a warning for every replaced value that the config sets.

    ``team`` is not applied here, because it must be looked up first. Raises ConfigurationError, which names
    the invalid override.
    """
    changed_project = project.model_copy(deep=True)
    return changed_project, tuple(_apply(changed_project.job, overrides))


def _apply(job: TrainingJob, overrides: Overrides) -> Iterator[str]:
    compute, count, entrypoint = job.compute, overrides.node_count, overrides.entrypoint
    if count is not None and count < 1:
        raise ConfigurationError(f"invalid node count {count}: must be at least 1")
    yield from _override(job, "name", "the job name", overrides.job_name)
    trigger, minutes = overrides.interactive_trigger, overrides.interactive_timeout_minutes
    if trigger is not None or minutes is not None:
        session = job.interactive_session = job.interactive_session or InteractiveSession()
        member = _enum_member(InteractiveSessionTrigger, "the interactive trigger", trigger)
        yield from _override(session, "trigger", "the interactive trigger", member)
        yield from _override(session, "timeout_minutes", "the interactive timeout", minutes)
    yield from _override(compute, "accelerator", "the accelerator", overrides.accelerator)
    yield from _override(compute, "node_count", "the node count", count)
    commands = None if entrypoint is None else [entrypoint]
    yield from _override(job.runtime, "start_commands", "the entrypoint", commands)
    yield from _override(job, "priority", "the priority", overrides.priority)
    model = _enum_member(AvailabilityModel, "the availability", overrides.availability)
    yield from _override(compute, "availability_model", "the availability", model)


def _override(definition: BaseModel, field: str, override_name: str, value: Any) -> Iterator[str]:
    """Set a field unless ``value`` is None; yield a warning if that replaces a value other than the default.

    Raises ConfigurationError, which names the override, if the definition rejects the value.
    """
    old_value = getattr(definition, field)
    default = type(definition).model_fields[field].get_default(call_default_factory=True)
    if value is None:
        return
    try:
        setattr(definition, field, value)
    except ValidationError as error:
        reason = error.errors(include_url=False, include_context=False)[0]["msg"]
        raise ConfigurationError(
            f"{override_name} '{value}' is invalid: {reason.removeprefix('Value error, ')}"
        ) from None
    if old_value not in (None, "", default, getattr(definition, field)):
        yield f"{field}: {_value_text(value)} replaces the config's {_value_text(old_value)}"


def _value_text(value: object) -> str:
    return str(value.value if isinstance(value, Enum) else value)


def _enum_member(enumeration: type[EnumT], override_name: str, value: str | None) -> EnumT | None:
    try:
        return None if value is None else enumeration(value.lower())
    except ValueError:
        names = ", ".join(member.value for member in enumeration)
        raise ConfigurationError(f"{override_name} '{value}' must be one of {names}") from None


def project_payload(project: TrainingProject) -> dict[str, Any]:
    """Build the body's ``training_project``: the project's name, and its team, if any."""
    return project.model_dump(mode="json", exclude_none=True)


def job_payload(
    job: TrainingJob, *, artifact: tuple[str, str] | None, user_env: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Build the body's ``training_job``; unset fields are sent as null, as the official CLI does.

    ``artifact`` is the uploaded archive's bucket and key, ``user_env`` describes the sender. Raises
    ConfigurationError if an unknown field of a lax class holds a value that JSON cannot represent.
    """
    try:
        payload = job.model_dump(mode="json")
    except PydanticSerializationError as error:
        raise ConfigurationError(f"the job cannot be written as JSON: {error}") from error
    runtime = payload["runtime"]
    runtime["artifacts"] = [{"s3_bucket": artifact[0], "s3_key": artifact[1]}] if artifact else []
    payload["truss_user_env"] = None if user_env is None else dict(user_env)
    return payload
