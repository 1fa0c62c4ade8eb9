"""What can be asked of logs: parts of it, some lines of it, other forms of it."""

import json
import signal
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from support.cli import Result, RunCli
from support.stranger import LONG_AGO_MS, Answer, FakeBaseten, ReceivedRequest, job, line, project

MINUTE_MS = 60_000


@pytest.fixture
def filled(stranger: FakeBaseten) -> FakeBaseten:
    """Ten minutes of two nodes, a line a minute and node."""
    stranger.logs["job1"] = [
        line(
            f"step {minute} of rank {rank}" if minute != 4 else "RuntimeError: CUDA error",
            at_ms=LONG_AGO_MS + minute * MINUTE_MS + rank,
            replica=f"node-{rank}",
            level="WARNING" if minute == 7 else None,
        )
        for minute in range(10)
        for rank in range(2)
    ]
    return stranger


def messages(result: Result) -> list[str | None]:
    assert result.code == 0, result.err
    return [json.loads(each).get("message") for each in result.out.splitlines()]


def test_from_and_to_a_time(cli: RunCli, filled: FakeBaseten) -> None:
    def between(*arguments: str) -> list[str | None]:
        return messages(cli("logs", "job1", "-o", "ndjson", "--node", "0", *arguments))

    assert between("--start", "2025-03-01T12:08:00Z") == ["step 8 of rank 0", "step 9 of rank 0"]
    assert between("--start", "2025-03-01 12:01", "--end", "2025-03-01 12:03") == [
        "step 1 of rank 0",
        "step 2 of rank 0",
    ]
    assert between("--start", "9m") == ["step 9 of rank 0"]
    assert between("--end", str(LONG_AGO_MS + MINUTE_MS)) == ["step 0 of rank 0"]
    assert between("--since", "2h") == []
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    filled.logs["job1"] = [
        line(name, at_ms=now_ms - ago * MINUTE_MS) for name, ago in (("old", 90), ("new", 1))
    ]
    assert between("--since", "1h") == ["new"]
    assert between("--since", "1h45m") == ["old", "new"]


def test_json_is_one_array_of_what_ndjson_has_line_by_line(
    cli: RunCli, filled: FakeBaseten, tmp_path: Path
) -> None:
    lines = [json.loads(each) for each in cli("logs", "job1", "-o", "ndjson").out.splitlines()]

    assert json.loads(cli("logs", "job1", "-o", "json").out) == lines
    assert json.loads(cli("logs", "job1", "-o", "json", "--last", "3").out) == lines[-3:]
    assert json.loads(cli("logs", "job1", "-o", "json", "--grep", "nowhere").out) == []
    assert cli("logs", "job1", "--save", str(tmp_path / "run.json")).code == 0
    assert json.loads((tmp_path / "run.json").read_text()) == lines


def test_the_last_lines_are_read_from_the_end_and_no_further(cli: RunCli, stranger: FakeBaseten) -> None:
    hours_ago = datetime.now(UTC) - timedelta(hours=5)
    stranger.jobs = [job("job1", created_at=hours_ago.isoformat())]
    begin_ms = int(hours_ago.timestamp() * 1000)
    stranger.logs["job1"] = [line(f"line {n}", at_ms=begin_ms + n) for n in range(9_000)]

    found = messages(cli("logs", "job1", "--last", "3", "-o", "ndjson"))

    assert found == ["line 8997", "line 8998", "line 8999"]
    pages = [asked for asked in stranger.asked if asked.path.endswith("/logs")]
    assert len(pages) < 6
    assert messages(cli("logs", "job1", "--last", "0", "-o", "ndjson")) == []
    stranger.jobs = [job("job1")]
    followed = messages(cli("logs", "job1", "-f", "--last", "2", "-o", "ndjson"))
    assert followed == ["line 8998", "line 8999"]


def test_the_last_matches_with_what_is_around_them(cli: RunCli, filled: FakeBaseten) -> None:
    out = cli("logs", "job1", "--node", "1", "--grep", "step [2-8]", "--last", "2", "--context", "1").out
    shown = [text.split("node-1  ")[1] for text in out.splitlines()]
    assert shown == ["step 6 of rank 1", "step 7 of rank 1", "step 8 of rank 1", "step 9 of rank 1"]


