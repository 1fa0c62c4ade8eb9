"""push, recreate, stop and workstation: asked, answered at a terminal, and the whole way on an emulator.

``golden/workstation.json`` was recorded from the official CLI by ``tests/support/record_official.py``.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from api_client.emulator.processes import EmulatorChild
from api_client.ssh import parse_host
from api_client.submission.workstation import workstation_hosts
from support.cli import RunCli
from support.deploying_server import listed_checkpoint
from support.fake_baseten import Answer, FakeBaseten, ReceivedRequest, job
from support.terminal import AtTerminal

CONFIG = """
from truss_train import TrainingProject, TrainingJob, Image, Compute, Runtime, SecretReference
from truss.base.truss_config import AcceleratorSpec

print("words of the config")
project = TrainingProject(
    name="llama-sft",
    job=TrainingJob(
        name="first",
        image=Image(base_image="python:3.12"),
        compute=Compute(accelerator=AcceleratorSpec(accelerator="H100", count=8)),
        runtime=Runtime(
            start_commands=["bash run.sh"],
            environment_variables={"HF_TOKEN": SecretReference(name="hf")},
        ),
    ),
)
"""
NODE = {
    **{"id": "h", "name": "H100:8", "gpu_type": "H100", "gpu_count": 8},
    **{"millicpu_limit": 1, "memory_limit_mib": 1},
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config for eight GPUs that asks for a secret, in a folder with what it runs."""
    folder = tmp_path / "code"
    folder.mkdir()
    for name, text in (("config.py", CONFIG), ("run.sh", "echo hi\n"), ("debug.log", "old words")):
        (folder / name).write_text(text)
    return folder / "config.py"


@pytest.fixture
def account(baseten: FakeBaseten) -> FakeBaseten:
    """The server tells of its account, where all is well."""
    capacity = {"gpu_type": "H100", "baseline": 8, "limit": 64, "usage_count": 0}
    for name, body in {
        "teams": {"teams": [{"id": "t", "name": "Research", "default": True}]},
        "instance_types": {"instance_types": [NODE]},
        "instance_type_prices": {"instance_types": [{"instance_type": NODE, "price": 0.5}]},
        "training/capacity": {"gpu_capacities": [capacity], "team_gpu_capacities": []},
        "secrets": {"secrets": [{"name": "hf", "id": "s"}]},
    }.items():
        baseten.on("GET", f"/v1/{name}", Answer(body))
    return baseten


@pytest.mark.proves("docs/commands.md", "Submit a job")
def test_a_dry_run_shows_all_and_sends_nothing(cli: RunCli, account: FakeBaseten, config: Path) -> None:
    result = cli("push", str(config), "--dry-run", "-o", "json")
    document = result.json
    assert document["training_project"] == {"name": "llama-sft"}
    sent = document["training_job"]
    assert sent["compute"]["accelerator"] == {"accelerator": "H100", "count": 8}
    assert sent["runtime"]["environment_variables"] == {"HF_TOKEN": {"name": "hf"}}
    assert sent["truss_user_env"]["python_version"]
    archive = document["archive"]
    assert [each["name"] for each in archive["files"]] == ["config.py", "run.sh"]
    assert archive["files"][1]["size_bytes"] == len("echo hi\n")
    assert [each["name"] for each in archive["dropped"]] == ["debug.log"]
    assert "*.log" in archive["dropped"][0]["reason"]
    assert [each["severity"] for each in document["findings"]] == ["warning", "info", "info"]
    assert {"severity", "field", "problem", "remedy"} == set(document["findings"][0])
    assert [each.method for each in account.asked if each.method != "GET"] == []
    assert "words of the config" in result.err
    shown = cli("push", str(config), "--dry-run").out
    for words in ("bash run.sh", "debug.log", "left out", "about $30.00 per hour"):
        assert words in shown


