"""What another program that is started here is told of the environment: all but the keys."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from collections.abc import Mapping
from typing import Any, NoReturn

KEY_VARIABLES = frozenset({"BASETEN_API_KEY", "BASETEN_TRUSS_AUTH_API_KEY"})
"""Of ``api_client.remotes``: where a key may be exported."""


def without_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """The same variables without those that hold a key.

    A pager, an editor or a person's own program has no use for one, and some keep or send what they know.
    """
    return {name: value for name, value in environ.items() if name not in KEY_VARIABLES}


def leave(code: int) -> NoReturn:
    """End the process with this exit code, as ``sys.exit`` does, but leave its memory as it is.

    Taking apart a thousand modules, object by object, is a twentieth of a short command, and for nothing.
    Where a thread is still at work the usual way is taken, which waits for it.
    """
    gc.freeze()
    if threading.active_count() > 1 or sys.flags.inspect or sys.gettrace() is not None:
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # nobody reads it any more, or there is none
            code = code or 1
    os._exit(code)


FULL = 2
"""The generation of a full collection."""

OBJECTS_WHILE_STARTING = 200_000
"""New objects before a collection; Python's 700 let it look a hundred times through imports, for nothing."""

_USUAL = gc.get_threshold()


def start_lightly() -> None:
    """Collect seldom: starting makes many objects and hardly any rubbish (a tenth of a short command)."""
    gc.set_threshold(OBJECTS_WHILE_STARTING, *_USUAL[1:])


def collect_as_usual() -> None:
    """End ``start_lightly``: whoever goes on for long would keep much rubbish between collections."""
    gc.set_threshold(*_USUAL)


def keep_pauses_short() -> None:
    """From now on a full collection looks only at what has come since the one before."""
    gc.set_threshold(*_USUAL)
    gc.freeze()
    if _set_survivors_aside not in gc.callbacks:
        gc.callbacks.append(_set_survivors_aside)


def look_through_everything() -> None:
    """Let the next full collection find what is no longer used, however old it is."""
    gc.unfreeze()


def _set_survivors_aside(phase: str, info: dict[str, Any]) -> None:
    if phase == "stop" and info["generation"] == FULL:
        gc.freeze()
