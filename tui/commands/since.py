"""The option ``--since``: from when on something is wanted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import click

from tui.commands.options import Command


def _check(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    moment_since(value)
    return value


def since_option(description: str) -> Callable[[Command], Command]:
    """``--since TIME``: a span (``2h``: that long ago) or a time; checked, and given on as it was typed."""
    return click.option("--since", metavar="TIME", callback=_check, help=description)


def moment_since(typed: str | None) -> datetime | None:
    """The moment it means now. Raises click.BadParameter."""
    from tui.commands.log_times import since_moment

    if typed is None:
        return None
    now = datetime.now(UTC)
    try:
        moment = since_moment(typed, now)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--since") from None
    if moment > now:
        raise click.BadParameter(f"{typed!r} is in the future", param_hint="--since")
    return moment
