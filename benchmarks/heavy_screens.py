"""Time from a key to paint on screens with much data, in a terminal.

The screens are the log of a job of 64 nodes that grows by 5,000 lines a second, a list of 5,000 checkpoints
(50,000 files), and a cache of 100,000 files. The keys move the cursor.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping

from harness import Figure
from large_world import LargeWorld, job_id
from terminal import dashboard, key_figures

from api_client.emulator.processes import EmulatorChild

LINES_PER_S, CHECKPOINTS = 5_000, 5_000
UP, DOWN, PAGE_UP, PAGE_DOWN = "k", "j", "\x1b[5~", "\x1b[6~"
MOVE_KEYS = [DOWN, DOWN, UP, PAGE_DOWN, DOWN, PAGE_UP] * 4
LOG_FILLING_S = 15.0


def figures() -> Iterator[Figure]:
    """Measure the screens one after the other."""
    world = LargeWorld(log_lines_per_s=LINES_PER_S, checkpoints=CHECKPOINTS, cache_files=100_000)
    with world.emulator() as emulator:
        environ = os.environ | emulator.remote_environ()
        yield from live_log(emulator, environ)
        yield from many_files(emulator, environ)


def live_log(emulator: EmulatorChild, environ: Mapping[str, str]) -> Iterator[Figure]:
    """Measure keys while the log grows."""
    name, job = "log at 5,000 lines a second", f"titan-{LINES_PER_S}-lines"
    with dashboard(environ, "watch", job_id(emulator, job)) as terminal:
        terminal.wait_for(job)
        time.sleep(LOG_FILLING_S)
        terminal.press("2")
        terminal.wait_until_quiet()
        terminal.press("g")
        yield from key_figures(
            name,
            terminal,
            MOVE_KEYS,
            rest_s=1.0,
            cause="measured: a search for all garbage (40 ms, once in ten seconds or more) beside a key,"
            " whose own turns and the new lines between them take 30 ms together",
        )
        yield Figure(f"{name}: memory", terminal.resident_mib, unit="MiB")


def many_files(emulator: EmulatorChild, environ: Mapping[str, str]) -> Iterator[Figure]:
    """Measure keys in the list of checkpoints, then in the files of the cache."""
    job = f"titan-{CHECKPOINTS}-saves"
    with dashboard(environ, "watch", job_id(emulator, job)) as terminal:
        terminal.wait_for(job)
        terminal.press("4")
        # Wait for the summary line: the header shows a checkpoint's name before the table has rows.
        terminal.wait_for(f"{CHECKPOINTS:,} checkpoints")
        yield from key_figures(
            "5,000 checkpoints",
            terminal,
            MOVE_KEYS,
            cause="profiled: while the log is being read, a snapshot of 5,000 points is made every half"
            " second, and the table is filled again every five seconds; a key may come together with both",
        )
        terminal.forget()
        terminal.press("C")
        started_s = time.perf_counter()
        terminal.wait_for("fineweb-edu")
        name = "100,000 cache files"
        yield Figure(f"{name}: key to tree", time.perf_counter() - started_s, unit="s")
        terminal.press("e")
        yield from key_figures(
            name,
            terminal,
            MOVE_KEYS,
            cause="profiled: when the files arrive, the tree is built and the totals are found beside the"
            " first keys",
        )
        yield Figure(f"{name}: memory", terminal.resident_mib, unit="MiB")
