"""bt-tui compare and diff against a server that we did not write."""

import re
from collections.abc import Callable, Iterator

import pytest

from support.archives import packed
from support.cli import Result, RunCli
from support.fake_baseten import Answer, FakeBaseten, job
from support.fake_object_store import FakeObjectStore, Stored
from support.fake_runs import finished_run
from tui.commands.support.output import CommandOutput
from tui.readers import code


@pytest.fixture
def two(baseten: FakeBaseten) -> FakeBaseten:
    finished_run(baseten, "one", name="a", hours=2, losses=[3.0, 2.0, 1.5], speed=1000)
    finished_run(baseten, "two", name="b", hours=1, losses=[3.0, 1.0, 1.2], speed=2000, status="FAILED")
    prices = [{"instance_type": baseten.jobs[-1]["instance_type"], "price": 0.5}]
    baseten.on("GET", "/v1/instance_type_prices", Answer({"instance_types": prices}))
    return baseten


@pytest.mark.proves("docs/commands.md", "`compare`")
def test_json_agrees_with_sums_done_by_hand(cli: RunCli, two: FakeBaseten) -> None:
    one, other = cli("compare one two -o json").json["jobs"]
    # Two nodes of eight GPUs for two hours, and for one; 0.50 $ a minute and node.
    assert (one["gpu_hours"], other["gpu_hours"]) == (32.0, 16.0)
    assert (one["cost_usd"], other["cost_usd"]) == (120.0, 60.0)
    assert (one["final_loss"], one["best_loss"], one["best_loss_step"]) == (1.5, 1.5, 3)
    assert (other["final_loss"], other["best_loss"], other["best_loss_step"]) == (1.2, 1.0, 2)
    assert (one["throughput"], other["throughput"], one["throughput_unit"]) == (1000.0, 2000.0, "tok/s")
    assert (one["status"], other["status"]) == ("TRAINING_JOB_COMPLETED", "TRAINING_JOB_FAILED")
    two.on("GET", "/v1/instance_type_prices", Answer({"code": "NOT_FOUND", "message": "no"}, status=404))
    unpriced = cli("compare one two -o json").json["jobs"][0]
    assert (unpriced["gpu_hours"], "cost_usd" in unpriced) == (32.0, False), "no price, no money"


def test_the_table_marks_what_differs_and_the_best(cli: RunCli, two: FakeBaseten) -> None:
    lines = {row[3:15].strip(): row for row in cli("compare one two").out.splitlines()}
    assert lines["status"].startswith("≠") and "✗ failed" in lines["status"]
    assert lines["nodes"].startswith(" ")
    assert "★ 1.00 −33%" in lines["best loss"]
    assert "≈ $60.00 −50%" in lines["cost, est."]


def test_runs_with_a_reward_are_ranked_by_it(cli: RunCli, baseten: FakeBaseten) -> None:
    for name, reward in (("one", 0.5), ("two", 0.75)):
        finished_run(baseten, name, name=name, losses=[2.0, 1.0], metrics=f" reward={reward}")
    lines = {row[3:15].strip(): row for row in cli("compare one two").out.splitlines()}
    assert "★ 0.75" in lines["last reward"]
    assert "★" not in lines["last loss"] and "best loss" not in lines


def test_csv_is_a_line_a_property_and_the_curves_a_line_a_reading(cli: RunCli, two: FakeBaseten) -> None:
    by_property = {row["property"]: row for row in cli("compare one two -o csv").csv}
    assert (by_property["best_loss"]["one"], by_property["best_loss"]["two"]) == ("1.5", "1.0")
    assert by_property["nodes"]["differs"] == "false" and by_property["name"]["differs"] == "true"
    curves = cli("compare one two -o csv --curves").csv
    loss = [row for row in curves if (row["chart"], row["series"]) == ("loss", "b")]
    assert [(row["step"], row["value"]) for row in loss] == [("1", "3.0"), ("2", "1.0"), ("3", "1.2")]
    relative = cli("compare one two -o csv --curves --x relative").csv
    times = [row["time"] for row in relative if row["series"] == "b"]
    assert [float(time) for time in times[:3]] == [0.0, 10.0, 20.0]  # from each run's first line


