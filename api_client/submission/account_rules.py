"""Check a job against the account: team, secrets, machine, GPU limits, queue, cache and price.

The facts are fetched first; checking them sends nothing. A fact that cannot be fetched is reported as such
and does not fail the check.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from api_client.definitions.job_request import JobRequest, normal_gpu_type
from api_client.errors import RequestError, Unauthorized, Unreachable
from api_client.models import (
    GpuCapacity,
    InstanceType,
    InstanceTypePrice,
    Team,
    TrainingCapacity,
    TrainingJob,
)
from api_client.models.jobs import WAITING_STATUSES
from api_client.submission.client import SubmissionClient
from api_client.submission.findings import Finding
from api_client.words import counted


@dataclass(frozen=True, slots=True)
class GpuHeadroom:
    """GPUs of the wanted type under one limit; ``owner`` is the limit's owner."""

    owner: str
    wanted: int
    used: int
    limit: int

    @property
    def free(self) -> int:
        """Number of free GPUs; spot use may push the use above the limit."""
        return max(0, self.limit - self.used)

    @property
    def is_short(self) -> bool:
        return self.wanted > self.free

    @property
    def is_impossible(self) -> bool:
        """True if the job would wait forever."""
        return self.wanted > self.limit


def gpu_headrooms(
    request: JobRequest, capacity: TrainingCapacity, team: Team | None
) -> Iterator[GpuHeadroom]:
    """Yield the organization's limit, and the team's if there is one."""
    for entry in capacity.gpu_capacities:
        if normal_gpu_type(entry.gpu_type) == request.gpu_type:
            yield _room("the organization", entry, request)
    for team_entry in capacity.team_gpu_capacities:
        is_ours = team is not None and team_entry.team_id == team.id
        if is_ours and normal_gpu_type(team_entry.gpu_type) == request.gpu_type:
            yield _room(f"team {team_entry.team_name or team_entry.team_id}", team_entry, request)


def _room(owner: str, entry: GpuCapacity, request: JobRequest) -> GpuHeadroom:
    return GpuHeadroom(owner=owner, wanted=request.total_gpus, used=entry.usage_count, limit=entry.limit)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AccountFacts:
    """Facts about the account. None: not requested or not available; ``unknown_facts`` gives the reasons."""

    secret_names: frozenset[str] | None = None
    instance_types: tuple[InstanceType, ...] | None = None
    prices: tuple[InstanceTypePrice, ...] | None = None
    capacity: TrainingCapacity | None = None
    team: Team | None = None
    teams: tuple[Team, ...] | None = None
    waiting: tuple[TrainingJob, ...] | None = None
    cache_gpu_types: frozenset[str] = frozenset()
    unknown_facts: tuple[tuple[str, str], ...] = ()


class _FactFetcher:
    """Runs queries; failures are recorded, not raised."""

    def __init__(self) -> None:
        self.unknown_facts: list[tuple[str, str]] = []
        self._fatal: RequestError | None = None

    async def __call__(
        self, what: str, question: Callable[[], Awaitable[T]], *, wanted: bool = True
    ) -> T | None:
        if not wanted:
            return None
        try:
            return await question()
        except RequestError as error:
            wrong_key = isinstance(error, Unauthorized) and error.is_key_invalid
            if wrong_key or isinstance(error, Unreachable):
                self._fatal = self._fatal or error
            else:
                self.unknown_facts.append((what, str(error)))
            return None

    def raise_fatal(self) -> None:
        """Raise the recorded error, if any, that makes all further queries useless."""
        if self._fatal is not None:
            raise self._fatal


async def fetch_account_facts(
    client: SubmissionClient, request: JobRequest, *, project_name: str, team_name: str | None
) -> AccountFacts:
    """Fetch what the rules need for this request, concurrently if possible.

    If the server lacks or refuses a route, only that fact is missing. Raises Unreachable, and
    Unauthorized for a wrong key.
    """
    ask = _FactFetcher()
    on_gpus = request.gpu_type is not None
    teams, instances, prices, capacity, cache_types = await asyncio.gather(
        ask("teams", client.account.teams, wanted=on_gpus or team_name is not None),
        ask("instance types", client.account.instance_types),
        ask("prices", client.account.instance_type_prices),
        ask("GPU capacity", client.capacity.get, wanted=on_gpus),
        ask(
            "the project's cache",
            lambda: _cache_gpu_types(client, project_name, team_name),
            wanted=on_gpus and request.caching and request.requires_cache_affinity,
        ),
    )
    ask.raise_fatal()
    team = chosen_team(teams or [], team_name)
    secrets_of = team.id if team is not None and team_name else None
    secrets = await ask("secrets", lambda: client.account.secrets(secrets_of), wanted=bool(request.secrets))
    short = capacity is not None and any(room.is_short for room in gpu_headrooms(request, capacity, team))
    waiting = await ask("the queue", lambda: _waiting_jobs(client, request), wanted=short)
    ask.raise_fatal()
    return AccountFacts(
        secret_names=frozenset(secret.name for secret in secrets) if secrets is not None else None,
        instance_types=tuple(instances) if instances is not None else None,
        prices=tuple(prices) if prices is not None else None,
        capacity=capacity,
        teams=tuple(teams) if teams is not None else None,
        team=team,
        waiting=tuple(waiting) if waiting is not None else None,
        cache_gpu_types=cache_types or frozenset(),
        unknown_facts=tuple(ask.unknown_facts),
    )


