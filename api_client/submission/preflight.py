"""Check a job before it costs money.

::

    findings = await preflight(client, project, plan)

The rules are pure functions of the request to send, the archive to upload and a few facts about the account,
which are fetched once and never changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

from api_client.addresses import is_loopback
from api_client.definitions import TrainingProject
from api_client.definitions.base import unknown_fields
from api_client.definitions.job_request import JobRequest, read_job_request
from api_client.errors import RequestError
from api_client.models.account import EMULATOR_USER_EMAIL
from api_client.submission.account_rules import AccountFacts, account_findings, fetch_account_facts
from api_client.submission.archive import ArchivePlan
from api_client.submission.client import SubmissionClient
from api_client.submission.command_rules import command_findings
from api_client.submission.findings import Finding, most_severe_first
from api_client.submission.payload import job_payload
from api_client.words import listed

PUBLISHED_SCHEMES = ("hf", "s3", "gs", "r2", "cw")
"""Sources of weights that the API describes."""


def _config_findings(request: JobRequest) -> Iterator[Finding]:
    field = "runtime.start_commands"
    if not any(command.strip() for command in request.start_commands):
        if request.session_trigger == "on_startup":
            problem = "empty: the job and its session end as soon as it starts"
            yield Finding("warning", field, problem, "keep it alive: start_commands=['sleep infinity']")
        else:
            yield Finding("error", field, "empty: nothing to run", "set a command, e.g. ['./run.sh']")
    if not request.checkpointing and (request.spot or request.node_count > 1 or request.total_gpus > 1):
        risk = "this spot job is preempted" if request.spot else "the job fails"
        problem = f"checkpointing is off for {request.machine}: if {risk}, its results are lost"
        remedy = "use CheckpointingConfig(enabled=True) and write to $BT_CHECKPOINT_DIR"
        yield Finding("warning", "runtime.checkpointing_config", problem, remedy)


def _weights(request: JobRequest, on_emulator: bool | None) -> Iterator[Finding]:
    for number, weights in enumerate(request.weights):
        source = weights.get("source") if isinstance(weights, dict) else None
        scheme = source.partition("://")[0] if isinstance(source, str) else ""
        field = f"weights[{number}].source"
        remedy = f"use {', '.join(f'{name}://' for name in PUBLISHED_SCHEMES)}"
        if scheme == "file":
            problem = f"{source}: only an emulator can read files of this machine"
            yield Finding("warning" if on_emulator is None else "error", field, problem, remedy)
        elif scheme and scheme not in PUBLISHED_SCHEMES:
            yield Finding("warning", field, f"{scheme}:// is not in the API's description", remedy)


async def preflight(
    client: SubmissionClient, project: TrainingProject, plan: ArchivePlan
) -> tuple[Finding, ...]:
    """Return all findings about ``project`` before it is submitted, most severe first.

    Only reads from the server. Raises Unreachable, and Unauthorized for a wrong key; any other missing
    fact becomes a finding of its own.
    """
    request = read_job_request(job_payload(project.job, artifact=None, user_env=None))
    facts = await fetch_account_facts(client, request, project.team_name)
    on_emulator = await _is_emulator(client)
    return await asyncio.to_thread(check, project, plan, facts, on_emulator=on_emulator)


async def _is_emulator(client: SubmissionClient) -> bool | None:
    """Return None if unknown: a server on this machine may also be a proxy or a tunnel."""
    if not is_loopback(urlsplit(client.remote.api_url).hostname or ""):
        return False
    with suppress(RequestError):
        return (await client.account.me()).email == EMULATOR_USER_EMAIL or None
    return None


def check(
    project: TrainingProject,
    plan: ArchivePlan,
    facts: AccountFacts | None = None,
    *,
    on_emulator: bool | None = None,
) -> tuple[Finding, ...]:
    """Return what ``preflight`` finds, using the given facts; without ``facts``, check only the files.

    Most severe first; ``on_emulator`` says where the job is sent, if known. Sends no request, and reads only
    scripts among the plan's files. Findings that need a missing fact are left out.
    """
    request = read_job_request(job_payload(project.job, artifact=None, user_env=None))
    findings = [*_config_findings(request), *command_findings(request, plan)]
    for field in unknown_fields(project):
        problem = "unknown to the API; sent anyway, and probably ignored"
        remedy = "check the spelling, or remove it"
        findings.append(Finding("warning", field.removeprefix("job."), problem, remedy))
    findings += [Finding("warning", "archive", warning) for warning in plan.warnings]
    if plan.dropped:
        excluded = listed([name for name, _reason in plan.dropped], 5)
        findings.append(Finding("info", "archive", f"excluded: {excluded}"))
    if not on_emulator:
        findings += _weights(request, on_emulator)
    elif any(command.strip() for command in request.start_commands):
        problem = "the emulator runs it on this machine, as your user; prices are examples"
        findings.append(Finding("info", "runtime.start_commands", problem))
    if facts is not None:
        findings += account_findings(request, facts)
    return most_severe_first(findings)
