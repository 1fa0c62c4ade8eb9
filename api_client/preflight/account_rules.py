"""What the account tells about a request: secrets, machines, capacity, cache, price."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from api_client.models import InstanceType
from api_client.preflight.account_facts import AccountFacts
from api_client.preflight.capacity_room import Room, rooms
from api_client.preflight.findings import Finding
from api_client.preflight.job_request import JobRequest, normal_gpu_type

MINUTES_PER_HOUR = 60
SECONDS_PER_MINUTE = 60
MILLICPU = 1000


def account_findings(
    request: JobRequest, facts: AccountFacts, *, team_name: str | None, now: datetime
) -> Iterator[Finding]:
    """All findings that need the account."""
    yield from _team(facts, team_name)
    yield from _secrets(request, facts)
    yield from _machine(request, facts)
    yield from _capacity(request, facts, now)
    yield from _cache_affinity(request, facts)
    yield from _price(request, facts)
    for what, reason in facts.untold:
        yield Finding("info", "account", f"{what} could not be checked: {reason}")


def _team(facts: AccountFacts, team_name: str | None) -> Iterator[Finding]:
    if team_name is None or facts.teams is None or facts.team is not None:
        return
    known = ", ".join(sorted(team.name for team in facts.teams)) or "none"
    yield Finding("error", "team_name", f"there is no team {team_name!r}", f"teams of this key: {known}")


def _secrets(request: JobRequest, facts: AccountFacts) -> Iterator[Finding]:
    if facts.secret_names is None:
        return
    for use in request.secrets:
        if use.name not in facts.secret_names:
            problem = f"the workspace has no secret {use.name!r}"
            yield Finding("error", use.field, problem, "add it in the workspace's settings, under Secrets")


def _machine(request: JobRequest, facts: AccountFacts) -> Iterator[Finding]:
    """Whether there is a machine with such GPUs.

    The list of machines is not made for training alone, so a type with training capacity is not refused.
    """
    if request.gpu_type is None or facts.instance_types is None:
        return
    field = "compute.accelerator"
    with_gpus = [machine for machine in facts.instance_types if machine.gpu_type and machine.gpu_count]
    counts = [machine.gpu_count for machine in with_gpus if _gpu_type_of(machine) == request.gpu_type]
    if not counts:
        types = ", ".join(sorted({_gpu_type_of(machine) for machine in with_gpus})) or "no GPUs at all"
        holds = facts.capacity is not None and any(rooms(request, facts.capacity, facts.team))
        problem = f"the account has no instance with {request.gpu_type}"
        yield Finding("warning" if holds else "error", field, problem, f"it has {types}")
    elif request.gpu_count > max(counts):
        problem = f"no instance has {request.gpu_count} {request.gpu_type}: the largest has {max(counts)}"
        remedy = f"take {request.gpu_type}:{max(counts)} on more nodes, by compute.node_count"
        yield Finding("error", field, problem, remedy)
    elif request.gpu_count not in counts:
        larger = min(count for count in counts if count > request.gpu_count)
        listed = ", ".join(map(str, sorted(set(counts))))
        asked = f"{request.gpu_count} {request.gpu_type}"
        problem = f"no instance has {asked}: the job gets {larger}, and pays for them"
        yield Finding("warning", field, problem, f"instances have {listed}")


def _capacity(request: JobRequest, facts: AccountFacts, now: datetime) -> Iterator[Finding]:
    if request.gpu_type is None or facts.capacity is None:
        return
    found = list(rooms(request, facts.capacity, facts.team))
    if not found:
        listed = ", ".join(sorted({entry.gpu_type for entry in facts.capacity.gpu_capacities})) or "none"
        problem = f"no training capacity is listed for {request.gpu_type}"
        yield Finding("warning", "compute.accelerator", problem, f"there is capacity for: {listed}")
        return
    for room in found:
        if room.is_short:
            yield _short(room, request, facts, now)
            return


def _short(room: Room, request: JobRequest, facts: AccountFacts, now: datetime) -> Finding:
    field = "compute.accelerator"
    gpus = f"{room.wanted} {request.gpu_type}"
    if room.can_never_hold and not request.spot:
        problem = f"{gpus} are more than {room.owner} may use: {room.limit}"
        return Finding("error", field, problem, "ask for fewer, or have the limit raised")
    problem = f"the job has to wait: {gpus} wanted, {room.free} of {room.limit} free for {room.owner}"
    return Finding("warning", field, problem + _queue(facts, now))


def _queue(facts: AccountFacts, now: datetime) -> str:
    """``; 3 jobs with 24 GPUs wait already, the first for 41 min``."""
    if facts.waiting is None:
        return ""
    if not facts.waiting:
        return "; nobody else waits"
    count = len(facts.waiting)
    gpus = sum(job.instance_type.gpu_count * (job.node_count or 1) for job in facts.waiting)
    jobs = "1 job" if count == 1 else f"{count} jobs"
    text = f"; {jobs} with {gpus} GPUs wait{'s' if count == 1 else ''} already"
    since = [job.created_at for job in facts.waiting if job.created_at]
    if since:
        minutes = max(0, int((now - min(since)).total_seconds() // SECONDS_PER_MINUTE))
        text += f", the first for {minutes} min"
    return text


def _cache_affinity(request: JobRequest, facts: AccountFacts) -> Iterator[Finding]:
    earlier = facts.cache_gpu_types
    if not earlier or request.gpu_type is None or request.gpu_type in earlier:
        return
    if not (request.caching and request.requires_cache_affinity):
        return
    problem = (
        f"the project's cache was filled by jobs on {', '.join(sorted(earlier))}: "
        f"if its cluster has no {request.gpu_type}, the job fails"
    )
    remedy = "require_cache_affinity=False starts with an empty cache there"
    yield Finding("warning", "runtime.cache_config.require_cache_affinity", problem, remedy)


def _price(request: JobRequest, facts: AccountFacts) -> Iterator[Finding]:
    """What an hour costs: a node's price a minute (API facts, 2.3), times nodes, times 60."""
    offers = [
        (offer.price, offer.instance_type)
        for offer in facts.prices or ()
        if offer.price is not None and _is_enough(offer.instance_type, request)
    ]
    if not offers:
        return
    price, machine = min(offers, key=lambda offer: (offer[1].gpu_count, offer[0]))
    per_hour = price * request.node_count * MINUTES_PER_HOUR
    name = machine.name or machine.id
    nodes = f"{request.node_count} × {name}" if request.node_count > 1 else name
    note = "; spot may cost less" if request.spot else ""
    yield Finding("info", "compute", f"about ${per_hour:,.2f} an hour while it runs ({nodes}){note}")


def _is_enough(machine: InstanceType, request: JobRequest) -> bool:
    if request.gpu_type is None:
        memory_is_enough = request.memory_mib is None or machine.memory_limit_mib >= request.memory_mib
        cores_are_enough = machine.millicpu_limit >= request.cpu_count * MILLICPU
        return not machine.gpu_count and cores_are_enough and memory_is_enough
    return _gpu_type_of(machine) == request.gpu_type and machine.gpu_count >= request.gpu_count


def _gpu_type_of(machine: InstanceType) -> str:
    return normal_gpu_type(machine.gpu_type or "")
