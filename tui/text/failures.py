"""Texts for failed requests that may have taken effect, and for answers that are readable only in part."""

from __future__ import annotations

from collections.abc import Sequence

from api_client.errors import RequestError
from tui.text.sanitize import sanitize
from tui.text.units import counted

CREATION_PATHS = ("/jobs", "/recreate")
MAY_BE_CREATED = "the job may have been created; check bt-tui jobs before trying again"


def creation_doubt(error: Exception) -> str:
    """Return what to do if ``error`` leaves open whether a job was created; empty if it was not."""
    if not isinstance(error, RequestError) or not error.may_have_happened:
        return ""
    return MAY_BE_CREATED if error.path.endswith(CREATION_PATHS) else ""


def left_out(noun: str, reasons: Sequence[str]) -> str:
    """Return how many records of a list are missing because they could not be read; empty if none."""
    return f"{counted(len(reasons), noun)} left out: invalid data ({sanitize(reasons[0])})" if reasons else ""