@pytest.mark.proves("docs/guard.md", "Resume")
def test_curves_of_a_resumed_run_begin_with_those_of_the_run_before(
    cli: RunCli, baseten: FakeBaseten
) -> None:
    finished_run(baseten, "first", name="a", hours=4, losses=[3.0, 2.0, 1.5, 1.4], status="PREEMPTED")
    finished_run(baseten, "then", name="a-r2", hours=1, losses=[1.6, 1.3, 1.2])
    for line in baseten.logs["then"]:
        line["message"] = re.sub(r"step (\d)", lambda match: f"step {int(match[1]) + 2}", line["message"])
    curves = cli("compare first then -o csv --curves").csv
    shown = {
        name: [
            (row["step"], row["value"]) for row in curves if (row["chart"], row["series"]) == ("loss", name)
        ]
        for name in ("a", "a-r2")
    }
    whole = [("1", "3.0"), ("2", "2.0"), ("3", "1.6"), ("4", "1.3"), ("5", "1.2")]
    assert shown["a-r2"] == whole, "steps that were lost are left out, as after a restart"
    assert shown["a"][-1] == ("4", "1.4")
    assert [row["step"] for row in cli("progress then --metric loss -o csv").csv] == ["3", "4", "5"]
    joined = cli("progress then --metric loss -o csv --with-earlier").csv
    assert [float(row["value"]) for row in joined] == [3.0, 2.0, 1.6, 1.3, 1.2]


def test_curve_of_the_run_before_stays_if_the_resumed_one_counts_from_the_beginning(
    cli: RunCli, baseten: FakeBaseten
) -> None:
    finished_run(baseten, "first", name="a", hours=4, losses=[3.0, 2.0, 1.5], status="PREEMPTED")
    finished_run(baseten, "then", name="a-r2", hours=1, losses=[1.4, 1.3])
    joined = cli("progress then --metric loss -o csv --with-earlier").csv
    assert [float(row["value"]) for row in joined] == [3.0, 2.0, 1.5, 1.4, 1.3]
    by_time = cli("compare first then -o csv --curves --x relative").csv
    shown = [row["value"] for row in by_time if (row["chart"], row["series"]) == ("loss", "a-r2")]
    assert shown == ["3.0", "2.0", "1.5", "1.4", "1.3"]


def test_a_job_that_is_gone_or_has_no_progress_stops_no_other(cli: RunCli, two: FakeBaseten) -> None:
    finished_run(two, "quiet", losses=[])
    result = cli("compare one nobody quiet -o json", code=7)
    assert "skipped nobody" in result.err
    assert [one["job_id"] for one in result.json["jobs"]] == ["one", "quiet"]
    assert result.json["jobs"][1]["final_loss"] is None
    finished_run(two, "policy", losses=[0.2, 0.1, -0.2, -0.3])
    for text in ("Saving model checkpoint to /tmp/checkpoint-2", "step 2/100 loss=-0.1"):  # it went back
        two.logs["policy"].append(two.logs["policy"][-1] | {"message": text})
    of_policy, one = cli("compare policy one -o json").json["jobs"]
    names = ("final_loss", "best_loss", "last_checkpoint", "common_step", "common_step_loss")
    assert [of_policy.get(name, "none") for name in names] == [-0.1, None, "none", 2, -0.1]
    assert (one["common_step"], one["common_step_loss"]) == (2, 2.0)


Diff = Callable[..., Result]

CONFIG = b"""\
from truss_train import Image, Runtime, TrainingJob
training_job = TrainingJob(
    image=Image(base_image="torch:2.7"),
    runtime=Runtime(environment_variables={"TOKEN": "s3cr3t-0815"}),
)
"""
BEFORE = {"config.py": b"from truss_train import TrainingJob\n", "train.py": b"lr = 1\n", "same.py": b"x\n"}
AFTER = {"config.py": CONFIG, "train.py": b"lr = 2\n", "same.py": b"x\n"}


