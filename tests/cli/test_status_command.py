"""``bt-tui status``: one line for tmux and prompts."""

from support.cli import RunCli
from support.fake_baseten import Answer, FakeBaseten, job
from support.fake_runs import live_run


def test_a_line_of_all_jobs_and_of_one(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = [job("waits", "PENDING"), job("over", "FAILED")]
    live_run(baseten, "runs")
    assert cli("status").out == "● 1 running ◌ 1 pending\n"
    assert cli("status over").out == "✗ over failed\n"
    assert cli("status runs").out.startswith("● runs 4 % loss 1.21 1d ")
    told = cli("status runs -o json").json
    assert (told["job_id"], told["step"], told["loss"]) == ("runs", 360, 1.205)


def test_it_gives_up_in_time(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.on("POST", ".*", Answer(hangs=True))
    late = cli("status --timeout 0.1")
    assert (late.code, late.out, "no answer within 0.1 s" in late.err) == (8, "", True)