def chosen_team(teams: Iterable[Team], name: str | None) -> Team | None:
    """Return the team with that name, or the default one if ``name`` is None."""
    for team in teams:
        if team.name == name or (name is None and team.default):
            return team
    return None


async def _waiting_jobs(client: SubmissionClient, request: JobRequest) -> list[TrainingJob]:
    waiting = await client.jobs.search(statuses=sorted(WAITING_STATUSES))
    return [
        job
        for job in waiting
        if job.current_status in WAITING_STATUSES
        and normal_gpu_type(job.instance_type.gpu_type or "") == request.gpu_type
    ]


async def _cache_gpu_types(
    client: SubmissionClient, project_name: str, team_name: str | None
) -> frozenset[str]:
    """Return the GPU types of the project's earlier jobs if the project has a cache; else nothing.

    A project's cache is on the cluster of its first job that used one. The API does not
    say which cluster that is; the GPU types of the jobs are the best hint.
    """
    for project in await client.projects.list():
        if project.name != project_name or team_name not in (None, project.team_name):
            continue
        if await client.cache.summary(project.id) is None:
            continue
        jobs = await client.jobs.list(project.id)
        return frozenset(
            normal_gpu_type(job.instance_type.gpu_type) for job in jobs if job.instance_type.gpu_type
        )
    return frozenset()


MINUTES_PER_HOUR = 60
SECONDS_PER_MINUTE = 60
MILLICPU = 1000


def account_findings(
    request: JobRequest, facts: AccountFacts, *, team_name: str | None, now: datetime
) -> Iterator[Finding]:
    yield from _team(facts, team_name)
    yield from _secrets(request, facts)
    yield from _machine(request, facts)
    yield from _capacity(request, facts, now)
    yield from _cache_affinity(request, facts)
    yield from _price(request, facts)
    for what, reason in facts.unknown_facts:
        yield Finding("info", "account", f"{what} could not be checked: {reason}")


def _team(facts: AccountFacts, team_name: str | None) -> Iterator[Finding]:
    if team_name is None or facts.teams is None or facts.team is not None:
        return
    names = ", ".join(sorted(team.name for team in facts.teams)) or "none"
    yield Finding("error", "team_name", f"no team {team_name!r}", f"teams of this key: {names}")


def _secrets(request: JobRequest, facts: AccountFacts) -> Iterator[Finding]:
    if facts.secret_names is None:
        return
    for use in request.secrets:
        if use.name not in facts.secret_names:
            problem = f"the workspace has no secret {use.name!r}"
            yield Finding("error", use.field, problem, "add it in the workspace's settings, under Secrets")


def _machine(request: JobRequest, facts: AccountFacts) -> Iterator[Finding]:
    """Check if a machine with such GPUs exists.

    The list of machines is not specific to training, so a type with training capacity is only a warning.
    """
    if request.gpu_type is None or facts.instance_types is None:
        return
    field = "compute.accelerator"
    with_gpus = [machine for machine in facts.instance_types if machine.gpu_type and machine.gpu_count]
    counts = [machine.gpu_count for machine in with_gpus if _gpu_type_of(machine) == request.gpu_type]
    if not counts:
        types = ", ".join(sorted({_gpu_type_of(machine) for machine in with_gpus})) or "no GPUs"
        holds = facts.capacity is not None and any(gpu_headrooms(request, facts.capacity, facts.team))
        problem = f"the account has no instance with {request.gpu_type}"
        yield Finding("warning" if holds else "error", field, problem, f"it has {types}")
    elif request.gpu_count > max(counts):
        problem = f"no instance has {request.gpu_count} {request.gpu_type}; the largest has {max(counts)}"
        remedy = f"use {request.gpu_type}:{max(counts)} on more nodes (compute.node_count)"
        yield Finding("error", field, problem, remedy)
    elif request.gpu_count not in counts:
        larger = min(count for count in counts if count > request.gpu_count)
        listed = ", ".join(map(str, sorted(set(counts))))
        requested = f"{request.gpu_count} {request.gpu_type}"
        problem = f"no instance has {requested}: the job gets {larger} and is billed for them"
        yield Finding("warning", field, problem, f"instances have {listed}")


