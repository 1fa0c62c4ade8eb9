"""Check a job before it costs money.

::

    findings = await preflight(client, project, plan)

The rules are pure functions of the request to send, the archive to upload and a few facts about the
account, which are fetched once and never changed.
"""

from __future__ import annotations

from api_client.definitions.job_request import JobRequest, read_job_request
from api_client.submission.findings import Finding, Severity
from api_client.submission.preflight.account import AccountFacts, fetch_account_facts
from api_client.submission.preflight.check import check, preflight

__all__ = [
    "AccountFacts",
    "Finding",
    "JobRequest",
    "Severity",
    "check",
    "fetch_account_facts",
    "preflight",
    "read_job_request",
]
