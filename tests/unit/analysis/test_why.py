"""The evidence behind findings and failures."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from api_client.models.logs import NS_PER_S, LogLine
from support.worlds import CHECKPOINTS, JOBS, ONE_O_CLOCK, job, run
from tui.analysis.health.registry import KINDS
from tui.analysis.node_metrics import MetricsSnapshot
from tui.analysis.run.finding import FindingKind, HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.series import Series
from tui.analysis.why.explain import exit_code, exit_words, explain, explained_range, failure_of, late_ranks
from tui.analysis.why.explanation import Clue, Explanation, Section, markdown
from tui.analysis.why.lines import last_lines, only_on, warnings

RANK_5_DIED = """
 0 node-0 step 118 loss 1.2
 3 node-1 [rank13]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
 4 node-1 E torch.distributed.elastic: failed (exitcode: 1) local_rank: 5 (pid: 77) of binary: /usr/bin/python
 9 node-0 [rank2]: RuntimeError: NCCL communicator was aborted on rank 2.
 9 node-0 [rank3]: RuntimeError: NCCL communicator was aborted on rank 3.
 9 node-0 ERROR Sending process 81 closing signal SIGTERM
"""
GAVE_UP = """
 3 node-0 ERROR hub: read timed out, retry 1 of 3
 9 node-0 ERROR hub: 3 of 3 attempts failed: ConnectionError
"""
KILLED = """
 5 node-0 run.sh: line 12:   412 Killed                  python train.py
 6 node-0 ERROR torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 0 (pid: 412)
"""
SURVIVED_THEN_FAILED = """
 0 node-0 ERROR ValueError: bad sample 7, skipped
