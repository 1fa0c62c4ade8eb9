"""Texts for failed requests that may have taken effect, and for answers that are readable only in part."""

from __future__ import annotations

from collections.abc import Sequence

from api_client.errors import RequestError
from tui.text.sanitize import sanitize
from tui.text.units import counted


def creation_doubt(error: Exception, list_jobs: str) -> str:
    """Return what to do if ``error`` leaves open whether a job was created; empty if it was not.

    ``list_jobs`` is the command that lists the jobs, empty if there is none.
    """
    if not isinstance(error, RequestError) or not error.may_have_happened:
        return ""
    if not error.path.endswith(("/jobs", "/recreate")):
        return ""
    return f"the job may have been created; check {list_jobs or 'the jobs'} before trying again"


def left_out(noun: str, reasons: Sequence[str]) -> str:
    """Return how many records of a list are missing because they could not be read; empty if none."""
    return f"{counted(len(reasons), noun)} left out: invalid data ({sanitize(reasons[0])})" if reasons else ""
