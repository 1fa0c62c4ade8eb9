"""What can be asked of logs: parts of it, some lines of it, other forms of it."""

import json
import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from support.cli import RunCli, Start
from support.fake_baseten import LONG_AGO_MS, Answer, FakeBaseten, ReceivedRequest, job, line, project

MINUTE_MS = 60_000
JOB_PATH = "/v1/training_projects/proj1/jobs/job1"


@pytest.fixture
def filled(baseten: FakeBaseten) -> FakeBaseten:
    """Ten minutes of two nodes, a line a minute and node."""
    baseten.logs["job1"] = [
        line(
            f"step {minute} of rank {rank}" if minute != 4 else "RuntimeError: CUDA error",
            at_ms=LONG_AGO_MS + minute * MINUTE_MS + rank,
            replica=f"node-{rank}",
            level="WARNING" if minute == 7 else None,
        )
        for minute in range(10)
        for rank in range(2)
    ]
    return baseten


@pytest.fixture
def quick_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.commands.logs.command.WAITING_INTERVAL_S", 0.01)
    for name in ("job_poller.JOB_INTERVAL_S", "follow.BUSY_INTERVAL_S", "follow.QUIET_INTERVAL_S"):
        monkeypatch.setattr(f"api_client.streams.{name}", 0.01)


@pytest.fixture
def read(cli: RunCli) -> Callable[[str], list[str]]:
    def messages(options: str) -> list[str]:
        result = cli(f"logs {options} -o ndjson")
        return [each["message"] for each in result.ndjson]

    return messages


Read = Callable[[str], list[str]]


@pytest.mark.proves("docs/logs.md", "The log viewer")
def test_from_and_to_a_time(read: Read, filled: FakeBaseten) -> None:
    for window, steps in (
        ("--start 2025-03-01T12:08:00Z", (8, 9)),
        ("--start '2025-03-01 12:01' --end '2025-03-01 12:03'", (1, 2)),
        ("--start 9m", (9,)),
        (f"--end {LONG_AGO_MS + MINUTE_MS}", (0,)),
        ("--since 2h", ()),
    ):
        assert read(f"job1 --node 0 {window}") == [f"step {step} of rank 0" for step in steps]
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    filled.logs["job1"] = [
        line(name, at_ms=now_ms - ago * MINUTE_MS) for name, ago in (("old", 90), ("new", 1))
    ]
    assert read("job1 --since 1h") == ["new"]
    assert read("job1 --since 1h45m") == ["old", "new"]


def test_json_is_one_array_of_the_lines_of_ndjson(cli: RunCli, filled: FakeBaseten, tmp_path: Path) -> None:
    lines = cli("logs job1 -o ndjson").ndjson
    assert cli("logs job1 -o json").json == lines
    assert cli("logs job1 -o json --last 3").json == lines[-3:]
    cli("logs", "job1", "--save", str(tmp_path / "run.json"))
    assert json.loads((tmp_path / "run.json").read_text()) == lines


def test_the_last_lines_are_read_from_the_end_and_no_further(read: Read, baseten: FakeBaseten) -> None:
    hours_ago = datetime.now(UTC) - timedelta(hours=5)
    baseten.jobs = [job("job1", created_at=hours_ago.isoformat())]
    begin_ms = int(hours_ago.timestamp() * 1000)
    baseten.logs["job1"] = [line(f"line {n}", at_ms=begin_ms + n) for n in range(9_000)]
    assert read("job1 --last 3") == ["line 8997", "line 8998", "line 8999"]
    assert sum(asked.path.endswith("/logs") for asked in baseten.asked) < 6
    assert read("job1 --last 0") == []
    assert read("job1 --limit 1") == ["line 8999"]
    assert len(read("job1 --limit 0")) == 9_000
    baseten.jobs = [job("job1")]
    assert read("job1 -f --last 2") == ["line 8998", "line 8999"]


def test_lines_around_matches_are_told_apart(cli: RunCli, read: Read, filled: FakeBaseten) -> None:
    around = "job1 --context 1 --node node-0"
    records = cli(f"logs {around} --grep 'CUDA|step 9' -o ndjson").ndjson
    told = [(each["message"][:6], each.get("context", False)) for each in records]
    matches = [("Runtim", False), ("step 9", False)]
    assert told == [("step 3", True), matches[0], ("step 5", True), ("step 8", True), matches[1]]
    assert [each[:6] for each in read(f"{around} --min-level ERROR")] == ["step 3", "Runtim", "step 5"]
    text = cli(f"logs {around} --grep 'CUDA|step 9' --time off").out
    assert (text.splitlines()[3], text.count("--\n")) == ("--", 1)
    last = read("job1 --node 1 --grep 'step [2-8]' --last 2 --context 1")
    assert last == [f"step {step} of rank 1" for step in (6, 7, 8, 9)]