99 node-0 step 900 loss 0.4
120 node-0 Traceback (most recent call last):
120 node-0   File "train.py", line 3, in <module>
120 node-0 OSError: [Errno 28] No space left on device
"""
ONLY_TIMEOUTS = """
600 node-0 [rank0]: [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=90)
601 node-1 [rank8]: RuntimeError: Connection reset by peer
601 node-0 Fatal Python error: Aborted
"""
LAUNCHER = """
0 node-0 [rank3]: Traceback (most recent call last):
0 node-0 [rank3]:   File "train.py", line 61, in main
0 node-0 Traceback (most recent call last):
0 node-0   File "/usr/local/bin/torchrun", line 8, in <module>
0 node-0 [rank3]: torch.cuda.OutOfMemoryError: CUDA out of memory.
1 node-0 torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
1 node-0   exitcode  : 1 (pid: 84)
"""
DEEPSPEED = "0 node-0 [ERROR] [launch.py:325:sigkill_handler] ['python', 'x'] exits with return code = -9"


def log(text: str) -> list[LogLine]:
    rows = [row.strip().split(" ", 2) for row in text.strip("\n").splitlines()]
    return [LogLine(int(at) * NS_PER_S, message, node, None) for at, node, message in rows]


@pytest.mark.parametrize(
    ("text", "last_step_s", "cause", "code"),
    [
        (RANK_5_DIED, 0, "node-1 [rank13]: torch.OutOfMemoryError: CUDA out of memory.", 1),
        (KILLED, 0, "node-0 run.sh: line 12:   412 Killed", -9),
        (SURVIVED_THEN_FAILED, 99, "node-0 OSError: [Errno 28] No space left on device", None),
        (ONLY_TIMEOUTS, 0, "", None),
        (LAUNCHER, 0, "node-0 [rank3]: torch.cuda.OutOfMemoryError: CUDA out of memory.", 1),
        (DEEPSPEED, 0, "", -9),
        (GAVE_UP, 0, "node-0 ERROR hub: 3 of 3 attempts failed: ConnectionError", None),
    ],
    ids=["oom", "killed", "survived", "timeouts", "launcher", "deepspeed", "retried"],
)
@pytest.mark.proves("docs/health.md", "Health and cost")
def test_the_cause_of_a_failure_is_told_apart_from_what_follows(
    text: str, last_step_s: int, cause: str, code: int | None
) -> None:
    found = failure_of(log(text), last_step_s * NS_PER_S, 1.0, "")
    said = f"{found.cause.node} {found.cause.text}" if found.cause is not None else ""
    assert said.startswith(cause) if cause else said == ""
    assert found.exit_code == code


def test_the_traceback_comes_with_the_cause_and_alike_errors_are_counted() -> None:
    trace = failure_of(log(SURVIVED_THEN_FAILED), 99 * NS_PER_S, 1.0, "").trace
    assert [clue.text for clue in trace] == [line.message for line in log(SURVIVED_THEN_FAILED)[2:]]
    assert len(failure_of(log(LAUNCHER), None, None, "").trace) == 3  # without the launcher's own
    assert failure_of(log(GAVE_UP), 0, 1.0, "").following_errors == ()
    followed = failure_of(log(RANK_5_DIED), 0, 1.0, "").following_errors
    assert [(clue.count, clue.text.split()[0]) for clue in followed] == [
        (1, "E"),
        (2, "[rank2]:"),
        (1, "ERROR"),
    ]


def test_exit_codes() -> None:
    assert exit_code("node-0: exit code 137 (killed: out of host memory)") == 137
    assert exit_code("exit code 0") is exit_code("will exit in 10 s") is None
    words = ["exit code 137 (SIGKILL)", "exit code -11 (SIGSEGV)", "exit code 1"]
    assert [exit_words(code) for code in (137, -11, 1)] == words


SLOW = log(
    "\n".join(
        f"{at} node-{node} {text}"
        for at in range(4)
        for node in range(3)
        for text in (
            f"WARNING dataloader waited {at} ms",
            f"rank {node} at step {at}",
            *([f"WARNING /scratch reads at 0.{at} GB/s", f"cache miss {at}"] if node == 2 else []),
        )
    )
)


@pytest.mark.proves("docs/health.md", "Health and cost")
def test_lines_of_one_node_alone_the_last_of_each_and_the_warnings_of_all() -> None:
    assert [(clue.text, clue.count, clue.is_warning) for clue in only_on(SLOW, "node-2", limit=9)] == [
        ("WARNING /scratch reads at 0.3 GB/s", 4, True),
        ("cache miss 3", 4, False),
    ]
    assert only_on(SLOW, "node-1", limit=9) == ()
    assert only_on([line for line in SLOW if line.replica == "node-2"], "node-2", limit=9) == ()
    last = [(clue.node, clue.at_ns // NS_PER_S) for clue in last_lines(SLOW[:-5], limit=9)]
    assert last == [("node-2", 2), ("node-0", 3), ("node-1", 3)]
    assert [(clue.node, clue.count) for clue in warnings(SLOW, limit=2)] == [("node-0", 4), ("node-1", 4)]


@pytest.mark.parametrize(("work", "late"), [((90, 90, 89, 90), [2]), ((90, 90, 89, 89), []), ((90,), [])])
def test_the_ranks_that_a_collective_waits_for(work: tuple[int, ...], late: list[int]) -> None:
    text = "[Rank {}] failure detected, last enqueued NCCL work: {}, last completed NCCL work: 88"
    lines = [LogLine(0, text.format(rank, last), "node-0", None) for rank, last in enumerate(work)]
    assert late_ranks(lines) == late


@pytest.mark.proves("docs/commands.md", "`why`")
def test_markdown_holds_hostile_lines() -> None:
    clue = Clue("```\n\x1b[31m# not a heading", 0, "node-0", 3)
    text = markdown(Explanation("bad", None, "because", ("one",), (Section("Lines", (clue,)),)), "run")
    assert text.count("```") == 2
    assert "\x1b" not in text
    assert "00:00:00 node-0 3× '''" in text


RUN = RunSnapshot(job("job1"), ONE_O_CLOCK, ONE_O_CLOCK)


@pytest.mark.parametrize(("kind", "hours_read"), [(KINDS["stalled"], 5), (KINDS["straggler"], 1)])
@pytest.mark.proves("docs/health.md", "Health and cost")
def test_how_far_back_lines_are_read(kind: FindingKind, hours_read: int) -> None:
    found = HealthFinding(kind, "warning", "", since=ONE_O_CLOCK - timedelta(hours=5))
    start, end = explained_range(RUN, found)
    assert (ONE_O_CLOCK - start) // timedelta(hours=1) == hours_read
    assert end == ONE_O_CLOCK


FLAPS = log("""
5 node-0 step 8 loss 1.2
6 node-5 WARNING dataloader waited 90 ms
7 node-5 node-5:1402:2210 [4] transport/net_ib.cc:257 NCCL WARN NET/IB : mlx5_4:1 Got async event : port error
9 node-5 node-5:1402:2210 [4] transport/net_ib.cc:257 NCCL WARN NET/IB : mlx5_4:1 Got async event : port error
""")


@pytest.mark.proves("docs/health.md", "Health and cost")
@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        (FLAPS, "node-5 logs: node-5:1402:2210 [4] transport"),
        (FLAPS[1:], ""),
        (FLAPS + SLOW[:4], "node-5 logs"),
    ],
)
def test_slow_run_is_explained_by_the_node_that_warns_of_a_resource(
    lines: list[LogLine], answer: str
) -> None:
    slow = HealthFinding(KINDS["slowdown"], "warning", "50% slower", since=ONE_O_CLOCK)
    told = explain(RUN, slow, lines).answer
    assert told.startswith(answer) and bool(told) == bool(answer)


def test_a_filling_cache_has_a_chart() -> None:
    use = Series("cache", (1.0, 2.0), (0.8, 0.9))
    run = replace(RUN, health_metrics=MetricsSnapshot(cache_utilization=use))
    found = explain(run, HealthFinding(KINDS["cache-filling"], "warning", "cache is 90% full"), [])
    assert [(one.unit, one.series) for one in found.figures] == [("%", (use,))]


def test_halt_names_the_checkpoint_from_before() -> None:
    halt = HealthFinding(KINDS["stalled"], "critical", "no step", since=ONE_O_CLOCK)
    facts = explain(replace(RUN, checkpoints=CHECKPOINTS), halt, ()).facts
    assert any(fact.startswith("last checkpoint from before: checkpoint-4000") for fact in facts), facts


def test_no_checkpoint_is_claimed_to_be_missing_before_they_are_listed() -> None:
    found = HealthFinding(KINDS["loss-not-finite"], "critical", "loss is NaN", since=ONE_O_CLOCK)
    assert explain(RUN, found, ()).facts == ()
    assert explain(replace(RUN, checkpoints=()), found, ()).facts == ("no earlier checkpoint is listed",)


def test_explanation_says_what_a_problem_has_cost_so_far() -> None:
    priced = replace(RUN, price_per_minute=0.5)
    stalled = HealthFinding(KINDS["stalled"], "critical", "no step", since=ONE_O_CLOCK - timedelta(hours=2))
    assert explain(priced, stalled, ()).facts == (
        "lost so far: ≈$240, 100% of the run's $120 an hour (estimate)",
    )
    newly = replace(stalled, since=ONE_O_CLOCK)
    assert explain(priced, newly, ()).facts == ("the run costs $120 an hour (estimate)",)


def test_explanation_of_a_failure_says_what_it_cost_and_what_is_left() -> None:
    failed = run(JOBS[6], findings=())
    facts = explain(failed, None, ()).facts
    assert "ran 42m for ≈ $54.60" in facts and "newest checkpoint: checkpoint-4000" in facts
    assert "no checkpoint" in explain(replace(failed, checkpoints=()), None, ()).facts


@pytest.mark.parametrize(("hours", "often"), [(5, "4× in the last hour, no"), (0.5, "(4×, no")])
def test_a_count_of_the_last_hour_says_so(hours: float, often: str) -> None:
    found = HealthFinding(KINDS["straggler"], "warning", "", "node-2", ONE_O_CLOCK - timedelta(hours=hours))
    assert often in explain(RUN, found, SLOW).answer
