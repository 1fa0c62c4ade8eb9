"""Check a job before it costs money: its files, and the account's secrets, machines, GPU limits and prices.

::

    findings = await preflight(client, project, plan)

The rules are pure functions of the request to send, the archive to upload, and facts about the account, which
are fetched once. A fact that cannot be fetched is reported as a finding, and does not fail the check.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

from api_client.addresses import is_loopback
from api_client.definitions import TrainingProject
from api_client.definitions.base import unknown_fields
from api_client.definitions.job_request import JobRequest, read_job_request
from api_client.errors import RequestError, Unauthorized, Unreachable
from api_client.models import (
    GpuCapacity,
    InstanceType,
    InstanceTypePrice,
    Team,
    TeamGpuCapacity,
    TrainingCapacity,
)
from api_client.models.account import EMULATOR_USER_EMAIL
from api_client.submission.archive import ArchivePlan
from api_client.submission.command_rules import command_findings
from api_client.submission.findings import Finding, most_severe_first
from api_client.submission.payload import job_payload
from api_client.submission.submitting import SubmissionClient
from api_client.vocabulary import normal_gpu_type
from api_client.words import listed

FactT = TypeVar("FactT")


@dataclass(frozen=True, slots=True)
class AccountFacts:
    """Facts about the account; None if not requested or not available.

    ``unknown_facts`` are pairs of a fact and the reason why it is not available.
    """

    secret_names: frozenset[str] | None = None
    instance_types: Iterable[InstanceType] | None = None
    prices: Iterable[InstanceTypePrice] | None = None
    capacity: TrainingCapacity | None = None
    team: Team | None = None
    unknown_facts: tuple[tuple[str, str], ...] = ()


async def fetch_account_facts(
    client: SubmissionClient, request: JobRequest, team_name: str | None
) -> AccountFacts:
    """Fetch the facts that the rules need for this request.

    If the server lacks or refuses a route, only that fact is missing. Raises Unreachable, and Unauthorized
    for a wrong key.
    """
    unknown_facts: list[tuple[str, str]] = []

    async def fetch(
        fact: str, call: Callable[[], Awaitable[FactT]], *, is_needed: bool = True
    ) -> FactT | None:
        try:
            return await call() if is_needed else None
        except RequestError as error:
            if isinstance(error, Unreachable) or (isinstance(error, Unauthorized) and error.is_key_invalid):
                raise
            unknown_facts.append((fact, str(error)))
            return None

    needs_gpus = request.gpu_type is not None
    teams, instances, prices, capacity = await asyncio.gather(
        fetch("teams", client.account.teams, is_needed=needs_gpus or team_name is not None),
        fetch("instance types", client.account.instance_types),
        fetch("prices", client.account.instance_type_prices),
        fetch("GPU capacity", client.capacity.get, is_needed=needs_gpus),
    )
    team = _chosen_team(teams or [], team_name)
    secrets_team_id = team.id if team is not None and team_name else None
    secrets = await fetch(
        "secrets", lambda: client.account.secrets(secrets_team_id), is_needed=bool(request.secrets)
    )
    return AccountFacts(
        secret_names=frozenset(secret.name for secret in secrets) if secrets is not None else None,
        instance_types=instances,
        prices=prices,
        capacity=capacity,
        team=team,
        unknown_facts=tuple(unknown_facts),
    )


def _chosen_team(teams: Iterable[Team], name: str | None) -> Team | None:
    """Return the team with this name; the default team if ``name`` is None."""
    return next((team for team in teams if team.name == name or (name is None and team.default)), None)


def account_findings(request: JobRequest, facts: AccountFacts) -> Iterator[Finding]:
    for secret in request.secrets:
        if facts.secret_names is not None and secret.name not in facts.secret_names:
            problem = f"the workspace has no secret {secret.name!r}"
            yield Finding("error", secret.field, problem, "add it in the workspace's settings, under Secrets")
    if request.gpu_type is not None:
        yield from _machine_findings(request, facts)
        yield from _capacity_findings(request, facts)
    yield from _price_findings(request, facts)
    for fact, reason in facts.unknown_facts:
        yield Finding("info", "account", f"{fact} could not be checked: {reason}")


def _machine_findings(request: JobRequest, facts: AccountFacts) -> Iterator[Finding]:
    """Check that a machine with these GPUs exists.

    The list of machines is not specific to training, so a missing GPU type that has training capacity is only
    a warning.
    """
    if facts.instance_types is None:
        return
    field, gpu_type, gpu_count = "compute.accelerator", request.gpu_type, request.gpu_count
    gpu_machines = [machine for machine in facts.instance_types if machine.gpu_type and machine.gpu_count]
    counts = sorted({machine.gpu_count for machine in gpu_machines if machine.normal_gpu_type == gpu_type})
    if not counts:
        types = ", ".join(sorted({machine.normal_gpu_type for machine in gpu_machines})) or "no GPUs"
        has_capacity = facts.capacity is not None and any(_gpu_limits(request, facts.capacity, facts.team))
        problem = f"the account has no instance with {gpu_type}"
        yield Finding("warning" if has_capacity else "error", field, problem, f"it has {types}")
    elif gpu_count > counts[-1]:
        problem = f"no instance has {gpu_count} {gpu_type}; the largest has {counts[-1]}"
        remedy = f"use {gpu_type}:{counts[-1]} on more nodes (compute.node_count)"
        yield Finding("error", field, problem, remedy)
    elif gpu_count not in counts:
        larger = next(count for count in counts if count > gpu_count)
        problem = f"no instance has {gpu_count} {gpu_type}: the job gets {larger} and is billed for them"
        yield Finding("warning", field, problem, f"instances have {', '.join(map(str, counts))}")


def _gpu_limits(request: JobRequest, capacity: TrainingCapacity, team: Team | None) -> Iterator[GpuCapacity]:
    """Yield the organization's limit for the request's GPU type, and the team's limit, if any."""
    team_capacities = [entry for entry in capacity.team_gpu_capacities if team and entry.team_id == team.id]
    for entry in (*capacity.gpu_capacities, *team_capacities):
        if normal_gpu_type(entry.gpu_type) == request.gpu_type:
            yield entry


