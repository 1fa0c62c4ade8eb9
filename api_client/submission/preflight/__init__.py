"""What can be said about a job before it costs money.

::

    findings = await preflight(client, project, plan)

Pure rules over the request that would be sent, the archive that would be uploaded and a few facts about
the account, which are fetched once and only read.
"""

from __future__ import annotations

from api_client.submission.findings import Finding, Severity
from api_client.submission.preflight.account import AccountFacts, AccountReader, fetch_account_facts
from api_client.submission.preflight.check import check, preflight
from api_client.submission.preflight.job_request import JobRequest, read_job_request

__all__ = [
    "AccountFacts",
    "AccountReader",
    "Finding",
    "JobRequest",
    "Severity",
    "check",
    "fetch_account_facts",
    "preflight",
    "read_job_request",
]
