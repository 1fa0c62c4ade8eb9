"""Open a page in the browser, unless that would take over this terminal."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
import tempfile
import webbrowser
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path
from typing import Literal

from api_client.models.logs import LogEntry, LogLine
from tui.system.process import without_keys
from tui.system.saved_files import save_entries


def open_in_browser(link: str) -> bool:
    """Whether a browser beside the terminal was asked to show the page.

    Over SSH the machine's browser is often lynx or w3m, which would draw over the dashboard. One that the
    person named in ``BROWSER`` is taken as it is.
    """
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    draws_here = type(browser) is webbrowser.GenericBrowser  # its subclasses run in the background
    if draws_here and "BROWSER" not in os.environ:
        return False
    return browser.open(link)


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


Program = Literal["pager", "editor"]

_ASKED: dict[Program, tuple[str, ...]] = {"pager": ("PAGER",), "editor": ("VISUAL", "EDITOR")}
_ELSE: dict[Program, tuple[str, ...]] = {
    "pager": ("less", "more"),
    "editor": ("nano", "vim", "vi"),
}
_GO_TO_ROW = frozenset({"less", "more", "most", "nano", "vi", "vim", "nvim", "view", "emacs", "emacsclient"})
"""They begin at row 12 when told ``+12``."""


def program_of(kind: Program, environ: Mapping[str, str]) -> list[str] | None:
    """The command with its arguments: what the environment names, else what this machine has; or None."""
    for name in _ASKED[kind]:
        try:
            words = shlex.split(environ.get(name, ""))
        except ValueError:
            continue  # a quote without its end
        if words:
            return words
    return next(([name] for name in _ELSE[kind] if shutil.which(name)), None)


@dataclass(slots=True)
class Place:
    """Where the reader is: at an entry, or at the end (``here`` None). ``row`` counts from 1, once known.

    What passes through ``watched`` is written as ``written`` does, a row for each line of a message.
    """

    here: LogEntry | None
    row: int | None = None

    def watched(self, entries: Iterable[LogEntry]) -> Iterator[LogEntry]:
        """The same entries; notes the row of the reader's, or of the last one."""
        row = 1
        for entry in entries:
            if self.here is None or (self.row is None and entry == self.here):
                self.row = row
            row += 1 + (entry.message.rstrip("\r\n").count("\n") if isinstance(entry, LogLine) else 0)
            yield entry


def at_row(command: list[str], row: int | None) -> list[str]:
    """The command, told to begin at a row if it is known to understand that and says nothing else itself."""
    says_where = any(word.startswith("+") for word in command[1:])
    if row is None or says_where or Path(command[0]).name not in _GO_TO_ROW:
        return command
    return [*command, f"+{row}"]


async def show_outside(
    command: list[str],
    entries: Iterable[LogEntry],
    name: str,
    *,
    here: LogEntry | None,
    timezone: tzinfo | None,
    environ: Mapping[str, str],
    suspended: Callable[[], AbstractContextManager[object]],
) -> int:
    """Give entries to a program in a file that only this person can read, gone afterwards.

    The file is written beside what the screen does; then the program has the terminal (within ``suspended``)
    and all waits for it. It begins where the reader is, and knows ``environ`` but for the keys. Returns its
    exit status; raises OSError if it cannot be started. The rows are inert: a pager such as ``less -R``
    passes escape sequences on.
    """
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="bt-tui-"))  # mode 0700
    path = folder / f"{name}.log"
    place = Place(here)
    try:
        await save_entries(place.watched(entries), path, timezone=timezone)
        with suspended():
            return _run([*at_row(command, place.row), str(path)], without_keys(environ))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(command: list[str], environ: Mapping[str, str]) -> int:
    return subprocess.run(command, check=False, env=environ).returncode
