"""All rules together."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from api_client.clock import Clock, SystemClock
from api_client.definitions import TrainingProject
from api_client.payload import job_payload, unknown_fields
from api_client.preflight.account_facts import AccountFacts, AccountReader, fetch_account_facts
from api_client.preflight.account_rules import account_findings
from api_client.preflight.archive_rules import ArchiveListing, archive_findings
from api_client.preflight.config_rules import config_findings
from api_client.preflight.findings import Finding, gravest_first
from api_client.preflight.job_request import read_job_request


async def preflight(
    client: AccountReader, project: TrainingProject, plan: ArchiveListing, *, clock: Clock | None = None
) -> tuple[Finding, ...]:
    """Everything worth knowing about ``project`` before it is submitted, the gravest first.

    Only reads from the server. Raises Unreachable, and Unauthorized for a wrong key; any other fact that
    cannot be had becomes a finding of its own.
    """
    request = read_job_request(job_payload(project.job, artifact=None, user_env=None))
    facts = await fetch_account_facts(client, request, project_name=project.name, team_name=project.team_name)
    return check(project, plan, facts, now=(clock or SystemClock()).now())


def check(
    project: TrainingProject,
    plan: ArchiveListing,
    facts: AccountFacts | None = None,
    *,
    now: datetime | None = None,
) -> tuple[Finding, ...]:
    """What ``preflight`` finds, from facts at hand; without ``facts`` only what the files tell.

    The gravest first; ``now`` is aware. Asks no server, and reads scripts of the plan's files alone. A fact
    that is missing costs the findings that need it.
    """
    return gravest_first(_all(project, plan, facts, now or datetime.now(UTC)))


def _all(
    project: TrainingProject, plan: ArchiveListing, facts: AccountFacts | None, now: datetime
) -> Iterator[Finding]:
    request = read_job_request(job_payload(project.job, artifact=None, user_env=None))
    yield from config_findings(request, unknown_fields(project))
    yield from archive_findings(request, plan)
    if facts is not None:
        yield from account_findings(request, facts, team_name=project.team_name, now=now)
