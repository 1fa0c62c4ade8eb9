"""What the listener hears of speed, stalls and waits, on a clock that the test turns."""

from __future__ import annotations

from pathlib import Path

from api_client.transfers.records import FileProgress, FileState, ProgressMeter

MIB = 2**20


class Run:
    """A download of one file; ``now_s`` is turned by hand."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.meter = ProgressMeter([FileProgress("a", Path("a"), size_bytes=100 * MIB)], lambda: self.now_s)
        self.meter.change(0, state=FileState.ACTIVE)

    def bring(self, size_bytes: int) -> None:
        self.meter.count_arrived(0, size_bytes)


def test_speed_falls_to_nothing_while_nothing_arrives() -> None:
    run = Run()
    for _ in range(10):
        run.now_s += 1
        run.bring(MIB)
        progress = run.meter.progress()
    assert (progress.stalled_s, round(progress.speed_bytes_per_s / MIB)) == (0, 1)
    speeds = []
    for _ in range(6):
        run.now_s += 1
        progress = run.meter.progress()
        speeds.append(progress.speed_bytes_per_s)
    assert speeds == sorted(speeds, reverse=True) and speeds[-1] == 0
    assert progress.stalled_s == 6 and progress.eta_s is None
    run.meter.change(0, state=FileState.VERIFYING)  # which is no stall
    assert run.meter.progress().stalled_s == 0


def test_a_wait_is_told_until_bytes_have_come_again_for_a_while() -> None:
    run = Run()
    run.meter.change(0, note="its URL has expired")
    run.now_s += 60
    assert run.meter.progress().note == "its URL has expired"
    run.meter.change(0, note="trying again")
    run.now_s += 1
    run.bring(1)
    assert run.meter.progress().note == "trying again"
    run.now_s += 5
    run.bring(1)
    progress = run.meter.progress()
    assert progress.note == progress.files[0].note == ""
