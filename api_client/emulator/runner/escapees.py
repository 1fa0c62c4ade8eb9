"""Finding processes of a job by what they carry in their environment."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil

from api_client.emulator.runner.environment import FOLDER_MARKER, JOB_MARKER


def kill_marked(job_id: str, folder: Path) -> int:
    """Kill every process of ours that was started for that job; returns how many there were.

    The last resort, for processes whose supervisor was killed or that a former emulator left behind.
    The folder makes the mark unique: another emulator may run a job of the same id.
    """
    killed = 0
    own_uid = os.getuid()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid == os.getpid() or process.uids().real != own_uid:
                continue
            marks = process.environ()
            if marks.get(JOB_MARKER) == job_id and marks.get(FOLDER_MARKER) == str(folder):
                process.kill()
                killed += 1
    return killed