def test_options_win_over_the_config(cli: RunCli, account: FakeBaseten, config: Path) -> None:
    result = cli(
        *("push", str(config), "--dry-run", "-o", "json", "--job-name", "second", "--team", "Research"),
        *("--accelerator", "H100:4", "--node-count", "2", "--entrypoint", "python x", "--priority", "3"),
        *("--spot", "--interactive", "on_failure", "--interactive-timeout-minutes", "30"),
    )
    document = result.json
    sent = document["training_job"]
    assert document["training_project"] == {"name": "llama-sft", "team_name": "Research"}
    assert (sent["name"], sent["priority"]) == ("second", 3)
    assert sent["compute"]["accelerator"] == {"accelerator": "H100", "count": 4}
    assert (sent["compute"]["node_count"], sent["compute"]["availability_model"]) == (2, "spot")
    assert sent["runtime"]["start_commands"] == ["python x"]
    session = sent["interactive_session"]
    assert (session["trigger"], session["timeout_minutes"]) == ("on_failure", 30)
    assert "replaces" in result.err


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize("url", ["", "http://127.0.0.1:9"])
def test_a_dry_run_without_a_server_leaves_the_account_out(cli: RunCli, config: Path, url: str) -> None:
    variables = ("BASETEN_API_KEY", "BASETEN_REMOTE_URL", "BASETEN_MANAGEMENT_API_URL_OVERRIDE")
    result = cli("push", str(config), "--dry-run", "-o", "json", environ=dict.fromkeys(variables, url))
    (finding,) = [each for each in result.json["findings"] if each["field"] == "account"]
    assert "not checked" in finding["problem"]


def test_errors_stop_it_unless_checks_are_skipped(cli: RunCli, account: FakeBaseten, config: Path) -> None:
    account.on("GET", "/v1/secrets", Answer({"secrets": []}))
    account.on("GET", "/v1/blobs/credentials/train", Answer({"message": "no uploads for you"}, status=403))
    assert "no uploads for you" in cli("push", str(config), "--skip-checks", code=6).err
    (config.parent / "run.sh").unlink()
    result = cli("push", str(config), "--yes", code=2)
    for words in ("run.sh is not in the archive", "has no secret 'hf'", "not submitted: 2 errors"):
        assert words in result.err
    for options, code in (((), 2), (("-o", "json"), 2), (("--skip-checks",), 0)):
        dry = cli("push", str(config), "--dry-run", *options, code=code)
        assert ("2 errors would block this submission" in dry.err) == (code == 2)
    for flags in (("--accelerator", "h100"), ("--node-count", "0"), ("--team", "Nobody")):
        wrong = cli("push", str(config), *flags, code=2)
        assert flags[1] in wrong.err
    assert account.changed_paths == []


RISKY = """
from truss_train import TrainingProject, TrainingJob, Image, Compute, Runtime
job = TrainingJob(
    image=Image(base_image="a"), compute=Compute(node_count=2), runtime=Runtime(start_commands=["echo hello"])
)
project = TrainingProject(name="risky", job=job)
"""
QUESTION = "submit anyway?"


@pytest.fixture
def risky(tmp_path: Path) -> Path:
    """Two nodes without checkpoints: something to be asked about."""
    path = tmp_path / "config.py"
    path.write_text(RISKY)
    return path


def test_a_no_sends_nothing(
    cli: RunCli, baseten: FakeBaseten, typed: Callable[[str], None], risky: Path
) -> None:
    baseten.on("GET", "/v1/teams", Answer({"teams": []}))
    typed("n")
    result = cli("push", str(risky), code=130)
    assert result.out == ""
    assert "checkpointing is off for 2" in result.err and QUESTION in result.err
    assert {each.method for each in baseten.asked} == {"GET"}


def test_a_yes_sends_it_and_progress_is_drawn_and_wiped(emulator: EmulatorChild, risky: Path) -> None:
    environ = {**os.environ, **emulator.remote_environ(), "COLUMNS": "100", "TERM": "xterm"}
    with AtTerminal("push", str(risky), environ=environ, output_apart=True) as push:
        push.answers((QUESTION, b"y\n"))
        code, out = push.end(), push.output
    assert (code, b"risky" in out, b"\x1b" in out) == (0, True, False)
    assert b"--follow" in push.shown
    assert "━".encode() in push.shown
    assert b"\r\x1b[K" in push.shown.split(b"uploading")[-1]


