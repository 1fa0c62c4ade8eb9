"""Deployments over time: the official client and ours see them start, log, and outlive a restart."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from baseten.client import ManagementClient
from baseten.client.managementapi import _models as official_models

from support.deployment_requests import deployed, request_for
from support.faulty import FaultyServer
from support.served_platform import KEY, NOW, Served, served_platform

LORA = "checkpoint-100"
STAGES = ["BUILDING", "DEPLOYING", "LOADING_MODEL", "ACTIVE"]
NOW_MS = int(NOW.timestamp() * 1000)


@pytest.fixture
def ids(http: httpx.Client, served: Served) -> dict[str, str]:
    version = deployed(http, request_for((served.job_id, LORA)))
    return {"model_id": version["model_id"], "deployment_id": version["id"]}


def parameters(**fields: Any) -> Any:
    window = {"start_epoch_millis": NOW_MS, "end_epoch_millis": NOW_MS + 60_000, "direction": "asc"}
    return official_models.GetModelsDeploymentsLogsParams.model_validate({**window, **fields})


def later(served: Served, seconds: float) -> None:
    served.clock.moment = NOW + timedelta(seconds=seconds)


def test_the_official_client_reads_models_and_deployments(
    official: ManagementClient, served: Served, ids: dict[str, str]
) -> None:
    api = official.api
    (model,) = api.get_models().models
    assert model == api.get_models_model_id(model_id=ids["model_id"])
    assert (model.name, model.team_name, model.deployments_count) == ("fine-tuned-llm", "Research", 1)
    assert model.production_deployment_id == ids["deployment_id"]
    assert model.instance_type_name == "H100:2 52x468"
    team = next(team for team in api.get_teams().teams if team.default)
    assert api.get_teams_models(team_id=team.id).models == [model]
    elsewhere = served.platform.stores.teams.ensure("Elsewhere", NOW)
    assert api.get_teams_models(team_id=elsewhere.id).models == []
    named = official_models.GetModelsParams(name="of another name")
    assert api.get_models(params=named).models == []
    (deployment,) = api.get_models_deployments(model_id=ids["model_id"]).deployments
    assert deployment == api.get_models_deployments_deployment_id(**ids)
    assert deployment == api.get_models_deployments_production(model_id=ids["model_id"])
    assert (deployment.status, deployment.environment) == ("BUILDING", "production")
    config = api.get_models_deployments_config(**ids).config
    assert config is not None
    assert config["model_name"] == "fine-tuned-llm"


def test_a_deployment_walks_through_its_stages(
    official: ManagementClient, served: Served, ids: dict[str, str]
) -> None:
    seen: list[str] = []
    lines: list[int] = []
    for second in range(0, 20, 2):
        later(served, second)
        deployment = official.api.get_models_deployments_deployment_id(**ids)
        assert deployment.active_replica_count == (deployment.status == "ACTIVE")
        assert (deployment.autoscaling_settings is not None) == (deployment.status == "ACTIVE")
        seen.append(deployment.status)
        lines.append(len(official.api.get_models_deployments_logs(**ids, params=parameters()).logs))
    assert [stage for number, stage in enumerate(seen) if stage not in seen[:number]] == STAGES
    assert seen[0] == "BUILDING"
    assert lines == sorted(lines)
    assert len(set(lines)) > len(STAGES)
    later(served, -3600)
    assert official.api.get_models_deployments_deployment_id(**ids).status == "BUILDING"


def test_the_log_is_read_by_window_direction_and_filters(
    official: ManagementClient, http: httpx.Client, served: Served, ids: dict[str, str]
) -> None:
    later(served, 60)

    def read(**fields: Any) -> list[str]:
        logs = official.api.get_models_deployments_logs(**ids, params=parameters(**fields)).logs
        return [line.message for line in logs]

    everything = official.api.get_models_deployments_logs(**ids, params=parameters()).logs
    messages = [line.message for line in everything]
    stamps = [int(line.timestamp) for line in everything]
    assert stamps == sorted(stamps)
    assert "emulator" in messages[0]
    assert LORA in messages[-1]
    assert read(direction="desc") == messages[::-1]
    assert read(limit=2) == messages[:2]
    seam_ms = NOW_MS + 4000
    assert seam_ms * 1_000_000 in stamps
    assert read(end_epoch_millis=seam_ms) + read(start_epoch_millis=seam_ms) == messages
    assert read(min_level="ERROR") == []
    replicas = {line.replica for line in everything} - {None}
    assert [len(replica or "") for replica in replicas] == [5]
    assert 0 < len(read(replica=replicas.pop())) < len(messages)
    assert read(component="chainlet") == read(request_id="r") == []
    assert read(search_pattern="^Build.*d$") == ["Build finished"]
    assert read(includes=["Build", "finished"]) == ["Build finished"]
    assert "Build finished" not in read(excludes=["finished", "nothing"])
    asked = official_models.GetDeploymentLogsRequest(includes=["Build", "finished"])
    posted = official.api.post_models_deployments_logs(**ids, request=asked).logs
    assert [line.message for line in posted] == ["Build finished"]
    path = f"/v1/models/{ids['model_id']}/deployments/{ids['deployment_id']}/logs"
    for wrong in ({"search_pattern": "("}, {"search_pattern": "a" * 257}, {"limit": "0"}):
        assert http.get(path, params=wrong).status_code == 400
    assert http.post(path, json={"includes": ["a"] * 9}).status_code == 400


def test_a_secret_that_does_not_exist_is_in_the_log_by_name(
    official: ManagementClient, http: httpx.Client, served: Served
) -> None:
    official.api.post_secrets(request=official_models.UpsertSecretRequest(name="there", value="hush-hush"))
    environment = [
        {"name": name, "value": name.lower(), "is_secret_reference": True} for name in ("THERE", "MISSING")
    ] + [{"name": f"V{number}", "value": "v", "is_secret_reference": False} for number in range(100)]
    version = deployed(http, request_for((served.job_id, LORA), environment=environment))
    later(served, 60)
    ids = {"model_id": version["model_id"], "deployment_id": version["id"]}
    (warning,) = official.api.get_models_deployments_logs(**ids, params=parameters(min_level="WARNING")).logs
    assert "'missing'" in warning.message
    whole = official.api.get_models_deployments_logs(**ids, params=parameters(limit=1000))
    stamps = [int(line.timestamp) for line in whole.logs]
    assert len(stamps) > len(environment)
    assert stamps == sorted(stamps)
    config = official.api.get_models_deployments_config(**ids)
    assert "hush-hush" not in whole.model_dump_json() + config.model_dump_json()


def test_what_is_deleted_is_gone(
    official: ManagementClient, http: httpx.Client, served: Served, ids: dict[str, str]
) -> None:
    api = official.api
    assert api.delete_models_deployments(**ids).deleted
    assert api.get_models_model_id(model_id=ids["model_id"]).production_deployment_id is None
    path = f"/v1/models/{ids['model_id']}/deployments"
    assert http.get(f"{path}/{ids['deployment_id']}").status_code == 404
    link = http.get(f"/models/{ids['model_id']}/logs/{ids['deployment_id']}", headers={"Authorization": ""})
    assert (link.status_code, link.headers["content-type"][:10]) == (200, "text/plain"), "it leads somewhere"
    deployed(http, request_for((served.job_id, LORA)))
    assert api.delete_models(model_id=ids["model_id"]).deleted
    assert api.get_models().models == []
    assert http.get(path).status_code == 404


def test_a_deployment_goes_on_while_no_emulator_runs_and_without_its_job(
    front: FaultyServer, tmp_path: Path
) -> None:
    with httpx.Client(base_url=front.url, headers={"Authorization": f"Bearer {KEY}"}) as client:
        with served_platform(front, tmp_path) as before:
            version = deployed(client, request_for((before.job_id, LORA)))
            client.delete(f"/v1/training_projects/{before.project_id}").raise_for_status()
        path = f"/v1/models/{version['model_id']}/deployments/{version['id']}"
        with served_platform(front, tmp_path) as after:
            assert client.get(path).json()["status"] == "BUILDING"
            later(after, 60)
            assert client.get(path).json()["status"] == "ACTIVE"
            assert LORA in client.get(f"{path}/logs").json()["logs"][0]["message"]


def status(official: ManagementClient, ids: dict[str, str]) -> str:
    return str(official.api.get_models_deployments_deployment_id(**ids).status)


def test_a_deployment_is_stopped_and_started_again(
    official: ManagementClient, served: Served, ids: dict[str, str]
) -> None:
    api = official.api
    later(served, 60)
    assert api.post_models_deployments_activate(**ids).no_op
    before = len(api.get_models_deployments_logs(**ids, params=parameters(end_epoch_millis=None)).logs)
    stopped = api.post_models_deployments_deactivate(**ids)
    assert (stopped.success, stopped.no_op, status(official, ids)) == (True, False, "DEACTIVATING")
    later(served, 70)
    assert (status(official, ids), api.post_models_deployments_deactivate(**ids).no_op) == ("INACTIVE", True)
    assert not api.post_models_deployments_activate(**ids).no_op
    assert status(official, ids) == "DEPLOYING"
    later(served, 90)
    assert status(official, ids) == "ACTIVE"
    lines = api.get_models_deployments_logs(**ids, params=parameters(end_epoch_millis=None)).logs
    assert before < len(lines) < 2 * before  # the second start builds nothing
    assert not api.post_models_deployments_retry(**ids).retried
    window = official_models.GetModelsDeploymentsStartupsParams(
        start_epoch_millis=NOW_MS, end_epoch_millis=NOW_MS + 90_000
    )
    newest, first = api.get_models_deployments_startups(**ids, params=window).items
    assert newest.started_at_epoch_millis > first.started_at_epoch_millis
    assert (first.outcome, first.duration_ms) == ("SUCCESS", 11_000)
    assert sum(phase.duration_ms or 0 for phase in first.phase_summary) == first.duration_ms
    assert (
        official.api.get_models_deployments_startups(
            **ids, params=window.model_copy(update={"end_epoch_millis": NOW_MS})
        ).items
        == []
    )


def test_one_that_failed_is_retried_and_cannot_be_promoted(
    official: ManagementClient, http: httpx.Client, served: Served
) -> None:
    version = deployed(http, request_for((served.job_id, LORA), instance_type_id="cpu-4x16"))
    ids = {"model_id": version["model_id"], "deployment_id": version["id"]}
    path = f"/v1/models/{version['model_id']}/deployments/{version['id']}"
    later(served, 60)
    assert status(official, ids) == "DEPLOY_FAILED"
    assert [http.post(f"{path}/{each}", json={}).status_code for each in ("promote", "activate")] == [
        400,
        400,
    ]
    answer = official.api.post_models_deployments_retry(**ids)
    assert (answer.retried, answer.deployment.status) == (True, "BUILDING")
    window = official_models.GetModelsDeploymentsStartupsParams(
        start_epoch_millis=NOW_MS, end_epoch_millis=NOW_MS + 90_000
    )
    (attempt,) = official.api.get_models_deployments_startups(**ids, params=window).items
    assert (attempt.outcome, attempt.ready_at_epoch_millis) == ("FAILED", None)
    assert attempt.phase_summary[-1].status == "FAILED"


def test_a_promoted_deployment_is_the_only_one_in_production(
    official: ManagementClient, http: httpx.Client, served: Served, ids: dict[str, str]
) -> None:
    second = deployed(http, request_for((served.job_id, LORA)))
    promoted = official.api.post_models_deployments_promote(
        model_id=second["model_id"], deployment_id=second["id"], request=official_models.PromoteRequest()
    )
    assert (promoted.id, promoted.is_production, promoted.environment) == (second["id"], True, "production")
    found = official.api.get_models_deployments(model_id=ids["model_id"]).deployments
    assert [each.id for each in found if each.is_production] == [second["id"]]
