"""bt-tui record and open, and what the commands read in the file without a server."""

import time
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from api_client.recordings.archive import RecordingError
from api_client.recordings.reading import CHECKPOINTS
from support.cli import RunCli
from support.fake_baseten import Answer, FakeBaseten
from support.fake_runs import HOUR_S, finished_run, iso, live_run, metrics_of, node, serve_metrics
from support.recorded import by_hand, ndjson
from tui.readers.recorder import Recorder

NOWHERE = {"BASETEN_API_KEY": "none", "BASETEN_REMOTE_URL": "http://127.0.0.1:1"}
LOSSES: list[float | str] = [3.0 - step / 200 for step in range(150)]


@pytest.fixture
def run(baseten: FakeBaseten) -> str:
    """A run of two hours that ended an hour ago, with metrics."""
    finished_run(baseten, "run1", losses=LOSSES, total=150)
    serve_metrics(baseten, metrics_of(node("node-0", [0.95] * 110, end_s=time.time() - HOUR_S)))
    saved = {"checkpoint_id": "checkpoint-200", "created_at": iso(time.time() - 2 * HOUR_S + 200)}
    baseten.on("GET", ".*/jobs/run1/checkpoints", Answer({"training_job": {}, "checkpoints": [saved]}))
    return "run1"


@pytest.mark.proves("docs/commands.md", "`record`")
def test_commands_read_in_the_file_what_the_server_told(cli: RunCli, run: str, tmp_path: Path) -> None:
    path = str(tmp_path / "run.btrun")
    recorded = cli("record", run, "-o", path)
    assert recorded.out == ""
    assert "recorded 150 lines" in recorded.err
    for words, given in (
        (("job", "-o", "json"), (run,)),
        (("logs", "-o", "ndjson"), (run,)),
        (("logs", "--last", "5", "--grep", "step 4"), (run,)),
        (("progress", "--series", "-o", "json"), (run,)),
        (("health", "-o", "json"), (run,)),
        (("checkpoints", "list", "-o", "json"), ("--job-id", run)),
        (("metrics", "-o", "json", "--step", "60"), (run,)),
    ):
        live = cli(*words, *given)
        assert cli(*words, "--file", path, environ=NOWHERE).out == live.out, words


@pytest.mark.parametrize("options", ["", "--follow"])
def test_metrics_after_the_end_of_a_job_are_not_requested(
    cli: RunCli, baseten: FakeBaseten, tmp_path: Path, options: str
) -> None:
    end_s = time.time() - 200 * HOUR_S
    times = {"created_at": iso(end_s - 2 * HOUR_S), "updated_at": iso(end_s)}
    finished_run(baseten, "old", losses=[], **times)
    serve_metrics(baseten, metrics_of(node("node-0", [0.95], end_s=end_s)))
    cli("record", "old", *options.split(), "-o", str(tmp_path / "run.btrun"))
    assert 1 <= sum(request.path.endswith("/metrics") for request in baseten.asked) <= 12


def test_samples_outside_of_the_requested_time_are_not_recorded(
    cli: RunCli, baseten: FakeBaseten, tmp_path: Path
) -> None:
    end_s = time.time() - HOUR_S
    times = {"created_at": iso(end_s - 900 * HOUR_S), "updated_at": iso(end_s)}
    finished_run(baseten, "old", losses=[], **times)
    use = [0.1] * 50 + [0.5]
    serve_metrics(baseten, metrics_of(node("node-0", use, end_s=end_s + 20 * 60)))
    path = str(tmp_path / "run.btrun")
    cli("record", "old", "-o", path)
    assert sum(request.path.endswith("/metrics") for request in baseten.asked) <= 200
    recorded = cli("metrics", "--file", path, "-o", "json").out
    assert ("0.1" in recorded, "0.5" in recorded) == (True, False)


def test_no_key_and_no_secret_is_in_the_file(cli: RunCli, baseten: Any, run: str, tmp_path: Path) -> None:
    """The remote's key, what the environment holds, and the values of the workspace's secrets."""
    baseten.on("GET", "/v1/secrets", Answer({"secrets": [{"name": "db_login", "team_name": "t"}]}))
    words = f"{baseten.key} db_login=pl4nted-value env-s3cret-1"
    baseten.logs[run][0]["message"] = baseten.jobs[-1]["error_message"] = words
    path = tmp_path / "run.btrun"
    environ = baseten.environ() | {"BASETEN_UPLOAD_TOKEN": "env-s3cret-1"}
    cli("record", run, "-o", str(path), environ=environ)
    with zipfile.ZipFile(path) as file:
        everything = b"".join(file.read(name) for name in file.namelist())
    assert [each for each in (baseten.key, "pl4nted", "env-s3cret") if each.encode() in everything] == []
    assert b"step 40/150" in everything


@pytest.mark.proves("docs/recordings.md", "Recordings")
def test_the_text_of_the_log_can_be_left_out(cli: RunCli, run: str, tmp_path: Path) -> None:
    path = str(tmp_path / "run.btrun")
    cli("record", run, "-o", path, "--without-messages")
    lines = cli("logs", "--file", path, "-o", "ndjson").ndjson
    assert (len(lines), {one["message"] for one in lines}) == (150, {""})
    assert "without messages" in cli("record", run, "-o", path, code=2).err


