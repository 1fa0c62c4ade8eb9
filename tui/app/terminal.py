"""What is imported once Home is on the terminal, while nobody waits: the other screens and their feeds."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from textual.message import Message

LATER = (
    "tui.feeds.run",
    "tui.screens.job.screen",
    "tui.feeds.checkpoint_files",
    "tui.screens.files.screen",
    "tui.feeds.comparison",
    "tui.screens.compare",
    "tui.feeds.capacity",
    "tui.screens.capacity",
    "tui.feeds.cache",
    "tui.screens.cache",
    "tui.feeds.downloads",
    "tui.screens.downloads",
    "tui.feeds.deployment",
    "tui.screens.deploy.screen",
    "tui.feeds.submission",
    "tui.screens.submit",
)
"""What people open first comes first."""

LATER_S = 0.5
"""From the first screen on; by then Home's own requests are under way."""


def load_the_rest() -> None:
    """Import them; in a thread, so that a key is answered meanwhile."""
    for name in LATER:
        import_module(name)


LAST_WORDS_S = 10.0
"""So long the app has to close its session after the terminal is gone."""
EXIT_HUNG_UP = 129
"""As a shell tells of a process that ended by SIGHUP."""


class TerminalGone(Message):
    """Nobody sees the dashboard any more."""


@contextmanager
def drawn_on_stdout() -> Iterator[None]:
    """Draw on standard output where standard error leads elsewhere, as in ``bt-tui 2>log``.

    textual draws on ``sys.__stderr__``, and would fill that file with escape sequences. What is written to
    ``sys.stderr`` still goes there.
    """
    kept = sys.__stderr__
    if not sys.stdout.isatty() or (kept is not None and kept.isatty()):
        yield
        return
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8", errors="replace") as screen:
        sys.__stderr__ = screen  # type: ignore[misc]  # the only place where textual looks
        try:
            yield
        finally:
            sys.__stderr__ = kept  # type: ignore[misc]


@contextmanager
def watched_terminal(leave: Callable[[], object], *, last_words_s: float = LAST_WORDS_S) -> Iterator[None]:
    """Call ``leave``, from another thread, when the terminal on standard input is gone.

    Without SIGHUP (nohup, a container's exec) nobody else tells: textual would read an end of file again and
    again, and its writer would wait for ever. A process that has not ended ``last_words_s`` later is ended.
    """
    if sys.__stdin__ is None or not sys.__stdin__.isatty() or sys.platform == "win32":
        yield
        return
    awake, wake = os.pipe()
    ended = threading.Event()
    terminals = _terminals()

    def watch() -> None:
        poll = select.poll()
        poll.register(terminals[0], 0)  # that it hangs up is told without being asked for
        poll.register(awake, select.POLLIN)
        if not dict(poll.poll()).get(terminals[0], 0) & select.POLLHUP:
            return
        _silence(terminals)
        leave()
        if not ended.wait(last_words_s):
            os._exit(EXIT_HUNG_UP)

    watcher = threading.Thread(target=watch, name="terminal watch", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        os.write(wake, b"x")
        watcher.join()
        os.close(awake)
        os.close(wake)


def _terminals() -> list[int]:
    """Descriptors that lead to the terminal, standard input first; afterwards nothing tells which did."""
    streams = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
    return [stream.fileno() for stream in streams if stream is not None and stream.isatty()]


def _silence(terminals: Sequence[int]) -> None:
    """Let what is still drawn go nowhere: a write to a terminal that is gone would fail, and stay stuck."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in terminals:
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
