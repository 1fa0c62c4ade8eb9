"""``bt-tui resume``: the code of an ended job, its config changed, and a job that really goes on."""

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from api_client.emulator.processes import EmulatorChild
from api_client.models import TrainingJob
from support.archives import packed
from support.cli import RunCli
from support.deploying_server import listed_checkpoint
from support.fake_baseten import Answer, FakeBaseten, ReceivedRequest, job, line
from support.fake_object_store import FakeObjectStore
from tui.analysis.run.resumed import next_name
from tui.commands.support.output import ExitCode

CONFIG = """
import os
from truss_train import (
    CheckpointingConfig, Compute, Image, Runtime, TrainingJob, TrainingProject,
)
project = TrainingProject(
    name="llama-sft",
    job=TrainingJob(
        name="counter",
        image=Image(base_image="python:3.12"),
        compute=Compute(node_count=1),
        runtime=Runtime(
            start_commands=["bash run.sh"],
            checkpointing_config=CheckpointingConfig(enabled=True),
        ),
    ),
)
"""
TRAIN = """
first=$(cat "$BT_LOAD_CHECKPOINT_DIR"/rank-0/*/step 2>/dev/null || echo 0)
for step in $(seq $((first + 1)) $((first + 3))); do
  echo "step=$step/100 loss=1.$step"
  mkdir -p "$BT_CHECKPOINT_DIR/checkpoint-$step"
  echo $step > "$BT_CHECKPOINT_DIR/checkpoint-$step/step"
done
"""
CODE = {"config.py": CONFIG, "run.sh": TRAIN}


@pytest.mark.proves("docs/guard.md", "Resume")
def test_resumed_job_goes_on_from_the_checkpoint(
    cli: RunCli, emulator: EmulatorChild, tmp_path: Path
) -> None:
    environ = {**os.environ, **emulator.remote_environ(), "TZ": "UTC"}
    for name, text in CODE.items():
        (tmp_path / name).write_text(text)
    first = cli("push", str(tmp_path / "config.py"), "--tail", "-o", "json", environ=environ)
    job_id = first.ndjson[0]["training_job"]["id"]
    second = cli("resume", job_id, "--yes", "--tail", "-o", "json", environ=environ)
    created, *lines = second.ndjson
    assert created["training_job"]["name"] == "counter-r2"
    assert f"load_checkpoint_config: checkpoint-3 of job {job_id}" in second.err
    assert [line["message"].split("/")[0] for line in lines if "step=" in line["message"]] == [
        "step=4",
        "step=5",
        "step=6",
    ]
    progress = cli("progress", created["training_job"]["id"], "-o", "json", environ=environ).json
    assert progress["step"] == 6
    third = cli(
        "resume", created["training_job"]["id"], "--yes", "--from", "checkpoint-5", "--tail", environ=environ
    )
    assert "step=6/100" in third.out
    assert "step=5/100" not in third.out


@pytest.fixture
def store() -> Iterator[FakeObjectStore]:
    with FakeObjectStore() as store:
        yield store


@pytest.fixture
def serve(baseten: FakeBaseten, store: FakeObjectStore) -> Callable[..., None]:
    """Serve an ended job with its code and two stored checkpoints."""
    listings = (("checkpoint-1", "COMPLETE"), ("checkpoint-2", "COMPLETE"), ("checkpoint-3", "SYNCING"))
    checkpoints = [
        listed_checkpoint(name, created_at=f"2026-11-0{number}T00:00:00Z", sync_status=state)
        for number, (name, state) in enumerate(listings, 1)
    ]

    def serving(files: Mapping[str, str] = CODE, **fields: Any) -> None:
        status = str(fields.pop("status", "PREEMPTED"))
        baseten.jobs = [job("job1", status, name="counter", **fields)]
        baseten.on("GET", ".*/checkpoints", Answer({"checkpoints": checkpoints}))
        store.archive = packed({name: text.encode() for name, text in files.items()})
        baseten.on(
            "GET",
            ".*/download",
            Answer({"artifact_presigned_urls": [f"{store.objects_url}/archive?token={store.token}"]}),
        )

    return serving


