"""CPU time and memory of a command, compared with bare Python and the official CLI that do the same.

The CPU time is that of all threads; wall time would include waiting for the server and for other processes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence

from harness import Figure, compared

from api_client.emulator.processes import EmulatorChild

MEASURING_PROGRAM = """
import json, resource, subprocess, sys
null = subprocess.DEVNULL
code = subprocess.run(sys.argv[1:], stdout=null, stderr=null, stdin=null).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([code, 1000 * (used.ru_utime + used.ru_stime), used.ru_maxrss / 1024]))
"""
"""Runs a command from a small process, because the peak memory of a child starts at that of its parent."""
OFFICIAL_CLI = os.environ.get("TRUSS_BIN")


def cost_of(command: Sequence[str], environ: Mapping[str, str]) -> tuple[float, float]:
    """Run a command; return its CPU time (ms) and its peak memory (MiB). Raise RuntimeError if it fails."""
    wrapped = [sys.executable, "-S", "-c", MEASURING_PROGRAM, *command]
    completed = subprocess.run(wrapped, env=environ, capture_output=True, text=True, check=True)
    code, time_ms, memory_mib = json.loads(completed.stdout)
    if code:
        raise RuntimeError(f"{' '.join(command)} ended with {code}")
    return time_ms, memory_mib


def official_environ(emulator: EmulatorChild, environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which the official CLI uses the emulator, as a proxy for its local remote."""
    removed = {"no_proxy", "NO_PROXY", "PYTHONPATH"}
    return {name: value for name, value in environ.items() if name not in removed} | {
        "http_proxy": emulator.url,
        "BASETEN_TRUSS_AUTH_REMOTE_URL": "http://localhost:8000",
        "BASETEN_TRUSS_AUTH_API_KEY": emulator.key,
        "TRUSS_NO_UPDATE_CHECK": "1",
    }


def command_figures(
    name: str,
    emulator: EmulatorChild,
    environ: Mapping[str, str],
    *,
    ours: Sequence[str],
    bare: Sequence[str],
    official: Sequence[str],
    at_most: Mapping[str, tuple[float, float]],
    cause: str,
    rounds: int = 3,
    memory: str = "memory",
) -> Iterator[Figure]:
    """Compare the CPU time and memory of a command with bare Python and the official CLI, in turn.

    ``ours`` and ``official`` are the arguments of both programs, ``bare`` is Python source and its arguments.
    ``at_most`` has the budgets (CPU time and memory, as ratios) by the name of the other program. The
    official CLI is measured only once, because it is slow.
    """
    commands = {
        "ours": ([sys.executable, "-m", "tui", *ours], environ),
        "bare Python": ([sys.executable, "-c", *bare], environ),
    }
    if OFFICIAL_CLI:
        commands["truss"] = ([OFFICIAL_CLI, *official], official_environ(emulator, environ))
    costs: dict[str, list[tuple[float, float]]] = {other_program: [] for other_program in commands}
    for number in range(rounds):
        for other_program, (command, program_environ) in commands.items():
            if number == 0 or other_program != "truss":
                costs[other_program].append(cost_of(command, program_environ))
    columns = {other_program: list(zip(*rows, strict=True)) for other_program, rows in costs.items()}
    for other_program in [other_program for other_program in commands if other_program != "ours"]:
        budgets = at_most.get(other_program, (None, None))
        for column, (title, unit) in enumerate(((name, "CPU ms"), (f"{name}, {memory}", "MiB"))):
            yield compared(
                title,
                columns["ours"][column],
                columns[other_program][column],
                other_program,
                unit=unit,
                at_most=budgets[column],
                cause=cause,
            )
