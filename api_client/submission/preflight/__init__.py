"""Check a job before it costs money.

::

    findings = await preflight(client, project, plan)

The rules are pure functions of the request to send, the archive to upload and a few facts about the
account, which are fetched once and never changed.
"""

from __future__ import annotations

from api_client.submission.findings import Finding
from api_client.submission.preflight.account import AccountFacts
from api_client.submission.preflight.check import check, preflight

__all__ = ["AccountFacts", "Finding", "check", "preflight"]
