"""Our requests beside those of the official client: same method, path, query and body."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from baseten.client import ManagementClient
from client_support import make_remote

from api_client import RequestError, TrainingClient
from support.official_calls import official_call

MONTH = {"start_date": datetime(2026, 3, 1, tzinfo=UTC), "end_date": datetime(2026, 4, 1, tzinfo=UTC)}
AWKWARD = "a/b c?d#é%2F"
JOB_BODY = {
    "image": {"base_image": "python:3.11"},
    "compute": {"node_count": 2, "cpu_count": 1, "memory": "2Gi"},
    "runtime": {"start_commands": ["true"]},
}
J, D, W = ("p", "j"), ("m", "d"), {"start_ms": 1, "end_ms": 2}
SEARCH = {"project_id": "p", "job_id": "j", "statuses": ["TRAINING_JOB_RUNNING"]}
UPDATE = {"priority": 0, "availability_model": "spot"}
LINES = {"direction": "desc", "limit": 7, "min_level": "ERROR"}
PAGE = {"page_size": 5, "page_token": 10}
TIMEOUT = {"timeout_minutes": -1, "trigger": "on_startup"}
SIGNED = {"public_key": "ssh-ed25519 A", "replica_id": "0"}
LIMIT = {"team_id": "t", "gpu_type": "H100", "max_gpus": 8}
REPLICA = {"limit": 3, "replica": "abcde"}
IDS = {
    **{"training_project_id": "p", "training_job_id": "j", "session_id": "s"},
    **{"model_id": "m", "deployment_id": "d", "team_id": "t", "secret_name": "n"},
}
WINDOW = {"start_epoch_millis": 1, "end_epoch_millis": 2}
STEPS, LOGS = WINDOW | {"step_seconds": 3}, WINDOW | REPLICA | {"direction": "asc"}
SESSIONS = "patch_training_projects_jobs_interactive_sessions"
NEWEST = {"order_by": [{"field": "created_at", "order": "desc"}]}
PROJECT = {"training_project": {"name": "name"}}
Call = tuple[Callable[[TrainingClient], Awaitable[object]], str, dict[str, Any]]


CALLS: list[Call] = [
    (lambda c: c.projects.list(), "get_training_projects", {}),
    (lambda c: c.projects.get("p"), "get_training_projects_training_project_id", {}),
    (lambda c: c.projects.get(AWKWARD), "get_training_projects_training_project_id", {"id": AWKWARD}),
    (lambda c: c.projects.upsert("name"), "post_training_projects", PROJECT),
    (lambda c: c.projects.upsert("name", team_id="t"), "post_teams_training_projects", PROJECT),
    (lambda c: c.projects.delete("p"), "delete_training_projects", {}),
    (lambda c: c.jobs.list("p"), "get_training_projects_jobs", {}),
    (lambda c: c.jobs.get(*J), "get_training_projects_jobs_training_job_id", {}),
    (lambda c: c.jobs.search(**SEARCH), "post_training_jobs_search", SEARCH | NEWEST),
    (lambda c: c.jobs.create("p", JOB_BODY), "post_training_projects_jobs", {"training_job": JOB_BODY}),
    (lambda c: c.jobs.update(*J, priority=3), "patch_training_projects_jobs", {"priority": 3}),
    (lambda c: c.jobs.update(*J, **UPDATE), "patch_training_projects_jobs", UPDATE),
    (lambda c: c.jobs.stop(*J), "post_training_projects_jobs_stop", {}),
    (lambda c: c.jobs.recreate(*J), "post_training_projects_jobs_recreate", {}),
    (lambda c: c.jobs.delete(*J), "delete_training_projects_jobs", {}),
    (lambda c: c.jobs.download_urls(*J), "get_training_projects_jobs_download", {}),
    (lambda c: c.jobs.queue_context("j"), "get_training_jobs_queue_context", {}),
    (lambda c: c.logs.page(*J, **W, **LINES), "get_training_projects_jobs_logs", WINDOW | LINES),
    (lambda c: c.metrics.get(*J), "get_training_projects_jobs_metrics", {}),
    (lambda c: c.metrics.get(*J, **W, step_s=3), "get_training_projects_jobs_metrics", STEPS),
    (lambda c: c.checkpoints.list(*J), "get_training_projects_jobs_checkpoints", {}),
    (lambda c: c.checkpoints.files_page(*J, **PAGE), "get_training_projects_jobs_checkpoint_files", PAGE),
    (lambda c: c.cache.summary("p"), "get_training_projects_cache_summary", {}),
    (lambda c: c.sessions.auth_codes(*J), "get_training_projects_jobs_auth_codes", {}),
    (lambda c: c.sessions.update(*J, "s", **TIMEOUT), SESSIONS, TIMEOUT),
    (lambda c: c.sessions.sign_ssh(*J, **SIGNED), "post_training_projects_jobs_ssh_sign", SIGNED),
    (lambda c: c.capacity.get(), "get_training_capacity", {}),
    (lambda c: c.capacity.update(**LIMIT), "patch_training_capacity", LIMIT),
    (lambda c: c.account.teams(), "get_teams", {}),
    (lambda c: c.account.me(), "get_users_me", {}),
    (lambda c: c.account.instance_types(), "get_instance_types", {}),
    (lambda c: c.account.instance_type_prices(), "get_instance_type_prices", {}),
    (lambda c: c.account.usage_summary(*MONTH.values()), "get_billing_usage_summary", MONTH),
    (lambda c: c.account.secrets(), "get_secrets", {}),
    (lambda c: c.account.secrets("t"), "get_teams_secrets", {}),
    (lambda c: c.account.upsert_secret("n", "v"), "post_secrets", {"name": "n", "value": "v"}),
    (lambda c: c.account.upsert_secret("n", "v", "t"), "post_teams_secrets", {"name": "n", "value": "v"}),
    (lambda c: c.account.delete_secret("n"), "delete_secrets", {}),
    (lambda c: c.account.delete_secret("n", "t"), "delete_teams_secrets", {}),
    (lambda c: c.models.list(), "get_models", {}),
    (lambda c: c.models.get("m"), "get_models_model_id", {}),
    (lambda c: c.models.deployments("m"), "get_models_deployments", {}),
    (lambda c: c.models.deployment(*D), "get_models_deployments_deployment_id", {}),
    (lambda c: c.models.deployment_logs(*D, **W, **REPLICA), "get_models_deployments_logs", LOGS),
    (lambda c: c.models.promote(*D), "post_models_deployments_promote", {}),
    (lambda c: c.models.activate(*D), "post_models_deployments_activate", {}),
    (lambda c: c.models.deactivate(*D), "post_models_deployments_deactivate", {}),
    (lambda c: c.models.retry(*D), "post_models_deployments_retry", {}),
    (lambda c: c.models.config(*D), "get_models_deployments_config", {}),
    (lambda c: c.models.startups(*D, **W, limit=7), "get_models_deployments_startups", WINDOW | {"limit": 7}),
    (lambda c: c.blobs.training_credentials(), "get_blobs_credentials_train", {}),
]


@pytest.mark.parametrize(("ours", "theirs", "fields"), CALLS, ids=[name for _, name, _ in CALLS])
async def test_the_same_request_as_the_official_client(ours: Any, theirs: str, fields: Any) -> None:
    sent: list[tuple[object, ...]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        path, query = request.url.raw_path.partition(b"?")[0], sorted(request.url.params.multi_items())
        sent.append((request.method, path, query, json.loads(request.content or b"null")))
        return httpx.Response(200, json={})

    remote, transport = make_remote(), httpx.MockTransport(answer)
    # What comes back is of no interest here: {} is no valid answer for either.
    async with TrainingClient(remote, http_transport=transport) as client:
        with contextlib.suppress(RequestError):
            await ours(client)
    ids = IDS | ({"training_project_id": fields["id"]} if "id" in fields else {})
    with httpx.Client(base_url=remote.api_url, transport=transport) as http, contextlib.suppress(ValueError):
        api = ManagementClient(api_key="", http_client_override=http).api
        official_call(api, theirs, ids, **{each: fields[each] for each in fields if each != "id"})
    our_request, their_request = sent
    assert our_request == their_request


def test_every_training_route_of_the_official_client_is_covered() -> None:
    """A newer official client with more training routes makes this fail: add them."""
    verbs = ("get_", "post_", "patch_", "delete_")
    names = dir(ManagementClient(api_key="x").api)
    routes = {name for name in names if name.startswith(verbs) and "training" in name}
    deprecated = {"post_training_projects_jobs_logs", "post_training_projects_jobs_metrics"}
    assert routes - deprecated == {theirs for _, theirs, _ in CALLS if "training" in theirs}