@pytest.mark.usefixtures("no_waits")
def test_checkpoint_that_is_being_uploaded_is_waited_for(
    cli: RunCli, baseten: FakeBaseten, serve: Any
) -> None:
    serve()
    states = ["SYNCING", "SYNCING", "COMPLETE"]

    def checkpoints(_asked: ReceivedRequest) -> Answer:
        state = states.pop(0) if len(states) > 1 else states[0]
        listed = listed_checkpoint("checkpoint-9", created_at="2026-11-03T00:00:00Z", sync_status=state)
        return Answer({"checkpoints": [listed]})

    baseten.on("GET", ".*/checkpoints", checkpoints)
    result = cli(*DRY)
    assert "waiting for checkpoint-9, which is being uploaded" in result.err
    assert "load_checkpoint_config: checkpoint-9" in result.err


DRY = ("resume", "job1", "--yes", "--dry-run", "--skip-checks")


@pytest.mark.usefixtures("no_waits")
def test_dry_run_shows_what_would_be_sent(cli: RunCli, baseten: FakeBaseten, serve: Any) -> None:
    serve(node_count=2)
    result = cli(*DRY, "-o", "json")
    sent = result.json["training_job"]
    reference = sent["runtime"]["load_checkpoint_config"]["checkpoints"]
    assert reference == [
        {"checkpoint_name": "checkpoint-2", "job_id": "job1", "typ": "baseten_named_checkpoint"}
    ]
    assert (sent["name"], sent["compute"]["node_count"]) == ("counter-r2", 2)
    assert sent["compute"]["accelerator"] == {"accelerator": "H100", "count": 8}
    assert sorted(file["name"] for file in result.json["archive"]["files"]) == ["config.py", "run.sh"]
    assert "load_checkpoint_config: checkpoint-2 of job job1" in result.err
    assert not [asked for asked in baseten.asked if asked.method == "POST" and "search" not in asked.path]


@pytest.mark.usefixtures("no_waits")
@pytest.mark.proves("docs/guard.md", "Resume")
def test_checkpoint_from_before_the_loss_broke_is_proposed(
    cli: RunCli, baseten: FakeBaseten, serve: Any
) -> None:
    serve(created_at="2026-10-31T20:00:00Z", updated_at="2026-11-03T00:00:00Z")
    begin = datetime(2026, 10, 31, 20, tzinfo=UTC)
    baseten.logs["job1"] = [
        line(
            str({"loss": 2.0 if count < 60 else "nan", "grad_norm": 0.5}),
            at_ms=round((begin + timedelta(minutes=10 * count)).timestamp() * 1000),
        )
        for count in range(200)
    ]
    result = cli(*DRY)
    assert "load_checkpoint_config: checkpoint-1 of job job1" in result.err
    assert "not from checkpoint-2, written 18h 00m after the loss became NaN" in result.err
    assert "but from checkpoint-1, 6h 00m before the loss broke" in result.err
    assert "load_checkpoint_config: checkpoint-2" in cli(*DRY, "--from", "checkpoint-2").err


@pytest.mark.usefixtures("no_waits")
def test_code_that_never_reads_the_checkpoint_is_refused(
    cli: RunCli, baseten: FakeBaseten, serve: Any
) -> None:
    files = CODE | {"run.sh": "python train.py", "README.md": "reads $BT_LOAD_CHECKPOINT_DIR"}
    serve(files)
    refused = cli(*DRY, code=ExitCode.USAGE)
    assert "nothing in the code of job job1 reads $BT_LOAD_CHECKPOINT_DIR" in refused.err
    cli(*DRY, "--anyway")


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize(
    ("arguments", "fields", "code", "problem"),
    [
        ((), {"status": "RUNNING"}, ExitCode.USAGE, "has not ended"),
        (("--from", "checkpoint-3"), {}, ExitCode.NOT_FOUND, "it has: checkpoint-1, checkpoint-2"),
        (("--from", "best"), {}, ExitCode.NOT_FOUND, "job job1 has no best checkpoint: "),
        (("--config", "../../etc/passwd"), {}, ExitCode.NOT_FOUND, "has no file"),
    ],
)
def test_job_that_cannot_be_resumed_is_refused(
    cli: RunCli, serve: Any, arguments: tuple[str, ...], fields: Any, code: ExitCode, problem: str
) -> None:
    serve(**fields)
    result = cli(*DRY, *arguments, code=code)
    assert problem in result.err, result.err


