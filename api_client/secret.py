"""Text that no repr, log or traceback shows."""

from __future__ import annotations


class SecretText:
    """A key or a token; only ``get_secret_value`` returns it.

    Works like pydantic's ``SecretStr``, but choosing a remote need not import pydantic.
    """

    def __init__(self, value: str) -> None:
        self._value = value

    def get_secret_value(self) -> str:
        """Return the text, to send it."""
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretText) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return "SecretText('**********')"
