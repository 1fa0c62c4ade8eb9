"""Why a job never starts."""

from __future__ import annotations


class CannotStart(Exception):
    """The job can never start; the message says why, in a user's words.

    It becomes the job's ``error_message`` under the status DEPLOY_FAILED.
    """