def test_lines_around_matches_are_told_apart(cli: RunCli, filled: FakeBaseten) -> None:
    def some(*arguments: str) -> Result:
        return cli("logs", "job1", "--context", "1", "--node", "node-0", *arguments)

    records = [json.loads(each) for each in some("--grep", "CUDA|step 9", "-o", "ndjson").out.splitlines()]
    assert [(each["message"][:6], each.get("context", False)) for each in records] == [
        ("step 3", True),
        ("Runtim", False),
        ("step 5", True),
        ("step 8", True),
        ("step 9", False),
    ]
    of_level = messages(some("--min-level", "ERROR", "-o", "ndjson"))
    assert [each[:6] for each in of_level] == ["step 3", "Runtim", "step 5"]
    text = some("--grep", "CUDA|step 9", "--time", "off").out
    assert text.splitlines()[3] == "--"
    assert text.count("--\n") == 1


def test_patterns_levels_and_nodes(cli: RunCli, filled: FakeBaseten) -> None:
    def some(*arguments: str) -> list[str | None]:
        return messages(cli("logs", "job1", "-o", "ndjson", *arguments))

    assert some("--min-level", "error") == ["RuntimeError: CUDA error"] * 2
    assert some("--min-level", "WARNING", "--node", "1") == ["RuntimeError: CUDA error", "step 7 of rank 1"]
    assert some("--grep", "cuda") == []
    assert len(some("--grep", "cuda", "-i")) == 2
    assert len(some("--grep", "step", "--invert")) == 2
    assert len(some("--node", "0", "--node", "node-1")) == 20
    assert some("--grep", "nowhere", "--last", "3") == []
    nothing = cli("logs", "job1", "--grep", "nowhere")
    assert (nothing.code, nothing.out) == (0, "")
    assert "no lines" in nothing.err
    assert "no lines" not in cli("logs", "job1", "--grep", "step 8").err
    assert cli("logs", "job1", "--start", "12:30", "--end", "12:30").code == 2


SENSELESS = (
    (["--grep", "(unclosed"], "missing )"),
    (["--start", "yesterdayish"], "not a time"),
    (["--since", "soon"], "not a time"),
    (["--min-level", "LOUD"], "'LOUD'"),
    (["--last", "-1"], "-1"),
    (["--since", "1h", "--start", "12:00"], "give either"),
    (["--follow", "--end", "12:00"], "--end"),
    (["--follow", "-o", "json"], "-o ndjson"),
    (["--follow", "--save", "run.json"], "-o ndjson"),
    (["--last", "3", "--context", "2"], "--context needs --grep or --min-level"),
    (["--invert"], "--invert needs --grep"),
    (["--invert", "--grep", "", "--min-level", "ERROR"], "needs --grep"),
    (["-i", "--node", "1"], "needs --grep"),
    (["-o", "jsn"], "./jsn"),
    (["-o", "raw", "-o", "text"], "one format"),
    (["--job-id", "other"], "two different"),
    (["--time", "swatch"], "swatch"),
)


def test_what_makes_no_sense_is_said_before_anything_is_asked(cli: RunCli, stranger: FakeBaseten) -> None:
    for arguments, told in SENSELESS:
        result = cli("logs", "job1", *arguments)
        assert (result.code, result.out) == (2, "")
        assert told in result.err
    assert stranger.asked == []


def test_times_as_wanted(cli: RunCli, filled: FakeBaseten) -> None:
    for mode, stamp in (
        ("utc", "2025-03-01 12:01:00.000Z  node-0"),
        ("local", "2025-03-01 12:01:00.000  node-0"),
        ("elapsed", "+0:01:00.0  node-0"),
        ("off", "node-0  step 1"),
    ):
        out = cli("logs", "job1", "--time", mode, "--grep", "step 1 ", "--node", "0").out
        assert out.startswith(stamp)
    ago = datetime.now(UTC) - timedelta(hours=1)
    filled.logs["job1"] = [line("x", at_ms=int(ago.timestamp() * 1000))]
    assert cli("logs", "job1", "--time", "relative").out.startswith("-1:00:0")


