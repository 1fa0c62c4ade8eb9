"""Open pages in a browser, copy through tmux, and show a log in the user's pager or editor.

Text browsers, which would draw over the dashboard, are not opened.
"""

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
from typing import TYPE_CHECKING, Literal

from api_client.remotes.remote import API_KEY_VARIABLE, TRUSS_KEY_VARIABLE
from tui.system.saved_files import save_entries

if TYPE_CHECKING:
    from api_client.models.logs import LogEntry

API_KEY_VARIABLES = frozenset({API_KEY_VARIABLE, TRUSS_KEY_VARIABLE})
"""Environment variables that may hold an API key."""


def scrubbed_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the variables that hold an API key.

    Pagers, editors and users' programs need no API key, and some of them store or transmit their environment.
    """
    return {name: value for name, value in environ.items() if name not in API_KEY_VARIABLES}


def open_in_browser(link: str) -> bool:
    """Open the page in a browser outside the terminal and return True if that was possible.

    Over SSH the machine's browser is often lynx or w3m, which would draw over the dashboard. A browser
    that the user set in ``BROWSER`` is always used.
    """
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    uses_this_terminal = type(browser) is webbrowser.GenericBrowser  # its subclasses run in the background
    if uses_this_terminal and "BROWSER" not in os.environ:
        return False
    return browser.open(link)


MAX_COPY_BYTES = 74_994
"""Longest text that terminals accept through OSC 52: xterm allows 100,000 characters of base64."""


def copy_through_tmux(text: str, environ: Mapping[str, str]) -> bool:
    """Copy the text to tmux's newest buffer and the outer terminal; return True if tmux accepted it.

    ``load-buffer -w`` (tmux 3.2) writes OSC 52 to the outer terminal even with tmux's default settings.
    Returns False without tmux. Blocks for up to two seconds: call it in a thread.
    """
    program = shutil.which("tmux", path=environ.get("PATH"))
    if not environ.get("TMUX") or program is None:
        return False
    try:
        result = subprocess.run(
            [program, "load-buffer", "-w", "-"],
            input=text.encode("utf-8", "replace"),
            env=dict(environ),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=2.0,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return result.returncode == 0


Program = Literal["pager", "editor"]

_VARIABLES_OF_PROGRAM: dict[Program, tuple[str, ...]] = {"pager": ("PAGER",), "editor": ("VISUAL", "EDITOR")}
_FALLBACK_PROGRAMS: dict[Program, tuple[str, ...]] = {
    "pager": ("less", "more"),
    "editor": ("nano", "vim", "vi"),
}
_PROGRAMS_WITH_ROW_ARGUMENT = frozenset(
    {"less", "more", "most", "nano", "vi", "vim", "nvim", "view", "emacs", "emacsclient"}
)
"""Programs that open a file at row 12 if called with ``+12``."""


def program_of(kind: Program, environ: Mapping[str, str]) -> list[str] | None:
    """Return the command and its arguments: from the environment, else an installed program, else None."""
    for name in _VARIABLES_OF_PROGRAM[kind]:
        try:
            arguments = shlex.split(environ.get(name, ""))
        except ValueError:
            continue  # unbalanced quotes
        if arguments:
            return arguments
    return next(([name] for name in _FALLBACK_PROGRAMS[kind] if shutil.which(name)), None)


@dataclass(slots=True)
class RowFinder:
    """Finds the row, from 1, at which ``start_entry`` (None: the last entry) is written to a file."""

    start_entry: LogEntry | None
    row: int | None = None

    def watch(self, entries: Iterable[LogEntry]) -> Iterator[LogEntry]:
        """Yield the entries unchanged; set ``row`` when the entry is yielded."""
        row = 1
        for entry in entries:
            if self.start_entry is None or (self.row is None and entry == self.start_entry):
                self.row = row
            row += 1 + (entry.message.rstrip("\r\n").count("\n") if hasattr(entry, "message") else 0)
            yield entry


def at_row(command: list[str], row: int | None) -> list[str]:
    """Add ``+ROW`` to open the file there, if the program supports that and ``command`` names no row."""
    has_row = any(word.startswith("+") for word in command[1:])
    if row is None or has_row or Path(command[0]).name not in _PROGRAMS_WITH_ROW_ARGUMENT:
        return command
    return [*command, f"+{row}"]


async def show_in_program(
    command: list[str],
    entries: Iterable[LogEntry],
    name: str,
    *,
    start_entry: LogEntry | None,
    timezone: tzinfo | None,
    environ: Mapping[str, str],
    suspended: Callable[[], AbstractContextManager[object]],
) -> int:
    """Open entries in a program, from a temporary file that only the user can read.

    The file is written in the background. Then the program owns the terminal (within ``suspended``) and
    the app waits for it. The program opens the file at ``start_entry`` and gets ``environ`` without API
    keys. Returns the program's exit status; raises OSError if it cannot be started. The rows are sanitized,
    because a pager such as ``less -R`` passes on escape sequences.
    """
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="bt-tui-"))  # mode 0700
    path = folder / f"{name}.log"
    finder = RowFinder(start_entry)
    try:
        await save_entries(finder.watch(entries), path, timezone=timezone)
        with suspended():
            return _run([*at_row(command, finder.row), str(path)], scrubbed_environment(environ))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(command: list[str], environ: Mapping[str, str]) -> int:
    return subprocess.run(command, check=False, env=environ).returncode
