"""What a command costs, beside bare Python and the official CLI that do the same.

It is the CPU time of all threads: the clock would count also the time in which it waits for the server, and
for the machine's other work.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence

from harness import Figure, compared

from api_client.emulator.processes import EmulatorChild

MEASURED = """
import json, resource, subprocess, sys
nowhere = subprocess.DEVNULL
code = subprocess.run(sys.argv[1:], stdout=nowhere, stderr=nowhere, stdin=nowhere).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([code, 1000 * (used.ru_utime + used.ru_stime), used.ru_maxrss / 1024]))
"""
"""Run from a small process of its own: a new process's peak is at least that of the one it came from."""
OFFICIAL = os.environ.get("TRUSS_BIN")


def cost_of(command: Sequence[str], environ: Mapping[str, str]) -> tuple[float, float]:
    """Run a command; return its CPU time (ms) and its peak memory (MiB). Raise RuntimeError if it fails."""
    wrapped = [sys.executable, "-S", "-c", MEASURED, *command]
    done = subprocess.run(wrapped, env=environ, capture_output=True, text=True, check=True)
    code, time_ms, memory_mib = json.loads(done.stdout)
    if code:
        raise RuntimeError(f"{' '.join(command)} ended with {code}")
    return time_ms, memory_mib


def official_environ(emulator: EmulatorChild, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment in which the official CLI asks the emulator, as the proxy of an address it knows."""
    left_out = {"no_proxy", "NO_PROXY", "PYTHONPATH"}
    return {name: value for name, value in environ.items() if name not in left_out} | {
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
    """Compare time and memory of a command with bare Python's and the official CLI's, in turn.

    ``ours`` and ``official`` are the arguments, ``bare`` a program and its arguments; the keys of ``at_most``
    name those that have budgets. The official CLI takes so long that a single round must do.
    """
    commands = {
        "ours": ([sys.executable, "-m", "tui", *ours], environ),
        "bare Python": ([sys.executable, "-c", *bare], environ),
    }
    if OFFICIAL:
        commands["truss"] = ([OFFICIAL, *official], official_environ(emulator, environ))
    costs: dict[str, list[tuple[float, float]]] = {against: [] for against in commands}
    for number in range(rounds):
        for against, (command, own_environ) in commands.items():
            if number == 0 or against != "truss":
                costs[against].append(cost_of(command, own_environ))
    columns = {against: list(zip(*rows, strict=True)) for against, rows in costs.items()}
    for against in [against for against in commands if against != "ours"]:
        most = at_most.get(against, (None, None))
        for place, (title, unit) in enumerate(((name, "CPU ms"), (f"{name}, {memory}", "MiB"))):
            yield compared(
                title,
                columns["ours"][place],
                columns[against][place],
                against,
                unit=unit,
                at_most=most[place],
                cause=cause,
            )
