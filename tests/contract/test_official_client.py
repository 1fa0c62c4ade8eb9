"""The official client calls every training endpoint; its own models check the answers."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from baseten.client import ManagementClient
from baseten.client.managementapi import _models as official_models
from baseten.client.managementapi._client import ApiClient, ResponseError

from api_client.emulator.backend import StoredFile
from api_client.models import CachedFile, JobStatus, LogRecord
from support.fake_backend import START, START_MS
from support.served_platform import Served, counting_bytes

LINES: list[LogRecord] = [
    {"timestamp": f"{START_MS}000001", "message": "a line", "replica": "node-0", "level": "INFO"},
    {"timestamp": f"{START_MS}000002", "message": "another", "replica": None},
]
SPEC: dict[str, Any] = {
    "image": {"base_image": "python:3.11"},
    "compute": {"node_count": 2, "accelerator": {"accelerator": "H100", "count": 8}},
    "runtime": {"start_commands": ["python train.py"]},
    "interactive_session": {"trigger": "on_startup", "session_provider": "ssh"},
    "workspace": {"a field": "that the schema lacks"},
}


def request(name: str, /, **fields: Any) -> Any:
    return getattr(official_models, name).model_validate(fields)


def job_with_sessions(api: ApiClient, served: Served, **runtime: Any) -> dict[str, str]:
    spec = {**SPEC, "runtime": {**SPEC["runtime"], **runtime}}
    created = api.post_training_projects_jobs(
        training_project_id=served.project_id, request=request("CreateTrainingJobRequest", training_job=spec)
    )
    return {"training_project_id": served.project_id, "training_job_id": created.training_job.id}


def job_with_archive(api: ApiClient, served: Served) -> dict[str, str]:
    with served.platform.stores.blobs.receive("bt-emulator", "a key") as incoming:
        incoming.write(b"an archive")
        incoming.keep()
    return job_with_sessions(api, served, artifacts=[{"s3_bucket": "bt-emulator", "s3_key": "a key"}])


def call(api: ApiClient, served: Served, name: str) -> Any:
    """Call an endpoint with the ids of what there is and the request that is listed for it."""
    team = next(team.id for team in api.get_teams().teams if team.default)
    job = {"training_project_id": served.project_id, "training_job_id": served.job_id}
    if name in NEEDS_SESSIONS:
        job = job_with_sessions(api, served)
        session_id = api.get_training_projects_jobs_auth_codes(**job).auth_codes[0].session_id
        job["session_id"] = session_id
    if name == "get_training_projects_jobs_download":
        job = job_with_archive(api, served)
    known = {**job, "team_id": team}
    method = getattr(api, name)
    wanted = inspect.signature(method).parameters
    given = {key: value for key, value in known.items() if key in wanted}
    if name in REQUESTS:
        model, fields = REQUESTS[name]
        more = {"team_id": team} if model == "PatchTeamTrainingGpuCapacityRequest" else {}
        given["request"] = request(model, **fields, **more)
    if name == "get_billing_usage_summary":
        given["params"] = request("GetBillingUsageSummaryParams", start_date=START, end_date=START)
    return method(**given)


NEEDS_SESSIONS = (
    "get_training_projects_jobs_auth_codes",
    "patch_training_projects_jobs_interactive_sessions",
)
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDg0cGVyc29uYWxseSBtYWRlIHVwIGtleSBoZXJl me@here"
SECRET = ("UpsertSecretRequest", {"name": "hf", "value": "v"})
PROJECT = ("UpsertTrainingProjectRequest", {"training_project": {"name": "another"}})
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "patch_training_capacity": (
        "PatchTeamTrainingGpuCapacityRequest", {"gpu_type": "H100", "max_gpus": 3}),
    "patch_training_projects_jobs": (
        "UpdateTrainingJobRequest", {"priority": 7, "availability_model": "spot"}),
    "patch_training_projects_jobs_interactive_sessions": (
        "PatchInteractiveSessionRequest", {"timeout_minutes": -1}),
    "post_secrets": SECRET,
    "post_teams_secrets": SECRET,
    "post_teams_training_projects": PROJECT,
    "post_training_jobs_search": ("SearchTrainingJobsRequest", {"job_id": "job00001"}),
    "post_training_projects": PROJECT,
    "post_training_projects_jobs": ("CreateTrainingJobRequest", {"training_job": SPEC}),
    "post_training_projects_jobs_logs": ("GetTrainingJobLogsRequest", {"limit": 1000}),
    "post_training_projects_jobs_metrics": ("GetTrainingJobMetricsRequest", {"step_seconds": 10}),
    "post_training_projects_jobs_ssh_sign": (
        "SignSSHCertificateRequest", {"public_key": PUBLIC_KEY, "replica_id": "1"}),
    "post_training_projects_jobs_stop": ("StopTrainingJobRequest", {}),
}  # fmt: skip
TRAINING_CALLS = sorted(name for name in dir(ApiClient) if "training" in name and not name.startswith("_"))
NEIGHBOURS = (
    "get_billing_usage_summary", "get_blobs_credentials_train", "get_instance_types",
    "get_instance_type_prices", "get_models", "get_teams", "get_teams_team_id", "get_secrets",
    "get_users_me", "post_secrets", "get_teams_secrets", "post_teams_secrets",
)  # fmt: skip


@pytest.mark.parametrize("name", [*TRAINING_CALLS, *NEIGHBOURS])
def test_the_official_client_accepts_the_answer_of_every_training_endpoint(
    name: str, official: ManagementClient, served: Served
) -> None:
    backend = served.backend
    if name == "patch_training_projects_jobs":
        backend.set_status(served.job_id, JobStatus.PENDING)
    backend.lines[served.job_id] = LINES
    backend.stored_files[served.job_id] = [
        StoredFile("checkpoint-100/a file", 0, 10, START.isoformat(), generate=counting_bytes)
    ]
    backend.caches[served.project_id] = [
        CachedFile(path="hub/x", size_bytes=1, modified="now", file_type="file", permissions="-rw-r--r--")
    ]
    assert call(official.api, served, name) is not None


def test_a_recreated_job_has_its_archive_and_sessions(official: ManagementClient, served: Served) -> None:
    created = job_with_archive(official.api, served)
    twin = official.api.post_training_projects_jobs_recreate(**created).training_job
    job = {"training_project_id": served.project_id, "training_job_id": twin.id}
    assert len(official.api.get_training_projects_jobs_download(**job).artifact_presigned_urls) == 1
    codes = official.api.get_training_projects_jobs_auth_codes(**job).auth_codes
    assert [code.replica_id for code in codes] == ["g00r0", "g01r0"]


def test_session_timeouts_grow_and_startup_triggers_stay(official: ManagementClient, served: Served) -> None:
    job = job_with_sessions(official.api, served)
    session = official.api.get_training_projects_jobs_auth_codes(**job).auth_codes[0]

    def change(**fields: Any) -> Any:
        asked = request("PatchInteractiveSessionRequest", **fields)
        return official.api.patch_training_projects_jobs_interactive_sessions(
            **job, session_id=session.session_id, request=asked
        ).interactive_session

    assert (change(timeout_minutes=60).expires_at - session.expires_at).total_seconds() == 3600
    with pytest.raises(ResponseError) as caught:
        change(trigger="on_demand")
    assert caught.value.status_code == 400
