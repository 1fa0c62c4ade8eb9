"""Every request that a client can be asked for, on a platform that has what it asks for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any, cast

from api_client import TrainingClient
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
MADE_BY_CREATE, WAITING = "made", "waiting1"
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
        job=("proj1", "job1"),
        team_id="team1",
        model=("model1", "dep1"),
        session_job="job1",
        session="session1",
        deployment={},
        project_to_delete=lambda: "proj1",
    ),
)
"""Ids for calls that no platform answers."""

Call = Callable[[TrainingClient, World], Awaitable[object]]


async def _files(client: TrainingClient, world: World) -> object:
    return [file async for file in client.checkpoints.files(*world.job)]


READING: dict[str, Call] = {
    "projects.list": lambda c, w: c.projects.list(),
    "projects.get": lambda c, w: c.projects.get(w.served.project_id),
    "jobs.list": lambda c, w: c.jobs.list(w.served.project_id),
    "jobs.search": lambda c, w: c.jobs.search(job_id=w.served.job_id),
    "jobs.get": lambda c, w: c.jobs.get(*w.job),
    "jobs.find": lambda c, w: c.jobs.find(w.served.job_id),
    "jobs.download_urls": lambda c, w: c.jobs.download_urls(*w.job),
    "jobs.queue_context": lambda c, w: c.jobs.queue_context(w.served.job_id),
    "logs.page": lambda c, w: c.logs.page(*w.job, start_ms=START_MS, end_ms=START_MS + 60_000),
    "metrics.get": lambda c, w: c.metrics.get(*w.job),
    "checkpoints.list": lambda c, w: c.checkpoints.list(*w.job),
    "checkpoints.files_page": lambda c, w: c.checkpoints.files_page(*w.job),
    "checkpoints.files": _files,
    "checkpoints.files_of": lambda c, w: c.checkpoints.files_of(*w.job, "checkpoint-100"),
    "cache.summary": lambda c, w: c.cache.summary(w.served.project_id),
    "cache.listing": lambda c, w: c.cache.listing(w.served.project_id),
    "sessions.auth_codes": lambda c, w: c.sessions.auth_codes(w.served.project_id, w.session_job),
    "capacity.get": lambda c, w: c.capacity.get(),
    "account.teams": lambda c, w: c.account.teams(),
    "account.me": lambda c, w: c.account.me(),
    "account.instance_types": lambda c, w: c.account.instance_types(),
    "account.instance_type_prices": lambda c, w: c.account.instance_type_prices(),
    "account.usage_summary": lambda c, w: c.account.usage_summary(START, START),
    "account.secrets": lambda c, w: c.account.secrets(),
    "models.list": lambda c, w: c.models.list(),
    "models.get": lambda c, w: c.models.get(w.model[0]),
    "models.deployments": lambda c, w: c.models.deployments(w.model[0]),
    "models.deployment": lambda c, w: c.models.deployment(*w.model),
    "models.deployment_logs": lambda c, w: c.models.deployment_logs(
        *w.model, start_ms=START_MS, end_ms=START_MS + 1
    ),
    "models.config": lambda c, w: c.models.config(*w.model),
    "models.startups": lambda c, w: c.models.startups(*w.model, start_ms=START_MS, end_ms=START_MS + 1),
    "blobs.training_credentials": lambda c, w: c.blobs.training_credentials(),
    "graphql.execute": lambda c, w: c.graphql.execute(QUERY),
}
CHANGING: dict[str, Call] = {
    "projects.upsert": lambda c, w: c.projects.upsert("llama-sft"),
    "projects.delete": lambda c, w: c.projects.delete(w.project_to_delete()),
    "jobs.create": lambda c, w: c.jobs.create(w.served.project_id, JOB),
    "jobs.update": lambda c, w: c.jobs.update(w.served.project_id, WAITING, priority=3),
    "jobs.stop": lambda c, w: c.jobs.stop(*w.job),
    "jobs.recreate": lambda c, w: c.jobs.recreate(*w.job),
    "jobs.delete": lambda c, w: c.jobs.delete(w.served.project_id, WAITING),
    "sessions.update": lambda c, w: c.sessions.update(
        w.served.project_id, w.session_job, w.session, timeout_minutes=1
    ),
    "sessions.sign_ssh": lambda c, w: c.sessions.sign_ssh(
        w.served.project_id, w.session_job, public_key=PUBLIC_KEY, replica_id="0"
    ),
    "capacity.update": lambda c, w: c.capacity.update(team_id=w.team_id, gpu_type="H100", max_gpus=64),
    "models.promote": lambda c, w: c.models.promote(*w.model),
    "models.activate": lambda c, w: c.models.activate(*w.model),
    "models.deactivate": lambda c, w: c.models.deactivate(*w.model),
    "models.retry": lambda c, w: c.models.retry(*w.model),
    "account.upsert_secret": lambda c, w: c.account.upsert_secret("hf", "value"),
    "account.delete_secret": lambda c, w: c.account.delete_secret("hf"),
    "account.log_out": lambda c, w: c.account.log_out(),
    "graphql.execute, a mutation": lambda c, w: c.graphql.execute(DEPLOY_MUTATION, {"request": w.deployment}),
}


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
        incoming.keep()
    served.backend.add_archive(served.job_id, "bucket", "code.tgz")
    served.backend.caches[served.project_id] = [CachedFile(path="hub/model.bin", size_bytes=3)]
    served.backend.stored_files[served.job_id] = [
        StoredFile(f"checkpoint-100/{number}", 0, 9, START.isoformat(), generate=counting_bytes)
        for number in range(2)
    ]
    ids = version["model_id"], version["id"]
    return World(served, team.id, ids, made.id, code.session_id, request)


def parts_of(client: TrainingClient) -> dict[str, object]:
    """Each public part of a client by its name, those created on first use included."""
    on_first_use = {
        name for name, member in vars(TrainingClient).items() if isinstance(member, cached_property)
    }
    names = vars(client).keys() | on_first_use
    return {name: getattr(client, name) for name in names if not name.startswith("_")}
