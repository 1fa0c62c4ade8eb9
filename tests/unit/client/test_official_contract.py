"""Our requests beside those of the official client: same method, path, query and body.

The official client's are generated from the published description of the API.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from baseten.client import ManagementClient
from baseten.client.managementapi import _models as official
from client_support import make_remote

from api_client import RequestError, TrainingClient

MARCH = datetime(2026, 3, 1, tzinfo=UTC)
AWKWARD = "a/b c?d#é%2F"
JOB_BODY = {
    "image": {"base_image": "python:3.11"},
    "compute": {"node_count": 2, "cpu_count": 1, "memory": "2Gi"},
    "runtime": {"start_commands": ["true"]},
}


@dataclass(frozen=True)
class Sent:
    method: str
    path: bytes
    query: list[tuple[str, str]]
    body: Any

    @classmethod
    def from_request(cls, request: httpx.Request) -> Sent:
        return cls(
            request.method,
            request.url.raw_path.partition(b"?")[0],
            sorted(request.url.params.multi_items()),
            json.loads(request.content) if request.content else None,
        )


Ours = Callable[[TrainingClient], Awaitable[object]]
Theirs = Callable[[Any], object]

P, J = {"training_project_id": "p"}, {"training_project_id": "p", "training_job_id": "j"}
D = {"model_id": "m", "deployment_id": "d"}

CALLS: dict[str, tuple[Ours, Theirs]] = {
    "projects": (lambda c: c.projects.list(), lambda o: o.get_training_projects()),
    "project": (lambda c: c.projects.get("p"), lambda o: o.get_training_projects_training_project_id(**P)),
    "project-awkward": (
        lambda c: c.projects.get(AWKWARD),
        lambda o: o.get_training_projects_training_project_id(training_project_id=AWKWARD),
    ),
    "project-upsert": (
        lambda c: c.projects.upsert("name"),
        lambda o: o.post_training_projects(
            request=official.UpsertTrainingProjectRequest(training_project={"name": "name"})
        ),
    ),
    "project-upsert-team": (
        lambda c: c.projects.upsert("name", team_id="t"),
        lambda o: o.post_teams_training_projects(
            team_id="t", request=official.UpsertTrainingProjectRequest(training_project={"name": "name"})
        ),
    ),
    "project-delete": (lambda c: c.projects.delete("p"), lambda o: o.delete_training_projects(**P)),
    "jobs": (lambda c: c.jobs.list("p"), lambda o: o.get_training_projects_jobs(**P)),
    "job": (lambda c: c.jobs.get("p", "j"), lambda o: o.get_training_projects_jobs_training_job_id(**J)),
    "job-search": (
        lambda c: c.jobs.search(project_id="p", job_id="j", statuses=["TRAINING_JOB_RUNNING"]),
        lambda o: o.post_training_jobs_search(
            request=official.SearchTrainingJobsRequest(
                project_id="p",
                job_id="j",
                statuses=["TRAINING_JOB_RUNNING"],
                order_by=[official.OrderBy(field="created_at", order="desc")],
            )
        ),
    ),
    "job-create": (
        lambda c: c.jobs.create("p", JOB_BODY),
        lambda o: o.post_training_projects_jobs(
            **P, request=official.CreateTrainingJobRequest(training_job=JOB_BODY)
        ),
    ),
    "job-update": (
        lambda c: c.jobs.update("p", "j", priority=3),
        lambda o: o.patch_training_projects_jobs(**J, request=official.UpdateTrainingJobRequest(priority=3)),
    ),
    "job-update-zero": (
        lambda c: c.jobs.update("p", "j", priority=0, availability_model="spot"),
        lambda o: o.patch_training_projects_jobs(
            **J, request=official.UpdateTrainingJobRequest(priority=0, availability_model="spot")
        ),
    ),
    "job-stop": (
        lambda c: c.jobs.stop("p", "j"),
        lambda o: o.post_training_projects_jobs_stop(**J, request=official.StopTrainingJobRequest()),
    ),
    "job-recreate": (
        lambda c: c.jobs.recreate("p", "j"),
        lambda o: o.post_training_projects_jobs_recreate(**J),
    ),
    "job-delete": (lambda c: c.jobs.delete("p", "j"), lambda o: o.delete_training_projects_jobs(**J)),
    "job-download": (
        lambda c: c.jobs.download_urls("p", "j"),
        lambda o: o.get_training_projects_jobs_download(**J),
    ),
    "job-queue-context": (
        lambda c: c.jobs.queue_context("j"),
        lambda o: o.get_training_jobs_queue_context(training_job_id="j"),
    ),
    "logs": (
        lambda c: c.logs.page("p", "j", start_ms=1, end_ms=2, direction="desc", limit=7, min_level="ERROR"),
        lambda o: o.get_training_projects_jobs_logs(
            **J,
            params=official.GetTrainingProjectsJobsLogsParams(
                start_epoch_millis=1, end_epoch_millis=2, direction="desc", limit=7, min_level="ERROR"
            ),
        ),
    ),
    "metrics": (lambda c: c.metrics.get("p", "j"), lambda o: o.get_training_projects_jobs_metrics(**J)),
    "metrics-window": (
        lambda c: c.metrics.get("p", "j", start_ms=1, end_ms=2, step_s=3),
        lambda o: o.get_training_projects_jobs_metrics(
            **J,
            params=official.GetTrainingProjectsJobsMetricsParams(
                start_epoch_millis=1, end_epoch_millis=2, step_seconds=3
            ),
        ),
    ),
    "checkpoints": (
        lambda c: c.checkpoints.list("p", "j"),
        lambda o: o.get_training_projects_jobs_checkpoints(**J),
    ),
    "checkpoint-files": (
        lambda c: c.checkpoints.files_page("p", "j", page_size=5, page_token=10),
        lambda o: o.get_training_projects_jobs_checkpoint_files(
            **J, params=official.GetTrainingProjectsJobsCheckpointFilesParams(page_size=5, page_token=10)
        ),
    ),
    "cache": (lambda c: c.cache.summary("p"), lambda o: o.get_training_projects_cache_summary(**P)),
    "auth-codes": (
        lambda c: c.sessions.auth_codes("p", "j"),
        lambda o: o.get_training_projects_jobs_auth_codes(**J),
    ),
    "session-update": (
        lambda c: c.sessions.update("p", "j", "s", timeout_minutes=-1, trigger="on_startup"),
        lambda o: o.patch_training_projects_jobs_interactive_sessions(
            **J,
            session_id="s",
            request=official.PatchInteractiveSessionRequest(timeout_minutes=-1, trigger="on_startup"),
        ),
    ),
    "ssh-sign": (
        lambda c: c.sessions.sign_ssh("p", "j", public_key="ssh-ed25519 A", replica_id="0"),
        lambda o: o.post_training_projects_jobs_ssh_sign(
            **J, request=official.SignSSHCertificateRequest(public_key="ssh-ed25519 A", replica_id="0")
        ),
    ),
    "capacity": (lambda c: c.capacity.get(), lambda o: o.get_training_capacity()),
    "capacity-update": (
        lambda c: c.capacity.update(team_id="t", gpu_type="H100", max_gpus=8),
        lambda o: o.patch_training_capacity(
            request=official.PatchTeamTrainingGpuCapacityRequest(team_id="t", gpu_type="H100", max_gpus=8)
        ),
    ),
    "teams": (lambda c: c.account.teams(), lambda o: o.get_teams()),
    "me": (lambda c: c.account.me(), lambda o: o.get_users_me()),
    "instance-types": (lambda c: c.account.instance_types(), lambda o: o.get_instance_types()),
    "prices": (lambda c: c.account.instance_type_prices(), lambda o: o.get_instance_type_prices()),
    "bill": (
        lambda c: c.account.usage_summary(MARCH, MARCH + timedelta(days=31)),
        lambda o: o.get_billing_usage_summary(
            params=official.GetBillingUsageSummaryParams(
                start_date=MARCH, end_date=MARCH + timedelta(days=31)
            )
        ),
    ),
    "secrets": (lambda c: c.account.secrets(), lambda o: o.get_secrets()),
    "secrets-team": (lambda c: c.account.secrets("t"), lambda o: o.get_teams_secrets(team_id="t")),
    "secret-upsert": (
        lambda c: c.account.upsert_secret("n", "v"),
        lambda o: o.post_secrets(request=official.UpsertSecretRequest(name="n", value="v")),
    ),
    "secret-upsert-team": (
        lambda c: c.account.upsert_secret("n", "v", "t"),
        lambda o: o.post_teams_secrets(
            team_id="t", request=official.UpsertSecretRequest(name="n", value="v")
        ),
    ),
    "secret-delete": (lambda c: c.account.delete_secret("n"), lambda o: o.delete_secrets(secret_name="n")),
    "secret-delete-team": (
        lambda c: c.account.delete_secret("n", "t"),
        lambda o: o.delete_teams_secrets(team_id="t", secret_name="n"),
    ),
    "models": (lambda c: c.models.list(), lambda o: o.get_models()),
    "model": (lambda c: c.models.get("m"), lambda o: o.get_models_model_id(model_id="m")),
    "deployments": (lambda c: c.models.deployments("m"), lambda o: o.get_models_deployments(model_id="m")),
    "deployment": (
        lambda c: c.models.deployment("m", "d"),
        lambda o: o.get_models_deployments_deployment_id(model_id="m", deployment_id="d"),
    ),
    "deployment-logs": (
        lambda c: c.models.deployment_logs("m", "d", start_ms=1, end_ms=2, limit=3, replica="abcde"),
        lambda o: o.get_models_deployments_logs(
            model_id="m",
            deployment_id="d",
            params=official.GetModelsDeploymentsLogsParams(
                start_epoch_millis=1, end_epoch_millis=2, direction="asc", limit=3, replica="abcde"
            ),
        ),
    ),
    "deployment-promote": (
        lambda c: c.models.promote("m", "d"),
        lambda o: o.post_models_deployments_promote(**D, request=official.PromoteRequest()),
    ),
    "deployment-activate": (
        lambda c: c.models.activate("m", "d"),
        lambda o: o.post_models_deployments_activate(**D),
    ),
    "deployment-deactivate": (
        lambda c: c.models.deactivate("m", "d"),
        lambda o: o.post_models_deployments_deactivate(**D),
    ),
    "deployment-retry": (lambda c: c.models.retry("m", "d"), lambda o: o.post_models_deployments_retry(**D)),
    "deployment-config": (
        lambda c: c.models.config("m", "d"),
        lambda o: o.get_models_deployments_config(**D),
    ),
    "deployment-startups": (
        lambda c: c.models.startups("m", "d", start_ms=1, end_ms=2, limit=7),
        lambda o: o.get_models_deployments_startups(
            **D,
            params=official.GetModelsDeploymentsStartupsParams(
                start_epoch_millis=1, end_epoch_millis=2, limit=7
            ),
        ),
    ),
    "blobs": (lambda c: c.blobs.training_credentials(), lambda o: o.get_blobs_credentials_train()),
}


@pytest.mark.parametrize("name", CALLS)
async def test_the_same_request_as_the_official_client(name: str) -> None:
    ours, theirs = CALLS[name]
    sent: list[Sent] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(Sent.from_request(request))
        return httpx.Response(200, json={})

    remote, transport = make_remote(), httpx.MockTransport(answer)
    # What comes back is of no interest here: {} is no valid answer for either.
    async with TrainingClient(remote, http_transport=transport) as client:
        with contextlib.suppress(RequestError):
            await ours(client)
    our_request, http = sent.pop(), httpx.Client(base_url=remote.api_url, transport=transport)
    assert not sent
    with http, contextlib.suppress(ValueError):
        theirs(ManagementClient(api_key="", http_client_override=http).api)
    assert sent == [our_request]


def test_every_training_route_of_the_official_client_is_covered() -> None:
    """A newer official client with more training routes makes this fail: add them."""
    routes = {
        name
        for name in dir(ManagementClient(api_key="x").api)
        if name.split("_", 1)[0] in ("get", "post", "patch", "delete") and "training" in name
    }
    deprecated = {"post_training_projects_jobs_logs", "post_training_projects_jobs_metrics"}
    called: set[str] = set()

    class Recorder:
        def __getattr__(self, name: str) -> Callable[..., None]:
            called.add(name)
            return lambda **_: None

    for _, theirs in CALLS.values():
        theirs(Recorder())
    assert routes - deprecated == {name for name in called if "training" in name}
