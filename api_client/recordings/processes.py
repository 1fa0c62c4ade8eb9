"""Processes that work on a recording beside the dashboard, which answers keys meanwhile.

A process ends when the connection to it is closed, however the dashboard ended.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection, Pipe


def start(module: str, descriptors: Sequence[int] = ()) -> tuple[subprocess.Popen[bytes], Connection]:
    """Run a module with the descriptor of its connection as the argument, and return both.

    It inherits ``descriptors``, and finds modules where this process does.
    """
    connection, other = Pipe()
    with other:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, str(other.fileno())],
            pass_fds=[other.fileno(), *descriptors],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )
    return process, connection
