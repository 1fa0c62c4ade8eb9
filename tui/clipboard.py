"""Copy by way of tmux, which by default lets no program inside it reach the terminal's clipboard (OSC 52)."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping

TMUX_TIMEOUT_S = 2.0
LONGEST_COPY_BYTES = 74_994
"""What terminals take by OSC 52: xterm's and others' limit of 100,000 characters, in base64."""


def copy_through_tmux(text: str, environ: Mapping[str, str]) -> bool:
    """Give the text to tmux, as its newest buffer and for the terminal around it; whether it took it.

    ``load-buffer -w`` (tmux 3.2) writes OSC 52 to the outer terminal with tmux's default settings too.
    False when there is no tmux. Waits for at most two seconds: call it in a thread.
    """
    program = shutil.which("tmux", path=environ.get("PATH"))
    if not environ.get("TMUX") or program is None:
        return False
    try:
        done = subprocess.run(
            [program, "load-buffer", "-w", "-"],
            input=text.encode("utf-8", "replace"),
            env=dict(environ),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=TMUX_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
