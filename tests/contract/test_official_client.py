"""The official client calls every training endpoint; its own models check the answers."""

from __future__ import annotations

from typing import Any

import pytest
from baseten.client import ManagementClient
from baseten.client.managementapi._client import ApiClient, ResponseError

from api_client.emulator.backend import StoredFile
from api_client.models import CachedFile, JobStatus, LogRecord
from support.fake_backend import START, START_MS
from support.official_calls import official_call
from support.served_platform import Served, counting_bytes

LINES: list[LogRecord] = [
    {"timestamp": f"{START_MS}000001", "message": "a line", "replica": "node-0", "level": "INFO"},
    {"timestamp": f"{START_MS}000002", "message": "another", "replica": None},
]
ARCHIVE = {"s3_bucket": "bt-emulator", "s3_key": "a key"}
SPEC: dict[str, Any] = {
    "image": {"base_image": "python:3.11"},
    "compute": {"node_count": 2, "accelerator": {"accelerator": "H100", "count": 8}},
    "runtime": {"start_commands": ["python train.py"], "artifacts": [ARCHIVE]},
    "interactive_session": {"trigger": "on_startup", "session_provider": "ssh"},
    "workspace": {"a field": "that the schema lacks"},
}
CODES = "get_training_projects_jobs_auth_codes"
DOWNLOAD = "get_training_projects_jobs_download"
SESSION = "patch_training_projects_jobs_interactive_sessions"
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDg0cGVyc29uYWxseSBtYWRlIHVwIGtleSBoZXJl me@here"
SECRET = {"name": "hf", "value": "v"}
PROJECT = {"training_project": {"name": "another"}}
REQUESTS: dict[str, dict[str, Any]] = {
    "get_billing_usage_summary": {"start_date": START, "end_date": START},
    "patch_training_capacity": {"gpu_type": "H100", "max_gpus": 3},
    "patch_training_projects_jobs": {"priority": 7, "availability_model": "spot"},
    SESSION: {"timeout_minutes": -1},
    "post_secrets": SECRET,
    "post_teams_secrets": SECRET,
    "post_teams_training_projects": PROJECT,
    "post_training_jobs_search": {"job_id": "job00001"},
    "post_training_projects": PROJECT,
    "post_training_projects_jobs": {"training_job": SPEC},
    "post_training_projects_jobs_logs": {"limit": 1000},
    "post_training_projects_jobs_metrics": {"step_seconds": 10},
    "post_training_projects_jobs_ssh_sign": {"public_key": PUBLIC_KEY, "replica_id": "1"},
}
TRAINING_CALLS = sorted(name for name in dir(ApiClient) if "training" in name and not name.startswith("_"))
NEIGHBOURS = (
    "get_billing_usage_summary", "get_blobs_credentials_train", "get_instance_types",
    "get_instance_type_prices", "get_models", "get_teams", "get_teams_team_id", "get_secrets",
    "get_users_me", "post_secrets", "get_teams_secrets", "post_teams_secrets",
)  # fmt: skip


def job_with_sessions(api: ApiClient, served: Served) -> dict[str, str]:
    """The ids of a job with an archive and a session, and of the session."""
    with served.platform.stores.blobs.receive(ARCHIVE["s3_bucket"], ARCHIVE["s3_key"]) as incoming:
        incoming.write(b"an archive")
        incoming.commit()
    ids = {"training_project_id": served.project_id}
    created = official_call(api, "post_training_projects_jobs", ids, training_job=SPEC)
    ids["training_job_id"] = created.training_job.id
    return ids | {"session_id": official_call(api, CODES, ids).auth_codes[0].session_id}


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
    team = next(team.id for team in official.api.get_teams().teams if team.default)
    ids = {"training_project_id": served.project_id, "training_job_id": served.job_id, "team_id": team}
    if name in (CODES, DOWNLOAD, SESSION):
        ids |= job_with_sessions(official.api, served)
    more = {"team_id": team} if name == "patch_training_capacity" else {}
    assert official_call(official.api, name, ids, **REQUESTS.get(name, {}), **more) is not None


def test_a_recreated_job_has_its_archive_and_sessions(official: ManagementClient, served: Served) -> None:
    ids = job_with_sessions(official.api, served)
    twin = official_call(official.api, "post_training_projects_jobs_recreate", ids).training_job
    ids["training_job_id"] = twin.id
    assert len(official_call(official.api, DOWNLOAD, ids).artifact_presigned_urls) == 1
    codes = official_call(official.api, CODES, ids).auth_codes
    assert [code.replica_id for code in codes] == ["g00r0", "g01r0"]


def test_session_timeouts_grow_and_startup_triggers_stay(official: ManagementClient, served: Served) -> None:
    ids = job_with_sessions(official.api, served)
    session = official_call(official.api, CODES, ids).auth_codes[0]
    longer = official_call(official.api, SESSION, ids, timeout_minutes=60).interactive_session
    assert (longer.expires_at - session.expires_at).total_seconds() == 3600
    with pytest.raises(ResponseError) as caught:
        official_call(official.api, SESSION, ids, trigger="on_demand")
    assert caught.value.status_code == 400
