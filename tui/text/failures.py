"""Texts for failed requests that may have taken effect."""

from __future__ import annotations

from api_client.errors import RequestError

CREATION_PATHS = ("/jobs", "/recreate")
MAY_BE_CREATED = "the job may have been created; check bt-tui jobs before trying again"


def creation_doubt(error: Exception) -> str:
    """Return what to do if ``error`` leaves open whether a job was created; empty if it was not."""
    if not isinstance(error, RequestError) or not error.may_have_happened:
        return ""
    return MAY_BE_CREATED if error.path.endswith(CREATION_PATHS) else ""
