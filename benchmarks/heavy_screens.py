"""Screens under load, in a terminal: what a key costs while 5,000 log lines a second come in, and so on.

A job of 64 nodes whose log grows by 5,000 lines a second, one with 5,000 checkpoints (50,000 files), and a
cache of 100,000 files; keys that move, each from press to paint.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness import Report
from idle import job_id
from large_world import LargeWorld
from terminal import dashboard, tell_keys

LINES_PER_S, CHECKPOINTS, CACHE_FILES = 5_000, 5_000, 100_000
SIZE = LargeWorld(log_lines_per_s=LINES_PER_S, checkpoints=CHECKPOINTS, cache_files=CACHE_FILES)
UP, DOWN, PAGE_UP, PAGE_DOWN = "k", "j", "\x1b[5~", "\x1b[6~"
MOVES = [DOWN, DOWN, UP, PAGE_DOWN, DOWN, PAGE_UP] * 4
MOST_MS = 50.0
FILLING_S = 15.0
LIVE_CAUSE = (
    "measured: a search for all garbage (40 ms, once in ten seconds or more) beside a key, whose own turns"
    " and the new lines between them take 30 ms together"
)
SAVING_CAUSE = (
    "profiled: while the log is being read, a snapshot of 5,000 points is made every half second, and the"
    " table is filled again every five seconds; a key may come together with both"
)
CACHE_CAUSE = (
    "profiled: when the files arrive, the tree is built and the totals are found beside the first keys"
)


def main() -> None:
    """One screen after the other."""
    report = Report("heavy_screens")
    with SIZE.emulator() as emulator:
        environ = os.environ | emulator.remote_environ()
        high_volume_run = f"titan-{LINES_PER_S}-lines"
        with dashboard(environ, "watch", job_id(emulator, high_volume_run)) as terminal:
            terminal.wait_for(high_volume_run)
            time.sleep(FILLING_S)
            terminal.press("2")
            terminal.rest()
            terminal.press("g")
            tell_keys(
                report,
                "log at 5,000 lines a second",
                terminal,
                MOVES,
                at_most_ms=MOST_MS,
                cause=LIVE_CAUSE,
                rest_s=1.0,
            )
            report.figure("log at 5,000 lines a second: memory", terminal.resident_mib, unit="MiB")
        saving = f"titan-{CHECKPOINTS}-saves"
        with dashboard(environ, "watch", job_id(emulator, saving)) as terminal:
            terminal.wait_for(saving)
            terminal.press("4")
            # The summary: the header has the newest one's name from the log before there is a row to move to.
            terminal.wait_for(f"{CHECKPOINTS:,} checkpoints")
            tell_keys(report, "5,000 checkpoints", terminal, MOVES, at_most_ms=MOST_MS, cause=SAVING_CAUSE)
            terminal.forget()
            terminal.press("C")
            begun = time.perf_counter()
            terminal.wait_for("fineweb-edu")
            report.figure("100,000 cache files: key to tree", time.perf_counter() - begun, unit="s")
            terminal.press("e")
            tell_keys(report, "100,000 cache files", terminal, MOVES, at_most_ms=MOST_MS, cause=CACHE_CAUSE)
            report.figure("100,000 cache files: memory", terminal.resident_mib, unit="MiB")
    report.close()


if __name__ == "__main__":
    main()
