"""bt-tui checkpoints list, files, show, urls and snippet, against a server and a store not of ours."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from api_client.client import TrainingClient
from support.cli import RunCli
from support.deploying_server import listed_checkpoint
from support.fake_baseten import Answer, FakeBaseten, ReceivedRequest, job
from support.fake_object_store import FakeObjectStore, Stored
from support.fake_runs import finished_run, iso
from support.remotes import remote_of
from tui.analysis.checkpoints.facts import facts_of_run
from tui.readers.watcher import read_checked_run

JOB = "/v1/training_projects/proj1/jobs/job1"
LIST = ("checkpoints", "list", "job1")
SHOW = ("checkpoints", "show", "checkpoint-200", "--job-id", "job1")
TENSORS = {
    "__metadata__": {"format": "pt"},
    "big": {"dtype": "BF16", "shape": [100, 50], "data_offsets": [0, 10_000]},
    "small": {"dtype": "F32", "shape": [4], "data_offsets": [10_000, 10_016]},
}


def safetensors(tensors: dict[str, object], data_bytes: int) -> bytes:
    header = json.dumps(tensors).encode()
    return len(header).to_bytes(8, "little") + header + bytes(data_bytes)


def checkpoint(name: str, hour: int, **more: object) -> dict[str, object]:
    return listed_checkpoint(name, "full", created_at=f"2026-03-01T{hour:02}:00:00Z", size_bytes=10) | more


@pytest.fixture
def store() -> Iterator[FakeObjectStore]:
    losses = ((100, "eval_loss", 1.5), (200, "eval_loss", 1.9), (200, "loss", float("nan")))
    history = [{"step": step, name: value} for step, name, value in losses]
    state = {"global_step": 200, "log_history": history}
    files = {
        "checkpoint-200/model.safetensors": safetensors(TENSORS, 10_016),
        "checkpoint-200/adapter_config.json": b'{"r": 16, "lora_alpha": 32}',
        "checkpoint-200/trainer_state.json": json.dumps(state).encode(),
        "checkpoint-100/empty.bin": b"",
        "config.json": b"{}",
    }
    with FakeObjectStore(*(Stored(name, content) for name, content in files.items())) as store:
        store.page_size = 3
        yield store


@pytest.fixture
def saved(baseten: FakeBaseten, store: FakeObjectStore) -> FakeBaseten:
    """A job with checkpoints, whose files are listed three to a page."""

    def page(asked: ReceivedRequest) -> Answer:
        return Answer(store.page(int(asked.query["page_token"])))

    baseten.on("GET", JOB + "/checkpoint_files", page)
    adapter = {"lora_adapter_config": {"r": 16}}
    checkpoints = [
        checkpoint("checkpoint-200", 2, checkpoint_type="lora", size_bytes=2000, sync_status=None) | adapter,
        checkpoint("checkpoint-100", 1),
        checkpoint(".", 0, sync_status="SYNCING", size_bytes=None, checkpoint_type=None),
    ]
    baseten.on("GET", JOB + "/checkpoints", Answer({"training_job": job(), "checkpoints": checkpoints}))
    return baseten


@pytest.mark.proves("docs/commands.md", "`checkpoints list`")
def test_list_as_the_official_document(cli: RunCli, saved: FakeBaseten) -> None:
    document = cli(*LIST, "-o", "json").json
    assert (document["job_id"], document["total_checkpoints"]) == ("job1", 3)
    *others, last = document["checkpoints"]
    assert [each["checkpoint_id"] for each in others] == [".", "checkpoint-100"]
    loss = {"name": "eval loss", "value": 1.9, "step": 200}
    assert last == {
        **{"job_id": "job1", "id": "", "checkpoint_id": "checkpoint-200", "checkpoint_type": "lora"},
        **{"base_model": "", "lora_adapter_config": {"r": 16}, "sync_status": None},
        **{"size_bytes": 2000, "size_human_readable": "2.00 KB", "created_at": "2026-03-01 02:00:00"},
        **{"loss": loss, "training_loss": None, "evaluation_loss": loss},
        **{"is_best": False, "judged": False, "fault": None},
    }
    assert "uploading" in cli(*LIST).out
    rows = cli("checkpoints list --project llama-sft --sort size --order desc -o csv").csv
    assert [row["Checkpoint Name"] for row in rows] == ["checkpoint-200", "checkpoint-100", "."]


@pytest.fixture
def broken(baseten: FakeBaseten) -> FakeBaseten:
    """A run whose loss became NaN at step 250, with a checkpoint every hundred steps."""
    baseten.jobs = []
    losses = [2.0 - step / 1000 if step < 250 else "nan" for step in range(1, 401)]
    finished_run(baseten, "broken", losses=losses, total=1000)
    begin_s = datetime.fromisoformat(str(baseten.jobs[0]["created_at"])).timestamp()
    checkpoints = [
        checkpoint(f"checkpoint-{step}", 0, created_at=iso(begin_s + 10 * step + 5), training_job_id="broken")
        for step in (100, 200, 300, 400)
    ]
    baseten.on("GET", r".*/jobs/broken/checkpoints", Answer({"checkpoints": checkpoints}))
    baseten.on("GET", r".*/jobs/broken/checkpoint_files", Answer({"message": "no files here"}, status=404))
    return baseten


@pytest.mark.proves("docs/health.md", "Checkpoints after a bad loss")
def test_those_after_the_loss_broke_are_marked_and_not_the_best(cli: RunCli, broken: FakeBaseten) -> None:
    table = cli("checkpoints list --job-id broken")
    rows = [line.split() for line in table.out.splitlines()[1:]]
    assert [row[1] for row in rows] == ["100", "★", "✗", "✗"]
    assert "✗ after NaN, newest" in table.out
    assert "best: checkpoint-200, loss 1.80 at step 200" in table.err
    assert "written after the loss became NaN (" in table.err
    assert "UTC): checkpoint-300, checkpoint-400" in table.err
    document = cli("checkpoints list --job-id broken -o json").json
    assert [one["is_best"] for one in document["checkpoints"]] == [False, True, False, False]
    assert [bool(one["fault"]) for one in document["checkpoints"]] == [False, False, True, True]
    assert all(one["judged"] for one in document["checkpoints"])
    fault = document["checkpoints"][2]["fault"]
    assert fault["kind"] == "loss-not-finite" and fault["since"].endswith("Z")


@pytest.mark.proves("docs/health.md", "Checkpoints after a bad loss")
def test_without_the_log_nothing_is_claimed(cli: RunCli, broken: FakeBaseten) -> None:
    for method in ("GET", "POST"):
        broken.on(
            method, r".*/jobs/broken/logs", Answer({"code": "NO", "message": "not for you"}, status=403)
        )
    table = cli("checkpoints list --job-id broken")
    assert "checkpoint-400" in table.out
    assert "best" not in table.out + table.err
    assert "checkpoints not checked: can't read the log" in table.err
    document = cli("checkpoints list --job-id broken -o json").json
    assert "can't read the log" in document["not_judged_because"]
    assert not any(one["judged"] for one in document["checkpoints"])


async def test_a_log_that_is_too_long_to_read_judges_nothing(broken: FakeBaseten) -> None:
    async with TrainingClient(remote_of(broken)) as client:
        job_ = await client.jobs.find("broken")
        listed = await client.checkpoints.list(job_.project_id, job_.id)
        evidence = await read_checked_run(client, job_, listed, max_lines=100)
    assert evidence.problem == "the log has more than 100 lines"
    assert not any(one.is_checked or one.is_best for one in facts_of_run(evidence.run))


def test_files_of_all_of_one_and_of_the_root(cli: RunCli, saved: FakeBaseten) -> None:
    def listed(*arguments: str) -> list[str]:
        result = cli("checkpoints", "files", *arguments, "--job-id", "job1", "-o", "json")
        assert "generation" not in result.out
        return [file["relative_file_name"] for file in result.json["files"]]

    assert len(listed()) == 5
    assert listed("checkpoint-100") == ["checkpoint-100/empty.bin"]
    assert listed(".") == ["config.json"]
    same = cli("checkpoints list --checkpoint-name checkpoint-100 --job-id job1")
    assert "checkpoint-100/empty.bin" in same.out


@pytest.mark.usefixtures("saved")
@pytest.mark.proves("README.md", "What is in this checkpoint?")
def test_show_reads_headers_alone_and_sends_no_key(cli: RunCli, store: FakeObjectStore) -> None:
    document = cli(*SHOW, "-o", "json").json
    big = {"name": "big", "dtype": "BF16", "shape": [100, 50], "size_bytes": 10_000}
    assert document["weights"]["largest_tensors"][0] == big
    assert document["adapter_config"]["r"] == 16
    assert document["trainer_state"]["last"] == {"eval_loss": 1.9, "loss": None}
    assert store.requests
    assert all("authorization" not in headers for _path, headers in store.requests)
    table = cli(*SHOW).out
    assert "5,004 (5,000 BF16, 4 F32)" in table and "100 × 50" in table


@pytest.mark.usefixtures("saved")
def test_a_large_file_costs_its_header_and_a_broken_one_words(cli: RunCli, store: FakeObjectStore) -> None:
    far = {"big": {"dtype": "U8", "shape": [500_000], "data_offsets": [0, 500_000]}}
    store.files[0] = Stored("checkpoint-200/model.safetensors", safetensors(far, 500_000))
    cli(*SHOW)
    assert store.sent_bytes < 100_000
    store.files[0] = Stored("checkpoint-200/model.safetensors", b"\xff" * 100)
    index = b'{"weight_map": {"a": "gone.safetensors"}}'
    store.files.append(Stored("checkpoint-200/model.safetensors.index.json", index))
    result = cli(*SHOW)
    assert "lora_alpha" in result.out, "the rest is shown"
    assert "the format allows" in result.err
    assert "parameters" not in result.out, "how many is not known"
    assert "checkpoint-200/gone.safetensors is in the index" in result.err


@pytest.mark.usefixtures("in_folder")
def test_urls_are_written_as_the_official_file(cli: RunCli, saved: FakeBaseten, tmp_path: Path) -> None:
    saved.jobs = [job(training_project={"id": "proj1", "name": "../my project"})]
    result = cli("get_checkpoint_urls --job-id job1")
    (path,) = tmp_path.glob("*.json")
    assert result.out.strip() == str(path)
    assert path.name == "%2Fmy-project_job1_checkpoints.json"
    assert path.stat().st_mode & 0o077 == 0
    document = json.loads(path.read_text())
    assert set(document) == {"timestamp", "job", "checkpoint_artifacts"}
    assert [set(each) for each in document["checkpoint_artifacts"]] == [
        {"url", "relative_file_name", "node_rank", "size_bytes", "last_modified"}
    ] * 5
    cli("checkpoints urls job1")
    assert len(list(tmp_path.iterdir())) == 1


def test_which_checkpoint_and_which_job_is_meant(cli: RunCli, saved: FakeBaseten) -> None:
    assert 'checkpoint_name="checkpoint-200"' in cli("checkpoints snippet --job-id job1").out
    assert 'checkpoint_name="."' in cli("checkpoints snippet . --job-id job1").out
    saved.jobs = [job(f"job{number}", created_at=f"2025-0{number + 1}-01T00:00:00Z") for number in (0, 1)]
    assert cli("checkpoints list --project llama-sft -o json").json["job_id"] == "job1"
    cli(*LIST, "--project", "other", code=7)
    for none in (None, []):
        saved.on("GET", JOB + "/checkpoints", Answer({"checkpoints": none}))
        result = cli(*LIST, "-o", "json")
        assert result.json["total_checkpoints"] == 0
        assert "has no checkpoints" in result.err
