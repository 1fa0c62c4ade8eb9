"""bt-tui progress against a server that we did not write."""

import json
from pathlib import Path

import pytest

from support.cli import RunCli
from support.fake_baseten import Answer, FakeBaseten, job, line
from support.fake_runs import finished_run, live_run


@pytest.mark.proves("docs/commands.md", "`metrics`")
def test_how_far_the_log_says_it_is_whole_in_part_and_for_people(cli: RunCli, baseten: FakeBaseten) -> None:
    finished_run(baseten, "run1", name="night \x1b[31mrun", losses=[3.0, 2.5, 2.0, 1.5])
    told = cli("progress run1 -o json").json
    assert (told["step"], told["total_steps"], told["fraction"]) == (4, 100, 0.04)
    assert (told["loss"], told["learning_rate"], told["tokens_per_s"]) == (1.5, 1e-4, 1000)
    assert told["eta_s"] is None  # it has ended
    assert told["log_lines"] == 4 and "series" not in told
    last_ms = max(int(each["timestamp"]) for each in baseten.logs["run1"]) // 1_000_000
    part = cli(f"progress run1 --since {last_ms} -o json").json
    assert (part["step"], part["log_lines"]) == (4, 1)
    (row,) = cli("progress run1 -o csv").csv
    assert (row["job_id"], row["step"], row["loss"]) == ("run1", "4", "1.5")
    out = cli("progress run1 --series").out
    assert "\x1b" not in out
    assert "4 of 100" in out and "run (run1)" in out
    assert ["loss", "4"] in [row.split()[:2] for row in out.splitlines()]


def test_series_as_json_and_csv_hold_every_reading_with_its_step(cli: RunCli, baseten: FakeBaseten) -> None:
    finished_run(baseten, "run1", losses=[3.0, "nan", 2.0])
    found = cli("progress run1 --series -o json").json["series"]["loss"]
    rows = cli("progress run1 --series -o csv").csv
    assert [(one["step"], one["value"]) for one in found] == [(1, 3.0), (2, "NaN"), (3, 2.0)]
    losses = [(row["step"], row["value"]) for row in rows if row["series"] == "loss"]
    assert losses == [("1", "3.0"), ("2", "nan"), ("3", "2.0")]
    assert {row["series"] for row in rows} >= {"loss", "learning_rate", "tokens_per_s"}


def test_curve_of_a_metric_has_one_record_a_reading(cli: RunCli, baseten: FakeBaseten) -> None:
    finished_run(baseten, "run1", losses=[3.0, 2.0], metrics=" reward=0.5 kl=nan")
    rows = cli("progress run1 --metric reward --metric loss -o csv").csv
    assert [(row["series"], row["step"], row["value"]) for row in rows] == [
        ("reward", "1", "0.5"),
        ("reward", "2", "0.5"),
        ("loss", "1", "3.0"),
        ("loss", "2", "2.0"),
    ]
    points = cli("progress run1 --metric kl -o json").json["kl"]
    lines = cli("progress run1 --metric kl -o ndjson").ndjson
    assert [(point["step"], point["value"]) for point in points] == [(1, "NaN"), (2, "NaN")]
    assert lines == [{"series": "kl", **point} for point in points]
    table = cli("progress run1 --metric reward").out.splitlines()
    assert [row.split()[:2] for row in table] == [["CURVE", "READINGS"], ["reward", "2"]]
    document = cli("progress run1 --series -o json").json
    assert document["metrics"] == {"kl": None, "reward": 0.5}
    assert [point["value"] for point in document["series"]["reward"]] == [0.5, 0.5]
    assert cli("progress run1 --metric ward").out.splitlines() == table
    unclear = cli("progress run1 --metric r", code=7).err
    assert "no metric 'r' (it has: learning_rate, reward, steps_per_s, tokens_per_s)" in unclear
    missing = cli("progress run1 --metric rewards -o csv", code=7)
    assert missing.out == ""
    assert "job run1 has no metric 'rewards' (it has: kl, learning_rate, loss, reward" in missing.err