def test_raw_is_what_the_job_wrote(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.logs["job1"] = [line("a\x1b[31mb\tc\n  d"), line("{}\n", at_ms=LONG_AGO_MS + 1)]

    assert cli("logs", "job1", "-o", "raw").out == "a\x1b[31mb\tc\n  d\n{}\n"


def test_saved_to_a_file_and_never_over_another(cli: RunCli, filled: FakeBaseten, tmp_path: Path) -> None:
    file = tmp_path / "run.log"

    saved = cli("logs", "job1", "--output", str(file), "--node", "0", "--time", "off")

    assert (saved.code, saved.out) == (0, "")
    assert f"saved 10 lines to {file}" in saved.err
    assert file.read_text().splitlines()[0] == "node-0  step 0 of rank 0"
    again = cli("logs", "job1", "--save", str(file))
    assert (again.code, len(file.read_text().splitlines())) == (2, 10)
    assert "--force" in again.err
    assert cli("logs", "job1", "--save", str(file), "--force").code == 0
    assert len(file.read_text().splitlines()) == 20
    records = tmp_path / "run.ndjson"
    assert cli("logs", "job1", "-o", str(records)).code == 0
    assert json.loads(records.read_text().splitlines()[0])["replica"] == "node-0"
    nowhere = cli("logs", "job1", "--save", str(tmp_path / "no" / "such"))
    assert (nowhere.code, nowhere.out) == (2, "")


def test_a_full_disk_is_told_as_what_it_is(cli: RunCli, filled: FakeBaseten) -> None:
    full = cli("logs", "job1", "--save", "/dev/full", "--force")

    assert full.code == 1
    assert full.err == "bt-tui: can't write /dev/full: the disk is full; make room or choose another place\n"


def test_a_follow_that_is_cut_off_keeps_what_arrived_under_another_name(
    cli: RunCli, cli_process: Callable[..., subprocess.Popen[str]], stranger: FakeBaseten, tmp_path: Path
) -> None:
    now = datetime.now(UTC).isoformat()
    stranger.jobs = [job("job1", "RUNNING", created_at=now, updated_at=now)]
    stranger.logs["job1"] = [line("one", at_ms=int(datetime.now(UTC).timestamp() * 1000) - MINUTE_MS)]
    file, part = tmp_path / "run.log", tmp_path / "run.log.part"

    with cli_process("logs", "job1", "--follow", "--save", str(file)) as process:
        while not (part.exists() and part.stat().st_size):
            assert process.poll() is None, process.stderr.read()
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        assert f"the lines so far are in {part}" in process.stderr.read()

    assert "one" in part.read_text()
    assert not file.exists()
    again = cli("logs", "job1", "--follow", "--save", str(file))
    assert (again.code, "one" in part.read_text()) == (2, True)
    assert f"{part} already exists from an interrupted --follow; --force replaces it" in again.err
    stranger.jobs = [job("job1", "COMPLETED", created_at=now, updated_at=now)]
    assert cli("logs", "job1", "-f", "--drain", "0", "--save", str(file), "--force").code == 0
    assert "one" in file.read_text()
    assert not part.exists()


def test_the_newest_job_of_a_project(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.projects = [project(), project("proj2", "other")]
    stranger.jobs = [
        job("old", created_at="2025-02-01T00:00:00Z"),
        job("new", created_at="2025-02-02T00:00:00Z"),
        job("elsewhere", created_at="2025-02-03T00:00:00Z", training_project_id="proj2"),
    ]
    for name in ("old", "new", "elsewhere"):
        stranger.logs[name] = [line(f"of {name}")]

    assert messages(cli("logs", "-o", "ndjson")) == ["of elsewhere"]
    assert messages(cli("logs", "--project", "llama-sft", "-o", "ndjson")) == ["of new"]
    assert messages(cli("logs", "--project-id", "proj2", "-o", "ndjson")) == ["of elsewhere"]
    assert messages(cli("logs", "--job-id", "old", "-o", "ndjson")) == ["of old"]


def test_what_cannot_be_read_is_a_gap_in_every_form(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.logs["job1"] = [line(f"line {n}", at_ms=LONG_AGO_MS) for n in range(2_500)]

    result = cli("logs", "job1", "-o", "ndjson")
    gaps = [json.loads(each)["gap"] for each in result.out.splitlines() if "gap" in json.loads(each)]
    assert len(gaps) == 1
    assert "1 part of the log could not be read" in result.err
    raw = cli("logs", "job1", "-o", "raw")
    assert "gap" not in raw.out
    assert "gap 2025-03-01" in raw.err


def test_answers_that_cannot_be_read_are_asked_for_again(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.logs["job1"] = [line("there")]
    wrong = iter([b'{"training_jobs": [', b"<html>"])

    def search(_asked: ReceivedRequest) -> Answer:
        broken = next(wrong, None)
        return Answer(body=broken if broken is not None else {"training_jobs": stranger.jobs})

    stranger.on("POST", "/v1/training_jobs/search", search)

    assert messages(cli("logs", "job1", "-o", "ndjson")) == ["there"]


def test_ctrl_c_while_waiting_for_late_lines_ends_as_the_job_ended(
    cli_process: Callable[..., subprocess.Popen[str]], stranger: FakeBaseten
) -> None:
    now = datetime.now(UTC).isoformat()
    stranger.jobs = [job("job1", "STOPPED", created_at=now, updated_at=now)]

    with cli_process("logs", "job1", "--follow", "-o", "ndjson") as process:
        assert "waiting for late lines" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)

    assert (process.returncode, out, err) == (4, "", "")