@pytest.mark.proves("docs/commands.md", "`logs`")
def test_patterns_levels_and_nodes(cli: RunCli, read: Read, filled: FakeBaseten) -> None:
    assert read("job1 --min-level error") == ["RuntimeError: CUDA error"] * 2
    assert read("job1 --min-level WARNING --node 1") == ["RuntimeError: CUDA error", "step 7 of rank 1"]
    for options, count in (
        ("--grep cuda", 0),
        ("--grep cuda -i", 2),
        ("--grep step --invert", 2),
        ("--node 0 --node node-1", 20),
        ("--grep nowhere --last 3", 0),
    ):
        assert len(read(f"job1 {options}")) == count
    nothing = cli("logs job1 --grep nowhere")
    assert (nothing.out, "no lines" in nothing.err) == ("", True)
    assert "no lines" not in cli("logs job1 --grep 'step 8'").err
    cli("logs job1 --start 12:30 --end 12:30", code=2)


def test_times_as_wanted(cli: RunCli, filled: FakeBaseten) -> None:
    for mode, stamp in (
        ("utc", "2025-03-01 12:01:00.000Z  node-0"),
        ("local", "2025-03-01 12:01:00.000  node-0"),
        ("elapsed", "+0:01:00.0  node-0"),
        ("off", "node-0  step 1"),
    ):
        assert cli(f"logs job1 --time {mode} --grep 'step 1 ' --node 0").out.startswith(stamp)
    ago = datetime.now(UTC) - timedelta(hours=1)
    filled.logs["job1"] = [line("x", at_ms=int(ago.timestamp() * 1000))]
    assert cli("logs job1 --time relative").out.startswith("-1:00:0")