@pytest.mark.usefixtures("no_waits")
def test_job_whose_successor_has_not_ended_is_refused(cli: RunCli, baseten: FakeBaseten, serve: Any) -> None:
    serve()
    baseten.jobs.append(job("job2", "RUNNING", name="counter-r2"))
    refused = cli("resume", "job1", "--yes", "--skip-checks", code=ExitCode.USAGE)
    assert "job job1 was resumed as job2, which has not ended" in refused.err
    cli(*DRY)
    baseten.jobs[1] |= {"current_status": "TRAINING_JOB_COMPLETED"}
    assert "would run twice" not in cli("resume", "job1", "--yes", "--skip-checks", code=7).err


@pytest.mark.usefixtures("no_waits")
@pytest.mark.proves("docs/guard.md", "Resume")
def test_job_is_resumed_in_its_project_whatever_the_config_names(
    cli: RunCli, baseten: FakeBaseten, serve: Any
) -> None:
    serve(CODE | {"config.py": CONFIG.replace('name="llama-sft"', 'name="elsewhere"')})
    result = cli(*DRY, "-o", "json")
    assert result.json["training_project"]["name"] == "llama-sft"
    assert "project: llama-sft replaces the config's elsewhere" in result.err


@pytest.mark.usefixtures("no_waits")
def test_config_that_fails_is_named_as_in_the_code_of_the_job(cli: RunCli, serve: Any) -> None:
    serve(CODE | {"config.py": f"import os\nopen(os.path.dirname(__file__) + '/lr.json')\n{CONFIG}"})
    failed = cli(*DRY, code=ExitCode.USAGE)
    assert "config.py:2 in the code of job job1: FileNotFoundError" in failed.err
    assert "'lr.json'" in failed.err
    assert "bt-tui-resume-" not in failed.err


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize(
    ("losses", "why"),
    [
        ({}, "the log reports no loss"),
        (
            {1: 2.0},
            "only checkpoint-1 has a loss to compare, loss 2.00 at step 1; --from checkpoint-1 uses it",
        ),
    ],
)
def test_reason_why_no_checkpoint_is_the_best_is_given(
    cli: RunCli, baseten: FakeBaseten, serve: Any, losses: dict[int, float], why: str
) -> None:
    serve(created_at="2026-10-31T20:00:00Z", updated_at="2026-11-03T00:00:00Z")
    begin = datetime(2026, 10, 31, 20, tzinfo=UTC)
    baseten.logs["job1"] = [
        line(f"step {step}/9 loss={loss}", at_ms=round((begin.timestamp() + step) * 1000))
        for step, loss in losses.items()
    ]
    result = cli(*DRY, "--from", "best", code=ExitCode.NOT_FOUND)
    assert why in result.err, result.err


@pytest.mark.usefixtures("no_waits")
def test_config_with_another_name_is_found_if_it_is_the_only_one(
    cli: RunCli, baseten: FakeBaseten, serve: Any
) -> None:
    serve({"jobs/mine.py": CONFIG, "run.sh": TRAIN})
    cli(*DRY)
    serve({"a.py": CONFIG, "b.py": CONFIG, "run.sh": TRAIN})
    assert "(a.py, b.py could be)" in cli(*DRY, code=ExitCode.USAGE).err
    cli(*DRY, "--config", "b.py")


@pytest.mark.usefixtures("no_waits")
def test_config_is_not_executed_without_consent(cli: RunCli, serve: Any, tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    serve(CODE | {"config.py": f"open({str(mark)!r}, 'w')\n{CONFIG}"})
    refused = cli("resume job1 --dry-run", code=ExitCode.USAGE)
    assert not mark.exists()
    assert "execute the config of job job1 on this machine?" in refused.err
    cli(*DRY)
    assert mark.exists()


@pytest.mark.parametrize(
    ("name", "expected"),
    [("llama", "llama-r2"), ("llama-r2", "llama-r3"), ("a-r9", "a-r10"), (None, "id1-r2")],
)
def test_name_of_a_resumed_job_counts_on(name: str | None, expected: str) -> None:
    assert next_name(TrainingJob(id="id1", current_status="TRAINING_JOB_FAILED", name=name)) == expected
