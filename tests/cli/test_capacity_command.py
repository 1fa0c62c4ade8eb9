"""bt-tui capacity against a server that we did not write."""

import time

import pytest

from support.cli import RunCli
from support.fake_baseten import Answer, FakeBaseten, job
from support.fake_runs import CAPACITY, iso, serve_capacity

NOW = time.time()
UPDATE = "capacity update --gpu-type H100 --capacity 24 --team"


@pytest.fixture
def busy(baseten: FakeBaseten) -> FakeBaseten:
    serve_capacity(baseten)
    baseten.jobs = [
        job("late", "PENDING", created_at=iso(NOW - 70), priority=0, node_count=4),
        job("first", "PENDING", created_at=iso(NOW - 65), priority=5),
        job("holds", "RUNNING", created_at=iso(NOW - 7200), node_count=2, name="big"),
        job("over", "COMPLETED"),
    ]
    return baseten


@pytest.mark.proves("docs/commands.md", "`compare`")
def test_the_table_has_limits_teams_and_the_queue(cli: RunCli, busy: FakeBaseten) -> None:
    out = cli("capacity").out
    assert out == cli("capacity view").out
    assert "50%" in out and "=cmd()" in out
    rows = [row for row in out.splitlines() if "H100" in row and ("pending" in row or "running" in row)]
    words = (("1. pending", "first"), ("2. pending", "late"), (" 16 ", "holds"))
    assert [all(word in row for word in pair) for row, pair in zip(rows, words, strict=True)] == [True] * 3
    assert "over" not in out.split()


def test_json_is_the_apis_answer_and_csv_runs_nothing(cli: RunCli, busy: FakeBaseten) -> None:
    document = cli("capacity view -o json").json
    assert document["gpu_capacities"][0] == CAPACITY["gpu_capacities"][0]
    assert [(one["job_id"], one["state"], one["gpus"]) for one in document["jobs"]] == [
        ("first", "waiting", 8),
        ("late", "waiting", 32),
        ("holds", "holding", 16),
    ]
    rows = cli("capacity view --output-format csv").csv
    assert [(row["scope"], row["gpu_type"], row["free"]) for row in rows] == [
        ("organization", "A10G", "3"),
        ("organization", "H100", "32"),
        ("team", "H100", "0"),
    ]
    assert rows[2]["team"] == "'=cmd()"


def test_without_limits_and_without_capacity(cli: RunCli, baseten: FakeBaseten) -> None:
    cli("capacity view", code=7)
    serve_capacity(baseten, {"gpu_capacities": [], "team_gpu_capacities": []})
    baseten.jobs = []
    assert "no GPU limits" in cli("capacity view").err


def test_update_sends_the_teams_id_and_says_as_official(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.on("GET", "/v1/teams", Answer({"teams": [{"id": "t1", "name": "Research"}]}))
    changed = {"team_id": "t1", "team_name": "Research", "gpu_type": "H100", "limit": 24}
    baseten.on("PATCH", "/v1/training/capacity", Answer({"team_gpu_capacity": changed}))
    assert "Research" in cli(f"{UPDATE} Sales", code=7).err
    assert not any(asked.method == "PATCH" for asked in baseten.asked)
    assert cli(f"{UPDATE} Research").out == "Updated Research's H100 capacity to 24.\n"
    assert baseten.asked[-1].body == {"team_id": "t1", "gpu_type": "H100", "max_gpus": 24}
