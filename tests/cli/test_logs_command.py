"""logs against a server that we did not write."""

from datetime import UTC, datetime, timedelta

import pytest

from support.cli import RunCli
from support.fake_baseten import LONG_AGO_MS, Answer, FakeBaseten, ReceivedRequest, job, line


def test_whole_log_oldest_first_as_ndjson(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.logs["job1"] = [
        line("second", at_ms=LONG_AGO_MS + 2_000, replica="node-1", level="ERROR"),
        line("first", at_ms=LONG_AGO_MS + 1_000, level=None),
    ]
    result = cli("logs job1 -o ndjson")
    assert (result.code, result.err) == (0, "")
    assert result.ndjson == [
        {
            "timestamp": str((LONG_AGO_MS + second * 1_000) * 1_000_000),
            "time": f"2025-03-01T12:00:0{second}.000000Z",
            **{"replica": replica, "level": level, "message": message},
        }
        for second, replica, level, message in (
            (1, "node-0", None, "first"),
            (2, "node-1", "ERROR", "second"),
        )
    ]


def test_text_is_inert_and_keeps_nodes_apart(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.logs["job1"] = [
        line("\x1b[2J\x1b[31mboom\x00[red]x[/red]", at_ms=LONG_AGO_MS),
        line("a trace\n  at here", at_ms=LONG_AGO_MS + 1, replica="node-1"),
    ]
    out = cli("logs job1").out
    assert "\x1b" not in out and "\x00" not in out
    first, second, continued = out.splitlines()
    assert "boom" in first and "[red]x[/red]" in first
    assert second.endswith("node-1  a trace")
    assert continued.endswith("    at here")
    assert continued.index("at here") == second.index("a trace") + 2


def test_hostile_text_cannot_break_ndjson(cli: RunCli, baseten: FakeBaseten) -> None:
    hostile = '\x1b]0;x\x07 \x9b31m \u2028 \u202e \x7f "quoted" \n end'
    baseten.logs["job1"] = [line(hostile), line("m" * 1_000_000, at_ms=LONG_AGO_MS + 1)]
    result = cli("logs job1 -o ndjson")
    assert result.out.isascii()
    assert not any(character < " " or character == "\x7f" for character in result.out if character != "\n")
    assert [each["message"] for each in result.ndjson] == [hostile, "m" * 1_000_000]


def test_follow_of_a_job_that_waits_tells_for_what_and_each_change_once(
    cli: RunCli, baseten: FakeBaseten, monkeypatch: pytest.MonkeyPatch
) -> None:
    for interval in ("tui.commands.logs.waiting.INTERVAL_S", "api_client.streams.job_poller.JOB_INTERVAL_S"):
        monkeypatch.setattr(interval, 0.01)
    now = datetime.now(UTC)
    began = (now - timedelta(minutes=12)).isoformat()
    life = [
        ("PENDING", None),
        ("PENDING", "spot \x1b[31mwould start now"),
        ("DEPLOYING", None),
        ("RUNNING", None),
    ]
    polls = iter([state for state in life for _ in range(3)])
    ahead = [{"training_job_id": "a1", "training_job_name": "sweep", "requested_gpus": 8}]
    queue = {"target_job_id": "job1", "submitted_at": began, "pending_ahead_at_submit": ahead}
    baseten.on("GET", "/v1/training/jobs/job1/queue_context", Answer(queue))
    baseten.jobs = [job("job1", "PENDING", created_at=began, node_count=2)]
    baseten.logs["job1"] = [line("a line", at_ms=int(now.timestamp() * 1000))]

    def poll(_asked: ReceivedRequest) -> Answer:
        status, hint = next(polls, ("COMPLETED", None))
        return Answer({"training_job": baseten.jobs[0] | {
            "current_status": f"TRAINING_JOB_{status}", "error_message": hint}})  # fmt: skip

    baseten.on("GET", "/v1/training_projects/proj1/jobs/job1", poll)
    result = cli("logs job1 -f -o ndjson --drain 0")
    waits = "bt-tui: job job1 is waiting 12m for 16 H100; at submission 1 ahead: sweep"
    assert result.err.splitlines()[:4] == [
        waits,
        f"{waits} · spot would start now",
        "bt-tui: job job1 is deploying after 12m",
        "bt-tui: job job1 is running after 12m",
    ]
    assert [each["message"] for each in result.ndjson] == ["a line"]
