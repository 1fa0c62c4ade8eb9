"""What the account can tell, fetched once before a submission; nothing is changed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol, TypeVar

from api_client.errors import RequestError, Unauthorized, Unreachable
from api_client.models import (
    InstanceType,
    InstanceTypePrice,
    Team,
    TrainingCapacity,
    TrainingJob,
)
from api_client.models.status import WAITING_STATUSES
from api_client.preflight.capacity_room import rooms
from api_client.preflight.job_request import JobRequest, normal_gpu_type
from api_client.resources.account import Account
from api_client.resources.cache import Cache
from api_client.resources.capacity import Capacity
from api_client.resources.jobs import Jobs
from api_client.resources.projects import Projects

T = TypeVar("T")


class AccountReader(Protocol):
    """The resources that are read; a TrainingClient has them."""

    @property
    def account(self) -> Account: ...  # noqa: D102
    @property
    def cache(self) -> Cache: ...  # noqa: D102
    @property
    def capacity(self) -> Capacity: ...  # noqa: D102
    @property
    def jobs(self) -> Jobs: ...  # noqa: D102
    @property
    def projects(self) -> Projects: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class AccountFacts:
    """What the account told. None: not asked, or not told; ``untold`` says what and why."""

    secret_names: frozenset[str] | None = None
    instance_types: tuple[InstanceType, ...] | None = None
    prices: tuple[InstanceTypePrice, ...] | None = None
    capacity: TrainingCapacity | None = None
    team: Team | None = None
    teams: tuple[Team, ...] | None = None
    waiting: tuple[TrainingJob, ...] | None = None
    cache_gpu_types: frozenset[str] = frozenset()
    untold: tuple[tuple[str, str], ...] = ()


class _Inquiry:
    """Asks questions; what cannot be told is remembered, not raised."""

    def __init__(self) -> None:
        self.untold: list[tuple[str, str]] = []
        self._fatal: RequestError | None = None

    async def __call__(
        self, what: str, question: Callable[[], Awaitable[T]], *, wanted: bool = True
    ) -> T | None:
        """The answer; None if there is none, or if it is not wanted."""
        if not wanted:
            return None
        try:
            return await question()
        except RequestError as error:
            wrong_key = isinstance(error, Unauthorized) and error.status == HTTPStatus.UNAUTHORIZED
            if wrong_key or isinstance(error, Unreachable):
                self._fatal = self._fatal or error
            else:
                self.untold.append((what, str(error)))
            return None

    def raise_fatal(self) -> None:
        """Raise what makes all further questions useless, if there was such an error."""
        if self._fatal is not None:
            raise self._fatal


async def fetch_account_facts(
    client: AccountReader, request: JobRequest, *, project_name: str, team_name: str | None
) -> AccountFacts:
    """Ask what the rules need for this request, at once where possible.

    A route that the server lacks or refuses costs that fact alone. Raises Unreachable, and Unauthorized
    for a wrong key.
    """
    ask = _Inquiry()
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
    short = capacity is not None and any(room.is_short for room in rooms(request, capacity, team))
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
        untold=tuple(ask.untold),
    )


def chosen_team(teams: Iterable[Team], name: str | None) -> Team | None:
    """The team of that name, or the default one without a name."""
    for team in teams:
        if team.name == name or (name is None and team.default):
            return team
    return None


async def _waiting_jobs(client: AccountReader, request: JobRequest) -> list[TrainingJob]:
    """Jobs of the organisation that wait for GPUs of the wanted type."""
    found = await client.jobs.search(statuses=sorted(WAITING_STATUSES))
    return [
        job
        for job in found
        if job.current_status in WAITING_STATUSES
        and normal_gpu_type(job.instance_type.gpu_type or "") == request.gpu_type
    ]


async def _cache_gpu_types(client: AccountReader, project_name: str, team_name: str | None) -> frozenset[str]:
    """GPU types of the project's earlier jobs, if the project has a cache; else nothing.

    A project's cache lies on the cluster of its first job that used one (API facts, 5). Which cluster
    that is nobody tells; the GPU types of the jobs are the nearest hint.
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
