"""What guards remember in a file that they share, and that may be damaged, full or locked at times."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from support.log_server import FastClock
from tui.guard.memory import GuardMemory, GuardState, RunMemory, UnsentAlert
from tui.guard.watch import CLAIM_S, UndeliveredAlerts
from tui.settings.remembered import read_state

ALERT = {"event": "finding", "text": "loss is NaN"}


def see(memory: GuardMemory, run: str, status: str = "RUNNING") -> None:
    def change(state: GuardState) -> tuple[GuardState, None]:
        return replace(state, runs=state.runs | {run: RunMemory(status=status)}), None

    memory.change(change)


def queue(memory: GuardMemory) -> None:
    memory.change(
        lambda state: (
            replace(state, unsent=[*state.unsent, UnsentAlert(way="webhook", record=ALERT)]),
            None,
        )
    )


def statuses(path: Path) -> dict[str, str]:
    return {key: run.status for key, run in read_state(path, GuardState).runs.items()}


def test_changes_that_could_not_be_saved_are_saved_later_beside_those_of_others(tmp_path: Path) -> None:
    path, problems = tmp_path / "state" / "guard.json", list[str]()
    ours, others = GuardMemory(path, problems.append), GuardMemory(path)
    see(ours, "a")
    see(others, "b")
    queue(others)
    path.parent.rename(tmp_path / "away")
    path.parent.touch()
    see(ours, "a", "FAILED")
    queue(ours)
    see(ours, "a", "STOPPED")
    assert len(problems) == 1
    path.parent.unlink()
    (tmp_path / "away").rename(path.parent)
    see(others, "b", "COMPLETED")
    see(ours, "c")
    assert statuses(path) == {"a": "STOPPED", "b": "COMPLETED", "c": "RUNNING"}
    assert len(read_state(path, GuardState).unsent) == 1


def test_file_that_was_deleted_meanwhile_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "state" / "guard.json"
    memory = GuardMemory(path)
    see(memory, "a")
    queue(memory)
    shutil.rmtree(path.parent)
    see(memory, "b")
    assert statuses(path) == {"a": "RUNNING", "b": "RUNNING"}
    assert len(read_state(path, GuardState).unsent) == 1


def test_time_that_no_clock_has_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "guard.json"
    path.write_text(f'{{"runs": {{"a": {{"seen_s": 7, "sighted_s": 1{"0" * 400}}}}}}}')
    seen = read_state(path, GuardState).runs["a"]
    assert (repr(seen.seen_s), seen.sighted_s) == ("7.0", 0.0)


async def test_alert_is_tried_by_one_guard_at_a_time_and_by_none_once_delivered(tmp_path: Path) -> None:
    path, clock = tmp_path / "guard.json", FastClock(begin_s=datetime(2026, 3, 1, tzinfo=UTC).timestamp())
    first = GuardMemory(path)
    queue(first)
    see(first, "a")
    mine, theirs = UndeliveredAlerts(first, clock), UndeliveredAlerts(GuardMemory(path), clock)
    assert await mine.claim("webhook", ALERT)
    assert await mine.claim("webhook", ALERT), "the same guard may try again at once"
    assert clock.passed_s == 0
    assert await theirs.claim("webhook", ALERT)
    assert clock.passed_s == CLAIM_S
    theirs.forget("webhook", ALERT)
    assert not await mine.claim("webhook", ALERT)