def _capacity_findings(request: JobRequest, facts: AccountFacts) -> Iterator[Finding]:
    if facts.capacity is None:
        return
    field, gpus = "compute.accelerator", f"{request.total_gpus} {request.gpu_type}"
    limits = list(_gpu_limits(request, facts.capacity, facts.team))
    if not limits:
        types = ", ".join(sorted({entry.gpu_type for entry in facts.capacity.gpu_capacities})) or "none"
        problem = f"no training capacity is listed for {request.gpu_type}"
        yield Finding("warning", field, problem, f"capacity exists for: {types}")
    for entry in limits:
        free = entry.free_count
        if request.total_gpus <= free:
            continue
        owner = "the organization"
        if isinstance(entry, TeamGpuCapacity):
            owner = f"team {entry.team_name or entry.team_id}"
        if request.total_gpus > entry.limit and not request.spot:
            problem = f"{gpus} exceed the limit of {owner}: {entry.limit}"
            yield Finding("error", field, problem, "request fewer, or have the limit raised")
        else:
            problem = f"the job will be queued: {gpus} requested, {free} of {entry.limit} free for {owner}"
            yield Finding("warning", field, problem)
        return


def _price_findings(request: JobRequest, facts: AccountFacts) -> Iterator[Finding]:
    """Estimate the price per hour: a node's price per minute, times nodes, times 60."""
    offers = [
        (offer.instance_type.gpu_count, offer.price, offer.instance_type.name or offer.instance_type.id)
        for offer in facts.prices or ()
        if offer.price is not None
        and offer.instance_type.fits(
            gpu_type=request.gpu_type,
            gpu_count=request.gpu_count,
            cpu_count=request.cpu_count,
            memory_mib=request.memory_mib or 0,
        )
    ]
    if offers:
        _count, price, name = min(offers)
        per_hour = price * request.node_count * 60
        nodes = f"{request.node_count} × {name}" if request.node_count > 1 else name
        note = "; spot may cost less" if request.spot else ""
        yield Finding("info", "compute", f"about ${per_hour:,.2f} per hour of run time ({nodes}){note}")


PUBLISHED_SCHEMES = ("hf", "s3", "gs", "r2", "cw")
"""URL schemes of weights that the API's description names."""


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


def _weight_findings(request: JobRequest, on_emulator: bool | None) -> Iterator[Finding]:
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

    Only reads from the server. Raises Unreachable, and Unauthorized for a wrong key; any other fact that
    cannot be fetched becomes a finding.
    """
    request = read_job_request(job_payload(project.job, artifact=None, user_env=None))
    facts = await fetch_account_facts(client, request, project.team_name)
    on_emulator = await _is_emulator(client)
    return await asyncio.to_thread(check, project, plan, facts, on_emulator=on_emulator)


async def _is_emulator(client: SubmissionClient) -> bool | None:
    """Return True for an emulator; None if unknown: a server on this machine may be a proxy or a tunnel."""
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
    """Return the findings of ``preflight`` for the given facts; without ``facts``, check only the files.

    Most severe first. ``on_emulator`` is True or False if known. Sends no request, and reads only scripts
    among the plan's files. Findings that need a missing fact are left out.
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
        findings += _weight_findings(request, on_emulator)
    elif any(command.strip() for command in request.start_commands):
        problem = "the emulator runs it on this machine, as your user; prices are examples"
        findings.append(Finding("info", "runtime.start_commands", problem))
    if facts is not None:
        findings += account_findings(request, facts)
    return most_severe_first(findings)
