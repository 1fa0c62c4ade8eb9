"""Treat SIGTERM and SIGHUP like ctrl-c, so that files are completed and the terminal is restored.

As in shells, the exit code is then 128 + the signal's number.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from functools import partial
from types import FrameType
from typing import ClassVar, Self


class TerminationSignals:
    """Context manager that handles both signals; a signal that the parent process ignores stays ignored."""

    received_signal: ClassVar[int | None] = None
    """The signal that ends this process; None for ctrl-c."""

    def __init__(self) -> None:
        self._signal_at_s = 0.0
        self._handled_signals: list[int] = []

    def __enter__(self) -> Self:
        TerminationSignals.received_signal = None
        is_main_thread = threading.current_thread() is threading.main_thread()
        self._handled_signals = [
            number
            for number in (signal.SIGTERM, signal.SIGHUP)
            if is_main_thread and signal.getsignal(number) is signal.SIG_DFL
        ]
        for number in self._handled_signals:
            signal.signal(number, self._interrupt)
        return self

    def __exit__(self, *_exception: object) -> None:
        if self.received_signal is not None:
            return  # the process is about to exit, with this signal's exit code
        for number in self._handled_signals:
            signal.signal(number, signal.SIG_DFL)

    def exit_code(self, default: int) -> int:
        """Return the exit code for the received signal; ``default`` if there was none."""
        return default if self.received_signal is None else 128 + self.received_signal

    def _interrupt(self, signal_number: int, _frame: FrameType | None) -> None:
        now_s = time.monotonic()
        # A closed terminal sends several signals: within five seconds, they are one request to end.
        if self.received_signal is not None and now_s - self._signal_at_s < 5.0:
            return
        TerminationSignals.received_signal, self._signal_at_s = signal_number, now_s
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.raise_signal(signal.SIGINT)  # its handler, such as asyncio's, cancels running work
            return
        # Shell scripts start background jobs with SIGINT ignored, and asyncio then installs no handler.
        interrupt = partial(signal.default_int_handler, signal.SIGINT, None)
        asyncio = sys.modules.get("asyncio")
        loop = asyncio._get_running_loop() if asyncio is not None else None
        if loop is None:
            interrupt()
        else:
            loop.call_soon_threadsafe(interrupt)  # if it were raised here, a destructor might swallow it
