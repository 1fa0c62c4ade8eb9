"""textual's driver for terminals, with a keyboard that takes any bytes."""

from __future__ import annotations

import os
import select
from itertools import chain

from textual.drivers.linux_driver import LinuxDriver

from tui.keyboard import Keyboard

READ_BYTES = 4096
TICK_S = 0.1


class TerminalDriver(LinuxDriver):
    """Reads the terminal through ``Keyboard``; everything else is textual's."""

    def run_input_thread(self) -> None:
        """Pass events on until the driver is stopped or suspended; runs in a thread."""
        keyboard = Keyboard(debug=self._debug)
        while not self.exit_event.is_set():
            readable, _, _ = select.select([self.fileno], [], [], TICK_S)
            data = os.read(self.fileno, READ_BYTES) if readable else b""
            for event in chain(keyboard.feed(data), keyboard.tick()):
                self.process_message(event)