def test_loss_of_a_log_without_steps_has_none(cli: RunCli, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("{'loss': 0.9, 'learning_rate': 1e-4}\n{'loss': 0.8, 'learning_rate': 1e-4}\n")
    rows = cli("progress", "--file", str(path), "--metric", "loss", "-o", "csv").csv
    assert [(row["value"], row["step"]) for row in rows] == [("0.9", ""), ("0.8", "")]


def test_curve_of_a_metric_in_a_saved_log_is_printed(cli: RunCli, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(SAVED)
    (row,) = cli("progress", "--file", str(path), "--metric", "kl", "-o", "csv").csv
    assert (row["step"], row["value"]) == ("3", "nan")
    missing = cli("progress", "--file", str(path), "--metric", "\x1b[2J", code=7)
    assert "\x1b" not in missing.err and "the log has no metric" in missing.err
    both = cli("progress", "--file", str(path), "--metric", "kl", "--each-line", code=2)
    assert "omit --metric" in both.err


def test_eta_depends_on_the_metrics_too(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = []
    live_run(baseten, "runs")
    assert cli("progress runs -o json").json["eta_s"] > 0
    assert any(request.path.endswith("/runs/metrics") for request in baseten.asked)


def test_a_stored_checkpoint_goes_before_one_of_the_log(cli: RunCli, baseten: FakeBaseten) -> None:
    finished_run(baseten, "without", losses=[])
    without = cli("progress without -o json")
    assert (without.json["step"], "no training progress" in without.err) == (None, True)
    finished_run(baseten, "run1", losses=[3.0, 2.5])
    at_ms = int(baseten.logs["run1"][-1]["timestamp"]) // 1_000_000 + 1
    baseten.logs["run1"].append(line("Saving model checkpoint to /tmp/checkpoint-40", at_ms=at_ms))
    alone = cli("progress run1 -o json").json
    listed = {"checkpoint_id": "checkpoint-20", "created_at": "2026-01-02T03:04:05Z"}
    listed |= {"training_job_id": "run1", "checkpoint_type": "full"}
    answer = Answer({"training_job": job("run1"), "checkpoints": [listed]})
    baseten.on("GET", "/v1/training_projects/proj1/jobs/run1/checkpoints", answer)
    both = cli("progress run1 -o json").json
    assert (alone["last_checkpoint"], alone["last_checkpoint_where"]) == ("checkpoint-40", "log")
    assert (both["last_checkpoint"], both["last_checkpoint_where"]) == ("checkpoint-20", "stored")
    assert both["last_checkpoint_at"] == "2026-01-02T03:04:05Z"
    assert "checkpoint-20, " in cli("progress run1").out


SAVED = "step 3 | loss 2.0 | lr 1e-4 | kl nan\nhello\nSaving model checkpoint to out/checkpoint-3\n"


def test_a_saved_log_is_read_line_by_line(cli: RunCli, baseten: FakeBaseten, tmp_path: Path) -> None:
    path, settings = tmp_path / "train.log", tmp_path / "settings.toml"
    path.write_text(SAVED)
    each_line = ("progress", "--file", str(path), "--each-line", "-o", "ndjson")
    result = cli(*each_line)
    step = {"line": 0, "step": 3, "loss": 2.0, "learning_rate": 1e-4, "metrics": {"kl": "NaN"}}
    assert result.ndjson == [step, {"line": 2, "checkpoint": "checkpoint-3"}]
    settings.write_text("[[patterns]]\nname = 'mine'\nregex = 'hello (?P<loss>[0-9.]+)'\n")
    path.write_text("hello 4.5\n")
    by_own_pattern = cli(*each_line, environ={"BT_TUI_CONFIG": str(settings), **baseten.environ()})
    assert by_own_pattern.ndjson == [{"line": 0, "loss": 4.5}]
    missing = cli("progress", "--file", str(tmp_path / "none.log"), code=7)
    assert missing.out == ""
    assert "can't read" in missing.err and "No such file" in missing.err


def test_a_log_saved_as_ndjson_keeps_its_messages(cli: RunCli, tmp_path: Path) -> None:
    path = tmp_path / "train.ndjson"
    messages = enumerate(SAVED.splitlines())
    entries = [{"timestamp": str(n), "replica": "n0", "level": None, "message": one} for n, one in messages]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    told = cli("progress", "--file", str(path), "-o", "json").json
    assert (told["log_lines"], told["lines_read"]) == (3, 2)
    assert (told["step"], told["loss"], told["checkpoints"]) == (3, 2.0, ["checkpoint-3"])


@pytest.mark.parametrize(("seconds_apart", "lines_read"), [(10, [1, 2, 3]), (0, [])])
def test_lines_below_a_remark_are_read_one_by_one_if_they_take_their_time(
    cli: RunCli, tmp_path: Path, seconds_apart: int, lines_read: list[int]
) -> None:
    path = tmp_path / "train.ndjson"
    messages = ["Let me show you the log.", *(f"step {step} | loss 2.0 | lr 1e-4" for step in (10, 20, 30))]
    times = (1_767_268_800_000_000_000 + number * seconds_apart * 10**9 for number in range(4))
    entries = [{"timestamp": str(at), "message": text} for at, text in zip(times, messages, strict=True)]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    readings = cli("progress", "--file", str(path), "--each-line", "-o", "ndjson").ndjson
    assert [reading["line"] for reading in readings] == lines_read


def test_bar_of_an_evaluation_is_no_step_of_the_run(cli: RunCli, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    bars = ("  0%|          | 0/750 [00:00<?, ?it/s]", " 10%|█         | 75/750 [01:04<09:39,  1.16it/s]")
    evaluation = " 75%|███████▌  | 24/32 [00:04<00:01,  5.11it/s]"
    path.write_text("\n".join((*bars, "{'loss': 0.42, 'epoch': 1.0}", evaluation, "{'eval_loss': 0.39}")))
    readings = cli("progress", "--file", str(path), "--each-line", "-o", "ndjson").ndjson
    assert [(reading["line"], reading.get("step")) for reading in readings] == [
        (0, 0),
        (1, 75),
        (2, None),
        (4, None),
    ]


def test_lines_of_a_saved_log_that_are_no_records_are_plain_text(cli: RunCli, tmp_path: Path) -> None:
    path = tmp_path / "train.ndjson"
    hostile = (
        '{"message": ' + "[" * 100_000,
        '{"message": "x", "timestamp": "' + "9" * 5000 + '"}',
        '{"message": "x", "timestamp": "' + "9" * 400 + '"}',
        "Killed " + "store" * 100_000,
    )
    path.write_text("\n".join((*SAVED.splitlines(), *hostile)))
    result = cli("progress", "--file", str(path), "-o", "json")
    assert (result.json["log_lines"], result.json["loss"]) == (7, 2.0)
    cli("progress", "--file", str(path), "--each-line")
