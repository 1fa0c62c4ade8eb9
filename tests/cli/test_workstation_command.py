"""workstation: what is sent and printed equals what the official CLI sends and prints.

``golden/workstation.json`` was recorded from it by ``tests/support/record_official.py``.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from api_client.emulator.processes import EmulatorChild
from api_client.ssh import parse_host
from api_client.submission.workstation import workstation_hosts
from support.cli import RunCli
from support.fake_baseten import Answer, FakeBaseten

RECORDED = json.loads((Path(__file__).parent / "golden" / "workstation.json").read_text())
SLURM_COMMAND = "bash /b10/workspace/setup_slurm.sh"


@pytest.mark.parametrize("record", RECORDED, ids=lambda record: " ".join(record["arguments"]) or "nothing")
@pytest.mark.proves("docs/commands.md", "`workstation`")
def test_it_is_sent_as_the_official_cli_sends_it(cli: RunCli, record: dict[str, Any]) -> None:
    expected = record["training_job"]
    expected = expected | {"runtime": expected["runtime"] | {"artifacts": []}}  # given out with the upload
    arguments = [word for word in record["arguments"] if word not in ("--team", "Research")]
    if record["printed"]["node_count"] > 1:
        # The one difference: nodes are left as they are where the official CLI installs SLURM.
        assert expected["runtime"]["start_commands"] == [SLURM_COMMAND]
        expected["runtime"]["start_commands"] = ["sleep infinity"]
        arguments += ["--orchestrator", "none"]
    result = cli("workstation", *arguments, "--dry-run", "-o", "json", environ={"BASETEN_API_KEY": ""})
    assert result.code == 0
    document = result.json
    assert document["training_job"].pop("truss_user_env")["truss_client_version"].startswith("bt-tui")
    assert document["training_job"] == expected
    assert document["training_project"] == record["training_project"]
    assert document["archive"]["files"] == []


def test_a_dry_run_for_reading(cli: RunCli, baseten: FakeBaseten) -> None:
    kept_nowhere = ("workstation", "--checkpoint-path", "/mnt/ckpts", "--dry-run")
    result = cli(*kept_nowhere)
    assert result.code == 0
    assert "sleep infinity" in result.out and "archive: 0 files" in result.out
    assert "WHY" not in result.out
    assert "--enable-checkpointing" in result.err
    assert "--enable-checkpointing" not in cli(*kept_nowhere, "--enable-checkpointing").err
    teams = [{"id": "t", "name": "Research", "default": True}]
    baseten.on("GET", "/v1/teams", Answer({"teams": teams}))
    unknown = cli("workstation --team Nobody")
    assert (unknown.code, "Research" in unknown.err) == (2, True)
    assert {each.method for each in baseten.asked} == {"GET"}


@pytest.mark.usefixtures("in_folder")
def test_from_submitting_to_stopping_on_an_emulator(cli: RunCli, emulator: EmulatorChild) -> None:
    official = RECORDED[0]["printed"]
    environ = emulator.remote_environ()
    started = cli("workstation --skip-checks -o json", environ=environ)
    assert started.code == 0
    document = started.json
    job_id = document["job_id"]
    assert document.keys() == official.keys()
    assert document["project"].keys() == official["project"].keys()
    for name in ("accelerator", "gpu_count", "node_count", "orchestrator"):
        assert document[name] == official[name]
    assert (document["project"]["name"], document["job"]["id"]) == ("workstation-H100", job_id)
    host = f"training-job-{job_id}-0.ssh.baseten.co"
    assert document["nodes"] == [{"rank": 0, "hostname": host, "is_leader": True}]
    assert document["nodes"][0].keys() == official["nodes"][0].keys()
    for words in (f"bt-tui ssh {job_id};", f"ssh {host}", f"bt-tui stop {job_id}"):
        assert words in started.err
    sessions = cli("sessions", job_id, "-o", "json", environ=environ).json
    assert len(sessions) == 1
    assert cli("stop", job_id, "--yes", environ=environ).code == 0


@pytest.mark.parametrize("name", ["baseten", "my-lab_2", "<environment>", "two words"])
def test_hosts_name_the_remote_where_ssh_can_find_it_by_that(name: str) -> None:
    (first,) = workstation_hosts("j1", 1, remote_name=name)
    assert first.name == f"training-job-j1-0.{'my-lab_2.' if name == 'my-lab_2' else ''}ssh.baseten.co"
    assert parse_host(first.name) == first