@pytest.mark.proves("README.md", "The emulator")
@pytest.mark.proves("docs/commands.md", "Submit a job")
def test_from_the_starter_project_to_the_end(cli: RunCli, emulator: EmulatorChild, tmp_path: Path) -> None:
    """A job that works and one that fails."""
    environ = {**os.environ, **emulator.remote_environ(), "TZ": "UTC", "COLUMNS": "100"}
    folder = tmp_path / "quick"
    cli("init", str(folder))
    shorter = (folder / "config.py").read_text().replace('"STEPS": "2000"', '"STEPS": "200"')
    (tmp_path / "bad").mkdir()
    for each in (folder, tmp_path / "bad"):
        (each / "config.py").write_text(shorter)
    (tmp_path / "bad" / "run.sh").write_text("echo so far so good\nexit 9\n")
    good = cli("push", str(folder / "config.py"), "--tail", environ=environ)
    bad = cli("push", str(tmp_path / "bad" / "config.py"), "--tail", "-o", "json", environ=environ, code=3)
    steps = [line.split(" step ")[1].split()[0] for line in good.out.splitlines() if " step " in line]
    assert steps == ["50/200", "100/200", "150/200", "200/200"]
    assert "ended: completed" in good.err
    assert "\x1b" not in good.out + good.err
    created, *lines = bad.ndjson
    assert created["training_project"]["name"] == "cpu-quickstart"
    assert created["training_job"]["name"] == "first-run"
    assert "so far so good" in [line["message"] for line in lines]
    assert "ended: failed" in bad.err
    assert "9" in bad.err.splitlines()[-1]


