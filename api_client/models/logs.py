"""Log records as the API sends them.

A hot path: pages of up to 1,000 records are validated straight from bytes into plain dicts.
"""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import BeforeValidator, ConfigDict, with_config
from typing_extensions import TypedDict


def _text(value: object) -> object:
    return str(value) if isinstance(value, int) else value


def _no_null_text(value: object) -> object:
    return "" if value is None else value


@with_config(ConfigDict(extra="allow", defer_build=True))
class LogRecord(TypedDict):
    """One log line: ``timestamp`` is a string of epoch nanoseconds, ``replica`` an opaque node name.

    ``level`` is DEBUG, INFO, WARNING or ERROR, or null where the server detected none.
    """

    timestamp: Annotated[str, BeforeValidator(_text)]
    message: Annotated[str, BeforeValidator(_no_null_text)]
    replica: NotRequired[str | None]
    request_id: NotRequired[str | None]
    level: NotRequired[str | None]


@with_config(ConfigDict(extra="ignore", defer_build=True))
class LogsPage(TypedDict):
    """The answer of the logs route."""

    logs: list[LogRecord] | None
