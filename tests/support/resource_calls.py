"""Every request that a client can be asked for, on a platform that has what it asks for."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import httpx

from api_client import InvalidAnswer, NotFound, Remote, TrainingClient
from api_client.deployment.sending import DEPLOY_FIELD, DEPLOY_MUTATION
from api_client.emulator.backend import StoredFile
from api_client.models import CachedFile, JobStatus
from support.deployment_requests import request_for
from support.fake_backend import START, START_MS
from support.remotes import remote_of
from support.served_platform import Served, counting_bytes

PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDg0cGVyc29uYWxseSBtYWRlIHVwIGtleSBoZXJl me@here"
JOB = {
    "name": "made",
    "image": {"base_image": "python:3.11"},
    "runtime": {"start_commands": ["true"]},
    "interactive_session": {"trigger": "on_demand"},
}
WAITING = "waiting1"
QUERY = "query { organization { workspace_name } }"


@dataclass(frozen=True)
class World:
    """A platform before a call, and the ids of what is in it."""

    served: Served
    team_id: str
    model: tuple[str, str]
    session_job: str
    session: str
    deployment: dict[str, Any]

    def project_to_delete(self) -> str:
        """The id of a project to delete."""
        platform = self.served.platform
        return platform.upsert_project("doomed", platform.team(self.team_id)).id

    @property
    def job(self) -> tuple[str, str]:
        return self.served.project_id, self.served.job_id

    def renew(self) -> None:
        served = self.served
        known = {served.job_id, self.session_job}
        served.backend.by_id = {name: job for name, job in served.backend.by_id.items() if name in known}
        served.backend.set_status(served.job_id, JobStatus.RUNNING)
        served.backend.add(WAITING, served.project_id, JobStatus.PENDING)


NAMES_ALONE = cast(
    World,
    SimpleNamespace(
        served=SimpleNamespace(project_id="proj1", job_id="job1"),
        team_id="team1",
        model=("model1", "dep1"),
        session_job="job1",
        session="session1",
        deployment={},
        project_to_delete=lambda: "proj1",
    ),
)
"""Ids for calls that no platform answers."""

NOWHERE = Remote("nowhere", "https://app.invalid", "https://api.invalid", key=None, key_origin="a test")
Call = Callable[[TrainingClient, World], Awaitable[object]]
MUTATION = "graphql.execute, a mutation"
NOT_HERE = {"logs.fill", "blobs.upload"}
"""Calls of something that a stream or an upload has first; their matrices have them."""


def arguments(world: World) -> dict[str, dict[str, object]]:
    """What is given by the names of parameters: to any call, and besides or instead to a part or a call."""
    (model_id, deployment_id), start_ms = world.model, START_MS
    return {
        "any": {
            **{"project_id": world.served.project_id, "job_id": world.served.job_id, "training_job": JOB},
            **{"model_id": model_id, "deployment_id": deployment_id, "checkpoint_id": "checkpoint-100"},
            **{"team_id": world.team_id, "gpu_type": "H100", "max_gpus": 64},
            **{"start": START, "end": START, "start_ms": start_ms, "end_ms": start_ms + 60_000},
            **{"name": "hf", "value": "value", "query": QUERY, "public_key": PUBLIC_KEY},
        },
        "projects.delete": {"project_id": world.project_to_delete},
        "jobs.update": {"job_id": WAITING, "priority": 3},
        "jobs.delete": {"job_id": WAITING},
        "sessions": {"job_id": world.session_job, "session_id": world.session},
        "sessions.update": {"timeout_minutes": 1},
        "sessions.sign_ssh": {"replica_id": "0"},
        MUTATION: {"query": DEPLOY_MUTATION, "variables": {"request": world.deployment}},
    }


def call_of(name: str, options: Mapping[str, object] = MappingProxyType({})) -> Call:
    """Return the call of a method, with what it must be given and those of the options that it takes."""
    part, _, method = name.partition(",")[0].partition(".")

    async def call(client: TrainingClient, world: World) -> object:
        bound, by_name = getattr(getattr(client, part), method), arguments(world)
        chosen = by_name.get(part, {}) | by_name.get(name, {}) | dict(options)
        values = by_name["any"] | chosen
        given = {
            each: values[each]
            for each, parameter in inspect.signature(bound).parameters.items()
            if parameter.default is inspect.Parameter.empty or each in chosen
        }
        answer = bound(**{each: value() if callable(value) else value for each, value in given.items()})
        return [each async for each in answer] if inspect.isasyncgen(answer) else await answer

    return call


def parts_of(client: TrainingClient) -> dict[str, object]:
    """Each public part of a client by its name, those created on first use included."""
    on_first_use = {
        name for name, member in vars(TrainingClient).items() if isinstance(member, cached_property)
    }
    names = vars(client).keys() | on_first_use
    return {name: getattr(client, name) for name in names if not name.startswith("_")}


def requesting_methods() -> Iterator[str]:
    """Yield the methods of the client that send one request, or the few of a list."""
    for part, resource in sorted(parts_of(TrainingClient(NOWHERE)).items()):
        if type(resource).__module__.startswith(("api_client.resources", "api_client.transfers.uploads")):
            for method, function in vars(type(resource)).items():
                is_one = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
                if is_one and not method.startswith("_") and f"{part}.{method}" not in NOT_HERE:
                    yield f"{part}.{method}"


CALLS: dict[str, Call] = {name: call_of(name) for name in (*requesting_methods(), MUTATION)}


def recorded(**options: Any) -> tuple[TrainingClient, list[httpx.Request]]:
    """Return a client whose requests are answered with an empty object, and its requests."""
    sent: list[httpx.Request] = []
    transport = httpx.MockTransport(lambda request: sent.append(request) or httpx.Response(200, json={}))
    return TrainingClient(NOWHERE, http_transport=transport, **options), sent


async def sent_by(call: Call, **options: Any) -> list[httpx.Request]:
    """Return the requests of a call, whatever it makes of the answers."""
    client, sent = recorded(**options)
    async with client:
        with suppress(InvalidAnswer, NotFound):
            await call(client, NAMES_ALONE)
    return sent


def _is_change(request: httpx.Request) -> bool:
    may_read = request.method == "GET" or request.url.path in ("/v1/training_jobs/search", "/graphql/")
    return not may_read or b"mutation" in request.content


CHANGING = {name for name, call in CALLS.items() if any(map(_is_change, asyncio.run(sent_by(call))))}
"""Those that change something, judged by what they send."""
READING = CALLS.keys() - CHANGING


async def prepared_world(served: Served) -> World:
    """The platform with a deployment and a job with a session, made through its API."""
    async with TrainingClient(remote_of(served)) as client:
        request = request_for((served.job_id, "checkpoint-100"))
        deployed = (await client.graphql.execute(DEPLOY_MUTATION, {"request": request}))[DEPLOY_FIELD]
        version = deployed["model_version"]
        made = await client.jobs.create(served.project_id, JOB)
        (code,) = await client.sessions.auth_codes(served.project_id, made.id)
        (team,) = await client.account.teams()
    with served.platform.stores.blobs.receive("bucket", "code.tgz") as incoming:
        incoming.write(b"an archive")
        incoming.commit()
    served.backend.add_archive(served.job_id, "bucket", "code.tgz")
    served.backend.caches[served.project_id] = [CachedFile(path="hub/model.bin", size_bytes=3)]
    served.backend.stored_files[served.job_id] = [
        StoredFile(f"checkpoint-100/{number}", 0, 9, START.isoformat(), generate=counting_bytes)
        for number in range(2)
    ]
    ids = version["model_id"], version["id"]
    return World(served, team.id, ids, made.id, code.session_id, request)
