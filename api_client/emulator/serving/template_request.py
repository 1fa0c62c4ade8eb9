"""The ``CreateModelVersionFromInferenceTemplateRequest`` of the deployment mutation (API facts, 2.4)."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from api_client.emulator.faults import ApiFault, invalid, not_served

LOOPS_SOURCE = "B10_LOOPS_CHECKPOINTING"
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def _storable(text: str) -> str:
    """JSON can carry halves of characters, which no file or database takes."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("the text is no valid Unicode") from error
    return text


_Text = Annotated[str, AfterValidator(_storable)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True, defer_build=True)


class _Metadata(_Part):
    oracle_name: _Text

    @field_validator("oracle_name")
    @classmethod
    def _said(cls, name: str) -> str:
        if not name.strip():
            raise ValueError("the model needs a name")
        return name.strip()


class CheckpointPlace(_Part):
    """A checkpoint by its job and its name."""

    training_job_id: _Text
    checkpoint_name: _Text


class _TrainingSource(_Part):
    checkpoint: CheckpointPlace


class _WeightsSource(_Part):
    weight_source_type: Literal["B10_CHECKPOINTING"]
    b10_training_checkpoint_weights_source: _TrainingSource


class EnvironmentVariable(_Part):
    """A variable of the server: ``value`` is its value or, for a reference, the name of a secret."""

    name: _Text
    value: _Text
    is_secret_reference: bool = False

    @field_validator("name")
    @classmethod
    def _usable(cls, name: str) -> str:
        if not _VARIABLE_NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot be the name of an environment variable")
        return name


class _InferenceStack(_Part):
    stack_type: Literal["VLLM"]
    environment_variables: list[EnvironmentVariable] = []


class TemplateRequest(_Part):
    """A checked request."""

    metadata: _Metadata
    weights_sources: list[_WeightsSource] = Field(min_length=1)
    inference_stack: _InferenceStack
    instance_type_id: _Text
    dry_run: bool = False

    @property
    def model_name(self) -> str:
        """What the model will be called."""
        return self.metadata.oracle_name

    @property
    def places(self) -> list[CheckpointPlace]:
        """The checkpoints to serve."""
        return [source.b10_training_checkpoint_weights_source.checkpoint for source in self.weights_sources]

    @property
    def environment(self) -> list[EnvironmentVariable]:
        """The server's environment."""
        return self.inference_stack.environment_variables


def check_template_request(fields: Any) -> TemplateRequest:
    """The request, checked; raises an ``ApiFault`` that names the first wrong field."""
    _refuse_loops(fields)
    try:
        return TemplateRequest.model_validate(fields)
    except ValidationError as error:
        raise _refusal(error) from error


def _refuse_loops(fields: Any) -> None:
    sources = fields.get("weights_sources") if isinstance(fields, dict) else None
    for source in sources if isinstance(sources, list) else []:
        if isinstance(source, dict) and source.get("weight_source_type") == LOOPS_SOURCE:
            raise not_served("the emulator has no Loops checkpoints")


def _refusal(error: ValidationError) -> ApiFault:
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(step) for step in ("request", *first["loc"]))
    return invalid(f"{place}: {first['msg'].removeprefix('Value error, ')}")
