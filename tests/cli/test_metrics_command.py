"""bt-tui metrics against a server that we did not write."""

import operator
import time

import pytest

from support.cli import RunCli
from support.fake_baseten import Answer, FakeBaseten, ReceivedRequest, job
from support.fake_runs import finished_run, iso, metrics_of, node, samples, serve_metrics

NOW = time.time()
KEY = operator.itemgetter("node", "gpu", "metric")


@pytest.fixture
def running(baseten: FakeBaseten) -> FakeBaseten:
    baseten.jobs = [job("runs", "RUNNING", created_at=iso(NOW - 3600), updated_at=iso(NOW), node_count=2)]
    serve_metrics(
        baseten,
        metrics_of(
            node("node-1", [0.5, 0.6, 0.7], end_s=NOW),
            node("node-0", [0.9, None, 0.95], end_s=NOW),
            cache={"usage_bytes": samples([2**30], end_s=NOW), "utilization": samples([0.1], end_s=NOW)},
        ),
    )
    return baseten


@pytest.mark.proves("docs/commands.md", "`metrics`")
def test_a_table_tells_what_each_node_does_now(cli: RunCli, running: FakeBaseten) -> None:
    result = cli("metrics runs")
    assert result.err == ""
    header, first, second, cache = result.out.splitlines()
    assert header.split()[:2] == ["NODE", "GPU"]
    assert first.split()[:4] == ["node-0", "95%", "95", "95"]
    assert "64.0 GiB" in first and "12.5" in first and "1.00 TiB" in first and "25%" in first
    assert second.split()[:2] == ["node-1", "70%"]
    assert "(cache)" in cache and "1.00 GiB" in cache and "10%" in cache
    serve_metrics(running, metrics_of(node("x", [0.4], end_s=NOW)) | {"per_node_metrics": []})
    assert cli("metrics --job-id runs").out.splitlines()[1].split()[:2] == ["leader", "40%"]


def test_csv_has_a_line_a_sample_in_the_order_of_time(cli: RunCli, running: FakeBaseten) -> None:
    rows = cli("metrics runs -o csv").csv
    assert [row["timestamp"] for row in rows] == sorted(row["timestamp"] for row in rows)
    use = {
        (row["node"], row["gpu"]): [other["value"] for other in rows if KEY(other) == KEY(row)]
        for row in rows
        if (row["metric"], row["unit"]) == ("gpu_utilization", "fraction")
    }
    assert use["node-1", "1"] == ["0.5", "0.6", "0.7"]
    assert use["node-0", "0"] == ["0.9", "", "0.95"]  # a null stays; the leader is not told twice
    assert {row["node"] for row in rows} == {"node-0", "node-1", ""}


def test_json_has_the_series_of_the_chosen_node_and_metric(cli: RunCli, running: FakeBaseten) -> None:
    document = cli("metrics --project llama-sft --node 1 --metric gpu_utilization -o json").json
    assert document["job_id"] == "runs"
    shown = [(one["node"], one["gpu"], one["unit"]) for one in document["series"]]
    assert shown == [("node-1", "0", "fraction"), ("node-1", "1", "fraction")]
    assert [one["value"] for one in document["series"][0]["samples"]] == [0.5, 0.6, 0.7]
    serve_metrics(running, metrics_of())
    none_yet = cli("metrics runs -o json")
    assert none_yet.json["series"] == []
    assert "no samples yet" in none_yet.err


def test_the_server_is_asked_for_window_and_step(cli: RunCli, running: FakeBaseten) -> None:
    cli("metrics runs --since 30m --step 15 -o csv")
    asked = running.asked[-1].query
    assert asked["step_seconds"] == "15"
    assert abs(int(asked["start_epoch_millis"]) / 1000 - (time.time() - 1800)) < 60
    cli("metrics --job-id runs --start 2026-05-01T12:00Z --end 2026-05-01T13:00Z -o json")
    asked = running.asked[-1].query
    assert (asked["start_epoch_millis"], asked["end_epoch_millis"]) == ("1777636800000", "1777640400000")

    def picky(asked: ReceivedRequest) -> Answer:
        if "start_epoch_millis" in asked.query:
            return Answer({"code": "VALIDATION_ERROR", "message": "window too long"}, status=400)
        return Answer(metrics_of(node("node-0", [0.5], end_s=NOW)))

    running.on("GET", r".*/metrics", picky)
    assert "node-0" in cli("metrics runs -o csv").out


@pytest.mark.usefixtures("no_waits")
def test_following_tells_each_sample_once_and_ends_with_the_job(cli: RunCli, running: FakeBaseten) -> None:
    answers = [[0.1, 0.2], [0.2, 0.3]]

    def growing(_asked: ReceivedRequest) -> Answer:
        use = answers.pop(0) if len(answers) > 1 else answers[0]
        if len(answers) == 1:
            running.jobs = [dict(running.jobs[0], current_status="TRAINING_JOB_FAILED")]
        end_s = NOW if use == [0.2, 0.3] else NOW - 60
        return Answer(metrics_of(node("node-0", use, end_s=end_s, gpus=1)))

    running.on("GET", r".*/metrics", growing)
    result = cli("metrics runs --follow --interval 1 --metric gpu_utilization -o json", code=3)
    assert [row["value"] for row in result.ndjson] == [0.1, 0.2, 0.3]


def test_metrics_of_the_trainer_are_listed(cli: RunCli, baseten: FakeBaseten) -> None:
    finished_run(baseten, "run1", losses=[3.0, 2.0], metrics=" reward=0.5 kl=nan")
    listed = cli("metrics run1 --list -o json").json
    assert {"name": "reward", "readings": 2, "last": 0.5, "unit": ""} in listed
    assert {"name": "kl", "readings": 2, "last": "NaN", "unit": ""} in listed
    assert listed[0]["name"] == "loss"
    rows = cli("metrics run1 --list -o csv").csv
    assert [row["name"] for row in rows] == [entry["name"] for entry in listed]
    assert ["reward", "2"] in [row.split()[:2] for row in cli("metrics run1 --list").out.splitlines()]


def test_list_of_metrics_counts_the_names_without_a_curve(cli: RunCli, baseten: FakeBaseten) -> None:
    names = "".join(f" x{chr(97 + n // 26)}{chr(97 + n % 26)}=1" for n in range(203))
    finished_run(baseten, "run1", losses=[3.0], metrics=names)
    result = cli("metrics run1 --list -o csv")
    assert "3 more metrics left out" in result.err
    assert sum(row["name"].startswith("x") for row in result.csv) == 200


@pytest.mark.parametrize("option", ["--follow", "--node 1", "-o chart", "--metric cpu_usage", "--step 5"])
def test_list_of_metrics_takes_no_option_of_samples(cli: RunCli, running: FakeBaseten, option: str) -> None:
    assert "--list lists the curves" in cli(f"metrics runs --list {option}", code=2).err


def test_list_of_metrics_of_a_log_without_any_is_empty(cli: RunCli, running: FakeBaseten) -> None:
    result = cli("metrics runs --list -o json")
    assert result.json == []
    assert "no metrics found in the log" in result.err