@pytest.fixture
def store() -> Iterator[FakeObjectStore]:
    archives = (Stored("before/a.tgz", packed(BEFORE)), Stored("after/b.tgz", packed(AFTER)))
    with FakeObjectStore(*archives) as store:
        h200 = {"instance_type": {"id": "h200x8", "name": "H200x8", "gpu_count": 8, "gpu_type": "H200"}}
        store.api.jobs = [job("before"), job("after", "RUNNING", name="second`try", **h200), job("none")]
        for file in archives:
            answer = Answer({"artifact_presigned_urls": [store.url(file)]})
            store.api.on("GET", f".*/jobs/{file.name.partition('/')[0]}/download", answer)
        yield store


@pytest.fixture
def diff(cli: RunCli, store: FakeObjectStore) -> Diff:
    return lambda *arguments, code=0: cli("diff", *arguments, environ=store.environ(), code=code)


@pytest.mark.proves("docs/commands.md", "`diff`")
def test_hardware_config_environment_and_code_differ(diff: Diff, store: FakeObjectStore) -> None:
    result = diff("before", "after")
    assert result.err == ""
    assert result.out.splitlines() == [
        "before → second`try (after)",
        "",
        "job",
        "  instance: H100x8 → H200x8",
        "  GPU: H100 → H200",
        "",
        "config.py changed",
        "@@ -1 +1,5 @@",
        "-from truss_train import TrainingJob",
        "+from truss_train import Image, Runtime, TrainingJob",
        "+training_job = TrainingJob(",
        '+    image=Image(base_image="torch:2.7"),',
        '+    runtime=Runtime(environment_variables={"TOKEN": <new value>}),',
        "+)",
        "",
        "train.py changed",
        "@@ -1 +1 @@",
        "-lr = 1",
        "+lr = 2",
    ]


@pytest.mark.proves("docs/commands.md", "`diff`")
def test_every_format_says_the_same_and_no_value_of_a_variable(diff: Diff, store: FakeObjectStore) -> None:
    shown = diff("before", "after", "-o", "json").json
    assert [file["path"] for file in shown["files"]] == ["config.py", "train.py"]
    assert [file["size_bytes_before"] for file in shown["files"]] == [36, 7]
    markdown = diff("before", "after", "-o", "markdown").out
    assert markdown.endswith("@@ -1 +1 @@\n-lr = 1\n+lr = 2\n```\n") and "second'try" in markdown
    assert "s3cr3t" not in markdown and "s3cr3t" not in str(shown)


def test_job_without_code_is_compared_by_its_hardware(diff: Diff, store: FakeObjectStore) -> None:
    store.api.on("GET", ".*/jobs/none/download", Answer({"artifact_presigned_urls": []}))
    result = diff("none", "after")
    assert "H100 → H200" in result.out
    assert result.err == "bt-tui: code not compared: job none has no code archive\n"
    assert diff("none", "none").err.endswith("bt-tui: the machines are the same\n")
    shown = diff("none", "after", "-o", "json").json
    assert (shown["files"], "no code archive" in shown["code_not_compared_because"]) == ([], True)


def test_equal_jobs_differ_in_nothing(diff: Diff, store: FakeObjectStore) -> None:
    result = diff("before", "before")
    assert result.err == "bt-tui: no differences in hardware or code\n"
    markdown = diff("before", "before", "-o", "markdown").out
    assert markdown.endswith("\n\nno differences in hardware or code\n") and "```" not in markdown


def test_archive_that_is_damaged_or_too_large_is_not_compared(
    diff: Diff, store: FakeObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.files[0].content = b"no archive"
    assert "can't be read: damaged or not an archive" in diff("before", "after").err
    monkeypatch.setattr(code, "MAX_ARCHIVE_BYTES", 5)
    assert "is larger than 5 bytes" in diff("before", "after").err


def test_job_that_does_not_exist_is_an_error(diff: Diff, store: FakeObjectStore) -> None:
    diff("before", "nothing", code=7)


def test_long_line_is_cut_on_a_terminal_only(
    diff: Diff, store: FakeObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.files[1].content = packed({"train.py": b"x = '" + b"a" * 500 + b"'\n"})
    assert "a" * 500 in diff("before", "after").out
    monkeypatch.setattr(CommandOutput, "width_cells", 80)
    on_terminal = diff("before", "after").out
    assert "a" * 70 in on_terminal and max(map(len, on_terminal.splitlines())) == 80
    assert "a" * 500 in diff("before", "after", "-o", "json").out
