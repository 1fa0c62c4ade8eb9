"""References to secrets, and the environment variables that may hold them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticCustomError

from api_client.definitions.base import StrictDefinition


class SecretReference(StrictDefinition):
    """The name of a secret stored in the workspace; its value never appears in a definition."""

    name: str


def _string_or_reference(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    try:
        return handler(value)
    except ValidationError as error:
        # One sentence instead of one error per member of the union.
        raise PydanticCustomError(
            "environment_value", "Input should be a string or a SecretReference"
        ) from error


EnvironmentValue = Annotated[str | SecretReference, WrapValidator(_string_or_reference)]
"""What an environment variable is set to: text, or a secret by its name."""
