"""An account of 10,000 jobs in 1,000 projects: Home in a terminal, and ``bt-tui jobs -o json``."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping

import httpx
from commands import command_figures
from harness import Figure
from headless import BARE
from large_world import LargeWorld
from terminal import SETTLING_S, dashboard, fresh_user_environ, key_figures

KEYS = ["G", "g", "j", "k", "\x1b[6~", "\x1b[5~"]


def figures() -> Iterator[Figure]:
    """Measure the command and Home on one emulator."""
    with (
        LargeWorld(jobs=10_000, projects=1_000).emulator() as emulator,
        fresh_user_environ(os.environ | emulator.remote_environ()) as environ,
    ):
        yield from command_figures(
            "jobs -o json",
            emulator,
            environ,
            ours=["jobs", "-o", "json"],
            bare=[BARE],
            official=["train", "view", "--non-interactive"],
            at_most={"truss": (0.4, 1.2)},
            cause="bare Python with httpx and json takes a fifth of the official CLI's time; 6 MB of answer,"
            " its 10,000 objects and their text are held at once",
        )
        yield from home(environ)


def home(environ: Mapping[str, str]) -> Iterator[Figure]:
    """Measure Home in a terminal: its first data, keys while it refreshes, and idle CPU time."""
    with dashboard(environ) as terminal:
        first_s = terminal.wait_for("bt-tui")
        first_cpu_s = terminal.cpu_s
        filled_s = terminal.wait_for("GPUs busy")
        title = "Home, first paint to all jobs listed"
        yield Figure(f"{title}, CPU", terminal.cpu_s - first_cpu_s, unit="s", at_most=2)
        yield Figure(f"{title}, wall, with the answers", filled_s - first_s, unit="s")
        yield Figure("… of which the server's answer with all jobs takes", response_s(environ), unit="s")
        yield from key_figures(
            "Home beside refreshes",
            terminal,
            KEYS * 4,
            cause="measured: arranging and counting 10,000 rows (18 ms, once in ten seconds), or a search for"
            " all garbage (60 ms, once in half a minute) beside a key",
        )
        time.sleep(SETTLING_S)
        yield Figure(
            "Home, idle, CPU",
            terminal.cpu_percent(20),
            unit="% of a core",
            at_most=1,
            cause="measured by task: a third is arranging, counting and showing 10,000 rows, a quarter is"
            " polling the list and two dozen running jobs, an eighth is painting, the rest timers, threads",
        )
        yield Figure("Home, resident memory", terminal.resident_mib, unit="MiB", at_most=200)


def response_s(environ: Mapping[str, str]) -> float:
    """Return the time until the response with all jobs has arrived, without decoding it."""
    headers = {"Authorization": f"Bearer {environ['BASETEN_API_KEY']}"}
    started_s = time.perf_counter()
    url = f"{environ['BASETEN_REMOTE_URL']}/v1/training_jobs/search"
    httpx.post(url, headers=headers, json={}, timeout=60, trust_env=False).raise_for_status()
    return time.perf_counter() - started_s
