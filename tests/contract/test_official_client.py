"""The official client calls every training endpoint; its own models check the answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from baseten.client import ManagementClient
from baseten.client.managementapi import _models as official_models
from baseten.client.managementapi._client import ApiClient, ResponseError

from api_client.emulator.backend import StoredFile
from api_client.models import CachedFile, JobStatus
from support.fake_backend import START, START_MS
from support.served_platform import Served, counting_bytes

Call = Callable[[ApiClient, Served], Any]

SPEC = {
    "image": {"base_image": "python:3.11"},
    "compute": {"node_count": 2, "accelerator": {"accelerator": "H100", "count": 8}},
    "runtime": {"start_commands": ["python train.py"]},
    "interactive_session": {"trigger": "on_startup", "session_provider": "ssh"},
    "workspace": {"a field": "that the schema lacks"},
}


def request(name: str, /, **fields: Any) -> Any:
    return getattr(official_models, name).model_validate(fields)


def where(served: Served) -> dict[str, str]:
    return {"training_project_id": served.project_id, "training_job_id": served.job_id}


def job_with_sessions(api: ApiClient, served: Served) -> dict[str, str]:
    created = api.post_training_projects_jobs(
        training_project_id=served.project_id, request=request("CreateTrainingJobRequest", training_job=SPEC)
    )
    return {"training_project_id": served.project_id, "training_job_id": created.training_job.id}


def first_session(api: ApiClient, job: dict[str, str]) -> Any:
    return api.get_training_projects_jobs_auth_codes(**job).auth_codes[0]


def patch_session(api: ApiClient, served: Served) -> Any:
    job = job_with_sessions(api, served)
    return api.patch_training_projects_jobs_interactive_sessions(
        **job,
        session_id=first_session(api, job).session_id,
        request=request("PatchInteractiveSessionRequest", timeout_minutes=-1),
    )


def update(api: ApiClient, served: Served) -> Any:
    served.backend.set_status(served.job_id, JobStatus.PENDING)
    changes = request("UpdateTrainingJobRequest", priority=7, availability_model="spot")
    return api.patch_training_projects_jobs(**where(served), request=changes)


def sign(api: ApiClient, served: Served) -> Any:
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDg0cGVyc29uYWxseSBtYWRlIHVwIGtleSBoZXJl me@here"
    asked = request("SignSSHCertificateRequest", public_key=key, replica_id="1")
    return api.post_training_projects_jobs_ssh_sign(**where(served), request=asked)


def download(api: ApiClient, served: Served) -> Any:
    with served.platform.stores.blobs.receive("bt-emulator", "a key") as incoming:
        incoming.write(b"an archive")
        incoming.keep()
    artifacts = [{"s3_bucket": "bt-emulator", "s3_key": "a key"}]
    spec = {**SPEC, "runtime": {**SPEC["runtime"], "artifacts": artifacts}}  # type: ignore[dict-item]
    created = api.post_training_projects_jobs(
        training_project_id=served.project_id, request=request("CreateTrainingJobRequest", training_job=spec)
    )
    return api.get_training_projects_jobs_download(
        training_project_id=served.project_id, training_job_id=created.training_job.id
    )


def cache(api: ApiClient, served: Served) -> Any:
    served.backend.caches[served.project_id] = [
        CachedFile(path="hub/x", size_bytes=1, modified="now", file_type="file", permissions="-rw-r--r--")
    ]
    return api.get_training_projects_cache_summary(training_project_id=served.project_id)


def checkpoint_files(api: ApiClient, served: Served) -> Any:
    served.backend.stored_files[served.job_id] = [
        StoredFile("checkpoint-100/a file", 0, 10, START.isoformat(), generate=counting_bytes)
    ]
    return api.get_training_projects_jobs_checkpoint_files(**where(served))


def default_team_id(api: ApiClient) -> str:
    return next(team.id for team in api.get_teams().teams if team.default)


def upsert_in_team(api: ApiClient, served: Served) -> Any:
    wanted = request("UpsertTrainingProjectRequest", training_project={"name": "in a team"})
    return api.post_teams_training_projects(team_id=default_team_id(api), request=wanted)


def logs(api: ApiClient, served: Served) -> Any:
    served.backend.lines[served.job_id] = [
        {"timestamp": f"{START_MS}000001", "message": "a line", "replica": "node-0", "level": "INFO"},
        {"timestamp": f"{START_MS}000002", "message": "another", "replica": None},
    ]
    window = request(
        "GetTrainingProjectsJobsLogsParams", start_epoch_millis=START_MS, end_epoch_millis=START_MS + 1
    )
    return api.get_training_projects_jobs_logs(**where(served), params=window)


TRAINING_CALLS: dict[str, Call] = {
    "delete_training_projects": lambda api, s: api.delete_training_projects(training_project_id=s.project_id),
    "delete_training_projects_jobs": lambda api, s: api.delete_training_projects_jobs(**where(s)),
    "get_training_capacity": lambda api, s: api.get_training_capacity(),
    "get_training_jobs_queue_context": lambda api, s: api.get_training_jobs_queue_context(
        training_job_id=s.job_id
    ),
    "get_training_projects": lambda api, s: api.get_training_projects(),
    "get_training_projects_cache_summary": cache,
    "get_training_projects_jobs": lambda api, s: api.get_training_projects_jobs(
        training_project_id=s.project_id
    ),
    "get_training_projects_jobs_auth_codes": lambda api, s: api.get_training_projects_jobs_auth_codes(
        **job_with_sessions(api, s)
    ),
    "get_training_projects_jobs_checkpoint_files": checkpoint_files,
    "get_training_projects_jobs_checkpoints": lambda api, s: api.get_training_projects_jobs_checkpoints(
        **where(s)
    ),
    "get_training_projects_jobs_download": download,
    "get_training_projects_jobs_logs": logs,
    "get_training_projects_jobs_metrics": lambda api, s: api.get_training_projects_jobs_metrics(**where(s)),
    "get_training_projects_jobs_training_job_id": lambda api, s: (
        api.get_training_projects_jobs_training_job_id(**where(s))
    ),
    "get_training_projects_training_project_id": lambda api, s: api.get_training_projects_training_project_id(
        training_project_id=s.project_id
    ),
    "patch_training_capacity": lambda api, s: api.patch_training_capacity(
        request=request(
            "PatchTeamTrainingGpuCapacityRequest", team_id=default_team_id(api), gpu_type="H100", max_gpus=3
        )
    ),
    "patch_training_projects_jobs": update,
    "patch_training_projects_jobs_interactive_sessions": patch_session,
    "post_teams_training_projects": upsert_in_team,
    "post_training_jobs_search": lambda api, s: api.post_training_jobs_search(
        request=request("SearchTrainingJobsRequest", job_id=s.job_id)
    ),
    "post_training_projects": lambda api, s: api.post_training_projects(
        request=request("UpsertTrainingProjectRequest", training_project={"name": "another"})
    ),
    "post_training_projects_jobs": job_with_sessions,
    "post_training_projects_jobs_logs": lambda api, s: api.post_training_projects_jobs_logs(
        **where(s), request=request("GetTrainingJobLogsRequest", limit=1000)
    ),
    "post_training_projects_jobs_metrics": lambda api, s: api.post_training_projects_jobs_metrics(
        **where(s), request=request("GetTrainingJobMetricsRequest", step_seconds=10)
    ),
    "post_training_projects_jobs_recreate": lambda api, s: api.post_training_projects_jobs_recreate(
        **where(s)
    ),
    "post_training_projects_jobs_ssh_sign": sign,
    "post_training_projects_jobs_stop": lambda api, s: api.post_training_projects_jobs_stop(
        **where(s), request=request("StopTrainingJobRequest")
    ),
}

NEIGHBOURS: dict[str, Call] = {
    "get_blobs_credentials_train": lambda api, s: api.get_blobs_credentials_train(),
    "get_instance_types": lambda api, s: api.get_instance_types(),
    "get_instance_type_prices": lambda api, s: api.get_instance_type_prices(),
    "get_models": lambda api, s: api.get_models(),
    "get_teams": lambda api, s: api.get_teams(),
    "get_teams_team_id": lambda api, s: api.get_teams_team_id(team_id=default_team_id(api)),
    "get_secrets": lambda api, s: api.get_secrets(),
    "get_users_me": lambda api, s: api.get_users_me(),
    "post_secrets": lambda api, s: api.post_secrets(
        request=request("UpsertSecretRequest", name="hf", value="v")
    ),
    "get_teams_secrets": lambda api, s: api.get_teams_secrets(team_id=default_team_id(api)),
    "post_teams_secrets": lambda api, s: api.post_teams_secrets(
        team_id=default_team_id(api), request=request("UpsertSecretRequest", name="hf", value="v")
    ),
}


def test_every_training_endpoint_of_the_official_client_is_called() -> None:
    published = {name for name in dir(ApiClient) if "training" in name and not name.startswith("_")}
    assert published == set(TRAINING_CALLS)


@pytest.mark.parametrize("name", [*TRAINING_CALLS, *NEIGHBOURS])
def test_the_official_client_accepts_the_answer(
    name: str, official: ManagementClient, served: Served
) -> None:
    assert {**TRAINING_CALLS, **NEIGHBOURS}[name](official.api, served) is not None


def test_the_answers_say_what_was_asked(official: ManagementClient, served: Served) -> None:
    api = official.api
    (project,) = api.get_training_projects().training_projects
    assert project.latest_job is not None
    assert (project.name, project.team_name, project.latest_job.id) == (
        "llama-sft",
        "Research",
        served.job_id,
    )
    assert project.latest_job.node_count == 2
    assert [line.message for line in logs(api, served).logs] == ["another", "a line"]
    assert update(api, served).training_job.priority == 7
    assert served.backend.job(served.job_id).availability_model == "spot"
    served.backend.set_status(served.job_id, JobStatus.RUNNING)
    stopped = api.post_training_projects_jobs_stop(**where(served), request=request("StopTrainingJobRequest"))
    assert stopped.training_job.current_status == JobStatus.STOPPED
    usage = api.get_training_projects_jobs_metrics(**where(served))
    assert [node.node_id for node in usage.per_node_metrics] == ["node-0", "node-1"]
    assert usage.ephemeral_storage.usage_bytes == []


def test_upsert_by_name_makes_one_project(official: ManagementClient) -> None:
    wanted = request("UpsertTrainingProjectRequest", training_project={"name": "llama-sft"})
    first = official.api.post_training_projects(request=wanted).training_project
    second = official.api.post_training_projects(request=wanted).training_project
    assert first.id == second.id
    assert len(official.api.get_training_projects().training_projects) == 1


def test_deleting_a_project_deletes_its_jobs(official: ManagementClient, served: Served) -> None:
    official.api.delete_training_projects(training_project_id=served.project_id)
    assert served.backend.jobs() == []
    assert official.api.get_training_projects().training_projects == []
    with pytest.raises(ResponseError) as caught:
        official.api.get_training_projects_jobs(training_project_id=served.project_id)
    assert caught.value.status_code == 404


def test_a_recreated_job_has_its_archive_and_sessions(official: ManagementClient, served: Served) -> None:
    download(official.api, served)
    created = max(served.backend.by_id.keys() - {served.job_id})
    twin = official.api.post_training_projects_jobs_recreate(
        training_project_id=served.project_id, training_job_id=created
    ).training_job
    job = {"training_project_id": served.project_id, "training_job_id": twin.id}
    assert len(official.api.get_training_projects_jobs_download(**job).artifact_presigned_urls) == 1
    codes = official.api.get_training_projects_jobs_auth_codes(**job).auth_codes
    assert [code.replica_id for code in codes] == ["g00r0", "g01r0"]


def test_session_timeouts_grow_and_startup_triggers_stay(official: ManagementClient, served: Served) -> None:
    job = job_with_sessions(official.api, served)
    session = first_session(official.api, job)
    answer = official.api.patch_training_projects_jobs_interactive_sessions(
        **job,
        session_id=session.session_id,
        request=request("PatchInteractiveSessionRequest", timeout_minutes=60),
    )
    assert (answer.interactive_session.expires_at - session.expires_at).total_seconds() == 3600
    with pytest.raises(ResponseError) as caught:
        official.api.patch_training_projects_jobs_interactive_sessions(
            **job,
            session_id=session.session_id,
            request=request("PatchInteractiveSessionRequest", trigger="on_demand"),
        )
    assert caught.value.status_code == 400
