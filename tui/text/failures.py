"""Messages about failed requests that may have taken effect, and about invalid records in a response."""

from __future__ import annotations

from collections.abc import Sequence

from api_client.errors import RequestError
from tui.text.sanitize import sanitize
from tui.text.units import counted


def creation_doubt(error: Exception, list_jobs: str) -> str:
    """Return advice if a job may have been created despite ``error``; an empty string if it was not.

    ``list_jobs`` is the command line that lists the jobs; empty if the remote has none.
    """
    if not isinstance(error, RequestError) or not error.may_have_happened:
        return ""
    if not error.path.endswith(("/jobs", "/recreate")):
        return ""
    return f"the job may have been created; check {list_jobs or 'the jobs'} before trying again"


def left_out_note(noun: str, reasons: Sequence[str]) -> str:
    """Return a note on the records missing from a list because their data is invalid; empty without any.

    ``reasons`` has the error text of each missing record; the note quotes the first.
    """
    return f"{counted(len(reasons), noun)} left out: invalid data ({sanitize(reasons[0])})" if reasons else ""
