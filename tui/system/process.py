"""The own process: the environment it passes on (without API keys), a fast exit, garbage collection."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from collections.abc import Mapping
from typing import Any, NoReturn

KEY_VARIABLES = frozenset({"BASETEN_API_KEY", "BASETEN_TRUSS_AUTH_API_KEY"})
"""The variables from ``api_client.remotes`` that may hold a key."""


def scrubbed_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the variables that hold an API key.

    A pager, an editor or a user's own program does not need one, and some of them store or transmit their
    environment.
    """
    return {name: value for name, value in environ.items() if name not in KEY_VARIABLES}


def exit_fast(code: int) -> NoReturn:
    """End the process with this exit code, like ``sys.exit``, but without freeing its memory.

    Deallocating a thousand modules takes a twentieth of a short command and has no benefit. If other
    threads are running, this falls back to ``sys.exit``, which waits for them.
    """
    gc.freeze()
    if threading.active_count() > 1 or sys.flags.inspect or sys.gettrace() is not None:
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # the reader has gone, or there is no stream
            code = code or 1
    os._exit(code)


FULL = 2
"""Generation number of a full collection."""

OBJECTS_WHILE_STARTING = 200_000
"""Allocation threshold while starting; Python's 700 causes a hundred useless collections during imports."""

_USUAL = gc.get_threshold()


def collect_rarely() -> None:
    """Collect rarely: starting creates hardly any garbage (saves a tenth of a short command)."""
    gc.set_threshold(OBJECTS_WHILE_STARTING, *_USUAL[1:])


def restore_collection() -> None:
    """Undo ``collect_rarely``: a long-running process would accumulate garbage between collections."""
    gc.set_threshold(*_USUAL)


def freeze_survivors() -> None:
    """Make full collections scan only objects created since the previous one."""
    gc.set_threshold(*_USUAL)
    gc.freeze()
    if _freeze_on_full_collection not in gc.callbacks:
        gc.callbacks.append(_freeze_on_full_collection)


def unfreeze_survivors() -> None:
    """Let the next full collection scan all objects, including frozen ones."""
    gc.unfreeze()


def _freeze_on_full_collection(phase: str, info: dict[str, Any]) -> None:
    if phase == "stop" and info["generation"] == FULL:
        gc.freeze()