@pytest.mark.proves("docs/recordings.md", "Recordings")
def test_the_timeline_has_findings_with_their_times(cli: RunCli, baseten: Any, tmp_path: Path) -> None:
    finished_run(baseten, "sick", losses=[*LOSSES[:100], *["nan"] * 20, *LOSSES[120:]], total=150)
    path = str(tmp_path / "sick.btrun")
    cli("record", "sick", "-o", path)
    found = cli("health", "--file", path, "--timeline", "-o", "json", environ=NOWHERE).json
    one = next(one for one in found if one["kind"] == "loss-not-finite")
    assert set(one) == {"kind", "severity", "node", "since", "first_seen", "last_seen", "message"}
    assert one["since"] <= one["first_seen"] < one["last_seen"]
    assert one["severity"] == "critical"
    assert "loss-not-finite" in cli("health", "--file", path, "--timeline").out


def test_what_was_not_read_of_a_log_is_no_silence(
    cli: RunCli, baseten: FakeBaseten, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_run(baseten, "run1", silent_s=2000)
    path = str(tmp_path / "run.btrun")
    with monkeypatch.context() as killed:
        killed.setattr(Recorder, "_finish", Mock(side_effect=RecordingError("killed")))
        cli("record", "run1", "-o", path, code=2)
    health = cli("health", "--file", path).err
    assert ("before the end of the log" in health, "can't be read" in health) == (True, False)
    cli("record", "run1", "-o", path)
    cli("health", "--file", path, code=11)


def test_logs_say_what_is_wrong_with_the_log_of_a_file(cli: RunCli, tmp_path: Path) -> None:
    lines = ndjson(*[{"timestamp": "-1", "message": text} for text in ("one", "two")])
    read = cli("logs", "--file", str(by_hand(tmp_path / "run.btrun", {"logs.ndjson": lines})))
    assert [row.split()[-1] for row in read.out.splitlines()] == ["one", "two"]
    assert "run.btrun: logs.ndjson has 2 lines without a valid time" in read.err
    unreadable = cli("logs", "--file", str(by_hand(tmp_path / "run.btrun", {"logs.ndjson": "no json"})))
    assert "no lines: none could be read" in unreadable.err
    assert "empty" not in unreadable.err


def test_a_file_is_read_as_of_its_end_without_damaged_parts(cli: RunCli, tmp_path: Path) -> None:
    path = str(by_hand(tmp_path / "run.btrun", {CHECKPOINTS: "{"}))
    assert ", 58m ago\n" in cli("job", "--file", path).out
    assert (
        "run.btrun: checkpoints.json can't be read" in cli("checkpoints", "list", "--file", path, code=7).err
    )


def test_what_cannot_be_is_refused(cli: RunCli, run: str, tmp_path: Path) -> None:
    path = str(tmp_path / "run.btrun")
    cli("record", run, "-o", path)
    (tmp_path / "other.btrun").write_text("no zip")
    for words, problem in (
        (("job", run, "--file", path), "a job or --file, not both"),
        (("metrics", run, "--file", path), "a job or --file, not both"),
        (("progress", run, "--file", path), "a job or --file, not both"),
        (("checkpoints", "list", "--project", "llama-sft", "--file", path), "a job or --file, not both"),
        (("logs", "--file", path, "--follow"), "a recording can't be followed"),
        (("health", run, "--timeline"), "--timeline needs a recording"),
        (("job", "--file", str(tmp_path / "other.btrun")), "not a recording"),
        (("record", run, "-o", str(tmp_path)), "is a folder"),
        (("job",), "which job?"),
    ):
        result = cli(*words, code=2)
        assert problem in result.err, (words, result.err)


@pytest.mark.proves("docs/commands.md", "`record`")
@pytest.mark.proves("docs/recordings.md", "Recordings")
def test_it_opens_read_only_and_silent_at_the_moment_that_is_named(
    cli: RunCli, baseten: FakeBaseten, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished_run(baseten, "run1", losses=[3.0, 2.0])
    path = str(tmp_path / "run.btrun")
    cli("record", "run1", "-o", path)
    opened: list[timedelta] = []

    def dashboard(_remote: Any, *, job_id: str, settings: Any, recordings: Any) -> None:
        clock, quiet = recordings.clock, settings.configuration.notifications
        assert (job_id, settings.configuration.readonly) == ("run1", True)
        assert (quiet.toast, quiet.bell, quiet.osc, quiet.job_end) == (False, False, "off", False)
        opened.append(clock.now() - clock.begin)

    monkeypatch.setattr("tui.app.run_dashboard", dashboard)
    for module in ("app.open", "support.terminal"):
        monkeypatch.setattr(f"tui.commands.{module}.need_terminal", lambda: None)
    for options in ((), ("--at", "1h20m"), ("--speed", "0.01")):
        cli("open", path, *options, environ={})
    last, named, playing = opened
    assert last > named == timedelta(minutes=80)
    assert timedelta(0) < playing < named, "from the beginning"
    for wrong, why in ((("--at", "soon"), "soon"), ((path,), "the same job")):
        refused = cli("open", path, *wrong, environ={}, code=2)
        assert why in refused.err