def _capacity(request: JobRequest, facts: AccountFacts, now: datetime) -> Iterator[Finding]:
    if request.gpu_type is None or facts.capacity is None:
        return
    headrooms = list(gpu_headrooms(request, facts.capacity, facts.team))
    if not headrooms:
        listed = ", ".join(sorted({entry.gpu_type for entry in facts.capacity.gpu_capacities})) or "none"
        problem = f"no training capacity is listed for {request.gpu_type}"
        yield Finding("warning", "compute.accelerator", problem, f"capacity exists for: {listed}")
        return
    for room in headrooms:
        if room.is_short:
            yield _short(room, request, facts, now)
            return


def _short(room: GpuHeadroom, request: JobRequest, facts: AccountFacts, now: datetime) -> Finding:
    field = "compute.accelerator"
    gpus = f"{room.wanted} {request.gpu_type}"
    if room.is_impossible and not request.spot:
        problem = f"{gpus} exceed the limit of {room.owner}: {room.limit}"
        return Finding("error", field, problem, "request fewer, or have the limit raised")
    problem = f"the job will be queued: {gpus} requested, {room.free} of {room.limit} free for {room.owner}"
    return Finding("warning", field, problem + _queue(facts, now))


def _queue(facts: AccountFacts, now: datetime) -> str:
    """Return text such as ``; 3 jobs with 24 GPUs wait already, the first for 41 min``."""
    if facts.waiting is None:
        return ""
    if not facts.waiting:
        return "; no other job is queued"
    count = len(facts.waiting)
    gpus = sum(job.total_gpus for job in facts.waiting)
    text = f"; {counted(count, 'job')} with {counted(gpus, 'GPU')} already queued"
    since = [job.created_at for job in facts.waiting if job.created_at]
    if since:
        minutes = max(0, int((now - min(since)).total_seconds() // SECONDS_PER_MINUTE))
        text += f", the oldest for {minutes} min"
    return text


def _cache_affinity(request: JobRequest, facts: AccountFacts) -> Iterator[Finding]:
    earlier = facts.cache_gpu_types
    if not earlier or request.gpu_type is None or request.gpu_type in earlier:
        return
    if not (request.caching and request.requires_cache_affinity):
        return
    problem = (
        f"the project's cache was written by jobs on {', '.join(sorted(earlier))}: if its cluster has no "
        f"{request.gpu_type}, the job fails"
    )
    remedy = "set require_cache_affinity=False to start with an empty cache"
    yield Finding("warning", "runtime.cache_config.require_cache_affinity", problem, remedy)


def _price(request: JobRequest, facts: AccountFacts) -> Iterator[Finding]:
    """Compute the price per hour: a node's price per minute, times nodes, times 60."""
    offers = [
        (offer.price, offer.instance_type)
        for offer in facts.prices or ()
        if offer.price is not None and _has_enough_resources(offer.instance_type, request)
    ]
    if not offers:
        return
    price, machine = min(offers, key=lambda offer: (offer[1].gpu_count, offer[0]))
    per_hour = price * request.node_count * MINUTES_PER_HOUR
    name = machine.name or machine.id
    nodes = f"{request.node_count} × {name}" if request.node_count > 1 else name
    note = "; spot may cost less" if request.spot else ""
    yield Finding("info", "compute", f"about ${per_hour:,.2f} per hour of run time ({nodes}){note}")


def _has_enough_resources(machine: InstanceType, request: JobRequest) -> bool:
    if request.gpu_type is None:
        memory_is_enough = request.memory_mib is None or machine.memory_limit_mib >= request.memory_mib
        cores_are_enough = machine.millicpu_limit >= request.cpu_count * MILLICPU
        return not machine.gpu_count and cores_are_enough and memory_is_enough
    return _gpu_type_of(machine) == request.gpu_type and machine.gpu_count >= request.gpu_count


def _gpu_type_of(machine: InstanceType) -> str:
    return normal_gpu_type(machine.gpu_type or "")
