"""What a command costs, and the official CLI as one of them.

Its CPU time, of all its threads: the clock would count also the time in which it waits for the server, and
for the machine's other work.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from api_client.emulator.processes import EmulatorChild

KIB_PER_MIB = 1024
MEASURED = """
import json, resource, subprocess, sys
nowhere = subprocess.DEVNULL
code = subprocess.run(sys.argv[1:], stdout=nowhere, stderr=nowhere, stdin=nowhere).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([code, used.ru_utime + used.ru_stime, used.ru_maxrss]))
"""
"""Run from a small process of its own: a new process's peak is at least that of the one it came from."""


@dataclass(frozen=True)
class Cost:
    """CPU seconds, and peak resident MiB."""

    seconds: float
    mib: float


def cost_of(command: Sequence[str], environ: Mapping[str, str]) -> Cost:
    """Run it once. Raises RuntimeError where it fails."""
    wrapped = [sys.executable, "-S", "-c", MEASURED, *command]
    done = subprocess.run(wrapped, env=environ, capture_output=True, text=True, check=True)
    code, seconds, peak_kib = json.loads(done.stdout)
    if code:
        raise RuntimeError(f"{' '.join(command)} ended with {code}")
    return Cost(seconds, peak_kib / KIB_PER_MIB)


def official_command() -> str | None:
    """The official CLI, where ``TRUSS_BIN`` names one."""
    return os.environ.get("TRUSS_BIN")


def official_environ(emulator: EmulatorChild, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment in which the official CLI asks the emulator, as the proxy of an address it knows."""
    left_out = {"no_proxy", "NO_PROXY", "PYTHONPATH"}
    return {name: value for name, value in environ.items() if name not in left_out} | {
        "http_proxy": emulator.url,
        "BASETEN_TRUSS_AUTH_REMOTE_URL": "http://localhost:8000",
        "BASETEN_TRUSS_AUTH_API_KEY": emulator.key,
        "TRUSS_NO_UPDATE_CHECK": "1",
    }