def test_raw_is_what_the_job_wrote(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.logs["job1"] = [line("a\x1b[31mb\tc\n  d"), line("{}\n", at_ms=LONG_AGO_MS + 1)]
    assert cli("logs job1 -o raw").out == "a\x1b[31mb\tc\n  d\n{}\n"


@pytest.mark.usefixtures("filled", "in_folder")
def test_saved_to_a_file_and_never_over_another(cli: RunCli, tmp_path: Path) -> None:
    file = tmp_path / "run.log"
    saved = cli("logs job1 --output ./run.log --node 0 --time off")
    assert (saved.out, "saved 10 lines to run.log" in saved.err) == ("", True)
    assert file.read_text().splitlines()[0] == "node-0  step 0 of rank 0"
    again = cli("logs job1 --save run.log", code=2)
    assert ("--force" in again.err, len(file.read_text().splitlines())) == (True, 10)
    cli("logs job1 --save run.log --force")
    assert len(file.read_text().splitlines()) == 20
    cli("logs job1 -o run.ndjson")
    assert json.loads((tmp_path / "run.ndjson").read_text().splitlines()[0])["replica"] == "node-0"
    assert cli("logs job1 --save no/such", code=2).out == ""


@pytest.mark.usefixtures("quick_polls")
@pytest.mark.proves("docs/logs.md", "How the stream works")
def test_a_follow_that_is_cut_off_keeps_its_lines(cli: RunCli, baseten: FakeBaseten, tmp_path: Path) -> None:
    """Under another name, which is not replaced unasked."""
    now = datetime.now(UTC).isoformat()
    baseten.jobs = [job("job1", "RUNNING", created_at=now, updated_at=now)]
    baseten.logs["job1"] = [line("one", at_ms=int(datetime.now(UTC).timestamp() * 1000) - MINUTE_MS)]
    file, part = tmp_path / "run.log", tmp_path / "run.log.part"

    answer = Answer({"training_job": baseten.jobs[0]})

    def press_once_a_line_is_there(_asked: ReceivedRequest) -> Answer:
        if part.exists() and part.stat().st_size:
            baseten.on("GET", JOB_PATH, answer)
            os.kill(os.getpid(), signal.SIGINT)
        return answer

    baseten.on("GET", JOB_PATH, press_once_a_line_is_there)
    follow = f"logs job1 --follow --drain 0 --save {file}"
    cut = cli(follow, code=130)
    assert f"the lines so far are in {part}" in cut.err
    assert ("one" in part.read_text(), file.exists()) == (True, False)
    again = cli(follow, code=2)
    assert "one" in part.read_text()
    assert f"{part} already exists from an interrupted --follow; --force replaces it" in again.err
    baseten.jobs[0]["current_status"] = "TRAINING_JOB_COMPLETED"
    cli(f"{follow} --force")
    assert ("one" in file.read_text(), part.exists()) == (True, False)


def test_the_newest_job_of_a_project(read: Read, baseten: FakeBaseten) -> None:
    baseten.projects = [project(), project("proj2", "other")]
    baseten.jobs = [
        job("old", created_at="2025-02-01T00:00:00Z"),
        job("new", created_at="2025-02-02T00:00:00Z"),
        job("elsewhere", created_at="2025-02-03T00:00:00Z", training_project_id="proj2"),
    ]
    baseten.logs |= {name: [line(f"of {name}")] for name in ("old", "new", "elsewhere")}
    assert read("") == read("--project-id proj2") == ["of elsewhere"]
    assert (read("--project llama-sft"), read("--job-id old")) == (["of new"], ["of old"])


@pytest.mark.proves("docs/commands.md", "Output formats")
def test_what_cannot_be_read_is_a_gap_in_every_form(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.logs["job1"] = [line(f"line {n}", at_ms=LONG_AGO_MS) for n in range(2_500)]
    result = cli("logs job1 -o ndjson")
    assert len([each for each in result.ndjson if "gap" in each]) == 1
    assert "1 part of the log could not be read" in result.err
    raw = cli("logs job1 -o raw")
    assert "gap" not in raw.out
    assert "gap 2025-03-01" in raw.err


def test_ctrl_c_while_waiting_for_late_lines(cli_process: Start, baseten: FakeBaseten) -> None:
    """It ends as the job ended."""
    now = datetime.now(UTC).isoformat()
    baseten.jobs = [job("job1", "STOPPED", created_at=now, updated_at=now)]
    with cli_process("logs", "job1", "--follow", "-o", "ndjson") as process:
        assert "waiting for late lines" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (4, "", "")


@pytest.mark.usefixtures("quick_polls")
@pytest.mark.proves("docs/commands.md", "`logs`")
def test_what_a_job_waits_for_is_told_and_each_change_once(cli: RunCli, baseten: FakeBaseten) -> None:
    now = datetime.now(UTC)
    began = (now - timedelta(minutes=12)).isoformat()
    hint = "spot \x1b[31mwould start now"
    life = [("PENDING", None), ("PENDING", hint), ("DEPLOYING", None), ("RUNNING", None)]
    polls = iter([state for state in life for _ in range(20)])
    ahead = [{"training_job_id": "a1", "training_job_name": "sweep", "requested_gpus": 8}]
    queue = {"target_job_id": "job1", "submitted_at": began, "pending_ahead_at_submit": ahead}
    baseten.on("GET", "/v1/training/jobs/job1/queue_context", Answer(queue))
    baseten.jobs = [job("job1", "PENDING", created_at=began, node_count=2)]
    baseten.logs["job1"] = [line("a line", at_ms=int(now.timestamp() * 1000))]

    def poll(_asked: ReceivedRequest) -> Answer:
        is_asked = any(one.path.endswith("queue_context") for one in baseten.asked)
        status, hint = next(polls, ("9" * 500, None)) if is_asked else life[0]
        return Answer({"training_job": baseten.jobs[0] | {
            "current_status": f"TRAINING_JOB_{status}", "error_message": hint}})  # fmt: skip

    baseten.on("GET", JOB_PATH, poll)
    result = cli("logs job1 -f -o ndjson --drain 0", code=3)
    waits = "bt-tui: job job1 is waiting 12m for 16 H100; at submission 1 ahead: sweep"
    assert result.err.splitlines()[:4] == [
        waits,
        f"{waits} · spot would start now",
        "bt-tui: job job1 is deploying after 12m",
        "bt-tui: job job1 is running after 12m",
    ]
    assert ([each["message"] for each in result.ndjson], len(result.err) < 500) == (["a line"], True)