@pytest.mark.proves("docs/commands.md", "Submit a job")
def test_stop_names_the_job_and_says_what_it_did(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = [job("job1", "RUNNING"), job("job2", "COMPLETED")]
    baseten.on("POST", "/v1/.*/job1/stop", Answer({"training_job": job("job1", "STOPPED")}))
    result = cli("stop job1 --job-id job2")
    assert result.out == "job1\n"
    assert "job job2 has already ended" in result.err
    assert baseten.changed_paths == ["/v1/training_projects/proj1/jobs/job1/stop"]
    baseten.on("POST", "/v1/.*/job1/stop", Answer({"message": "bad gateway"}, status=502))
    unsure = cli("stop job1", code=8)
    assert "it may have taken effect" in unsure.err
    assert "job job1 may not have been stopped: " in unsure.err


@pytest.mark.usefixtures("no_waits")
@pytest.mark.proves("docs/commands.md", "Submit a job")
def test_a_job_is_stopped_after_its_next_checkpoint(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = [job("job1", "RUNNING"), job("job2", "RUNNING")]
    cli("stop job1 job2 --after-checkpoint", code=2)
    listed: list[dict[str, Any]] = []

    def checkpoints(_asked: ReceivedRequest) -> Answer:
        assert baseten.changed_paths == [], "it is not stopped before"
        listed.append(listed_checkpoint(f"checkpoint-{len(listed)}", sync_status="SYNCING"))
        if len(listed) > 5:
            listed[-1]["sync_status"] = "COMPLETE"
        return Answer({"checkpoints": listed})

    baseten.on("GET", "/v1/.*/job1/checkpoints", checkpoints)
    baseten.on("POST", "/v1/.*/job1/stop", Answer({"training_job": job("job1", "STOPPED")}))
    result = cli("stop job1 --after-checkpoint")
    assert result.out == "job1\n"
    assert "ctrl-c leaves the job running" in result.err and "stored checkpoint-5" in result.err
    assert baseten.changed_paths == ["/v1/training_projects/proj1/jobs/job1/stop"]


def test_stop_all_goes_on_past_one_that_cannot_be_stopped(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = [job("job1", "RUNNING"), job("job2", "PENDING"), job("job3", "FAILED")]
    baseten.on("POST", "/v1/.*/job1/stop", Answer({"message": "it is just ending"}, status=409))
    baseten.on("POST", "/v1/.*/job2/stop", Answer({"training_job": job("job2", "STOPPED")}))
    result = cli("stop --all --yes -o json", code=1)
    assert [each["id"] for each in result.json] == ["job2"]
    assert "it is just ending" in result.err


def test_nothing_in_particular_is_neither_stopped_nor_made_again(cli: RunCli, baseten: FakeBaseten) -> None:
    for command, statuses, code in (
        ("stop", "RUNNING COMPLETED", 2),
        ("stop --yes", "COMPLETED", 7),
        ("stop --yes", "RUNNING RUNNING", 2),
        ("stop nonesuch", "RUNNING", 7),
        ("recreate", "FAILED", 2),
    ):
        baseten.jobs = [job(f"job{number}", status) for number, status in enumerate(statuses.split())]
        cli(command, code=code)
        assert baseten.changed_paths == [], command


@pytest.mark.proves("docs/commands.md", "Submit a job")
def test_recreate_takes_the_newest_and_is_sent_once(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = [
        job("old", "FAILED", created_at="2025-01-01T00:00:00Z"),
        job("new", "FAILED", created_at="2025-06-01T00:00:00Z"),
    ]
    baseten.on("POST", "/v1/.*/recreate", Answer({"training_job": job("newest", "CREATED")}))
    assert "newest" in cli("recreate --yes").out
    assert baseten.changed_paths == ["/v1/training_projects/proj1/jobs/new/recreate"]
    baseten.on("POST", "/v1/.*/recreate", Answer({"message": "oops"}, status=500))
    unsure = cli("recreate old", code=8)
    assert (len(baseten.changed_paths), "check bt-tui jobs" in unsure.err) == (2, True)


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
    document = result.json
    assert document["training_job"].pop("truss_user_env")["truss_client_version"].startswith("bt-tui")
    assert document["training_job"] == expected
    assert document["training_project"] == record["training_project"]
    assert document["archive"]["files"] == []


def test_a_dry_run_for_reading(cli: RunCli, baseten: FakeBaseten) -> None:
    kept_nowhere = ("workstation", "--checkpoint-path", "/mnt/ckpts", "--dry-run")
    result = cli(*kept_nowhere)
    assert "sleep infinity" in result.out and "archive: 0 files" in result.out
    assert "WHY" not in result.out
    assert "--enable-checkpointing" in result.err
    assert "--enable-checkpointing" not in cli(*kept_nowhere, "--enable-checkpointing").err
    teams = [{"id": "t", "name": "Research", "default": True}]
    baseten.on("GET", "/v1/teams", Answer({"teams": teams}))
    assert "Research" in cli("workstation --team Nobody", code=2).err
    assert {each.method for each in baseten.asked} == {"GET"}


@pytest.mark.usefixtures("in_folder")
def test_from_submitting_to_stopping_on_an_emulator(cli: RunCli, emulator: EmulatorChild) -> None:
    official = RECORDED[0]["printed"]
    environ = emulator.remote_environ()
    started = cli("workstation --skip-checks -o json", environ=environ)
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
    assert len(cli("sessions", job_id, "-o", "json", environ=environ).json) == 1
    cli("stop", job_id, "--yes", environ=environ)


@pytest.mark.parametrize("name", ["baseten", "my-lab_2", "<environment>", "two words"])
def test_hosts_name_the_remote_where_ssh_can_find_it_by_that(name: str) -> None:
    (first,) = workstation_hosts("j1", 1, remote_name=name)
    assert first.name == f"training-job-j1-0.{'my-lab_2.' if name == 'my-lab_2' else ''}ssh.baseten.co"
    assert parse_host(first.name) == first
