"""bt-tui health, whose exit code tells, and status, which is one line for tmux and prompts."""

import time

import pytest

from support.cli import RunCli
from support.fake_baseten import Answer, FakeBaseten, job
from support.fake_runs import STEADY, finished_run, iso, live_run

BROKEN = [*STEADY, *["nan"] * 60]


@pytest.mark.proves("docs/commands.md", "`metrics`")
def test_all_jobs_are_judged_sickest_first_with_a_total(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = []
    live_run(baseten, "well")
    baseten.jobs.append(job("queued", "PENDING", created_at=iso(time.time() - 5)))
    live_run(baseten, "nan", BROKEN)
    live_run(baseten, "fine")
    table, document, alone = cli("health"), cli("health -o json"), cli("health well")
    assert table.out.splitlines()[0].split()[0] == "nan"
    ids = [one["job_id"] for one in document.json]
    assert (ids[0], set(ids[1:3]), ids[3]) == ("nan", {"well", "fine"}, "queued")
    assert "loss-not-finite" in {one["kind"] for one in document.json[0]["findings"]}
    assert table.err == document.err == "bt-tui: 4 jobs: 1 critical, 2 healthy, 1 waiting\n"
    assert [one["job_id"] for one in cli("health well nan -o json").json] == ["well", "nan"]
    assert (alone.code, "✓ healthy" in alone.out) == (0, True)


def test_of_several_jobs_the_gravest_counts(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = []
    live_run(baseten, "well")
    finished_run(baseten, "over", losses=[1.0], status="FAILED")
    live_run(baseten, "hangs", silent_s=1800)
    named, everything = cli("health well over hangs -o json"), cli("health -o json")
    assert named.code == everything.code == 11
    assert [one["job_id"] for one in named.json] == ["well", "over", "hangs"]
    assert {one["job_id"] for one in everything.json} == {"well", "hangs"}
    assert cli("health well over").code == 3
    hangs = named.json[2]
    found = hangs["findings"][0]
    assert (hangs["verdict"], found["kind"]) == ("critical", "stalled")
    assert found["short"].startswith("no step or log line for")
    assert "100%" in found["text"] or "95%" in found["text"]


@pytest.mark.proves("docs/health.md", "Health and cost")
def test_a_run_whose_metrics_cannot_be_read_is_not_called_healthy(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = []
    live_run(baseten, "well")
    live_run(baseten, "nan", BROKEN)
    baseten.on("GET", r".*/jobs/\w+/metrics", Answer({"code": "NO", "message": "not for you"}, status=403))
    assert cli("health well").code == 6
    baseten.on("GET", r".*/jobs/\w+/metrics", Answer({"cpu_usage": "soon"}))
    alone, both = cli("health well"), cli("health -o json")
    assert (alone.code, both.code) == (1, 11), "what its log tells of the other is told all the same"
    assert "healthy" not in alone.out and "can't read the metrics" in alone.out
    assert "metrics of well could not be read" in alone.err
    told = {one["job_id"]: one for one in both.json}
    assert told["well"]["verdict"] == "unknown" and told["well"]["unread"] == ["metrics"]
    assert "loss-not-finite" in {one["kind"] for one in told["nan"]["findings"]}


@pytest.mark.proves("docs/commands.md", "`status`")
def test_a_line_of_all_jobs_and_of_one(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = [job("waits", "PENDING"), job("over", "FAILED")]
    live_run(baseten, "runs")
    assert (cli("status").out, cli("status over").out) == ("● 1 running ◌ 1 pending\n", "✗ over failed\n")
    assert cli("status runs").out.startswith("● runs 4% loss 1.21 1d ")
    told = cli("status runs -o json").json
    assert (told["job_id"], told["step"], told["loss"]) == ("runs", 360, 1.205)
    finished_run(baseten, "due", losses=[2.0] * 40, total=60, status="RUNNING")
    assert "67% loss 2" in (line := cli("status due").out) and "left" not in line, "it should have ended"


HOSTILE_NAME = "#{pane_pid} ##{pane_pid} #[fg=red] #(id)"


@pytest.mark.parametrize(
    ("tmux", "expected"),
    [
        ({"TMUX": "/tmp/tmux-0/default,123,-1"}, "##{pane_pid} ####{pane_pid} ##[fg=red] ##(id)"),
        (
            {"TMUX": "/tmp/tmux-0/default,123,-1", "TMUX_PANE": "%9"},
            "##{pane_pid} ####{pane_pid} ##[fg=red] ##(id)",
        ),
        ({"TMUX": "/tmp/tmux-0/default,123,0", "TMUX_PANE": "%1"}, HOSTILE_NAME),
        ({"TMUX": ""}, HOSTILE_NAME),
    ],
)
def test_name_is_no_format_in_a_status_line_of_tmux(
    cli: RunCli, baseten: FakeBaseten, tmux: dict[str, str], expected: str
) -> None:
    baseten.jobs = [job("over", "FAILED", name=HOSTILE_NAME)]
    environ = baseten.environ() | tmux
    assert cli("status over", environ=environ).out == f"✗ {expected} failed\n"
    assert cli("status over -o json", environ=environ).json["name"] == HOSTILE_NAME


def test_it_gives_up_in_time(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.on("POST", ".*", Answer(hangs=True))
    late = cli("status --timeout 0.1")
    assert (late.code, late.out, "no answer within 0.1 s" in late.err) == (8, "", True)
