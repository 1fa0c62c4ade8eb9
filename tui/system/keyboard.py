"""Convert any terminal input into Textual events without failing.

Textual decodes keyboard input strictly and trusts every escape sequence. Of the 13 inputs in
``test_what_cannot_be_read_is_no_key``, Textual 8.2 alone ends the dashboard at 6 and reads 6 as other keys.
Here such input is dropped and the input after it still works. Pastes are parsed here too: Textual treats
text after an escape character in a paste as key presses.
"""

from __future__ import annotations

import os
import re
import select
import sys
import termios
import time
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import TextIO

from textual._parser import Parser
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key, Paste, Resize
from textual.message import Message

PASTE_START, PASTE_END = b"\x1b[200~", b"\x1b[201~"
PASTE_SILENCE_S = 5.0
"""A paste without an end marker ends when nothing arrives for this long."""
MAX_CELLS = 2000
"""Maximum number of columns or rows that a size report of the terminal may have."""

_TAIL_BYTES = len(PASTE_START) - 1
_TOKENS = re.compile(
    # Reports are not keys: mouse reports of old terminals, whose three bytes need not be UTF-8, and string
    # sequences (OSC, DCS, SOS, PM, APC), such as a late reply to an earlier program.
    rb"(?P<report>\x1b\[M[\x20-\xff]{3}|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\))"
    rb"|(?P<control>\x1b\[(?!M)[ -?]*[@-Z\\-~])"
    rb"|\x1b|[^\x1b]+"
)


class Keyboard:
    """Decoder and parser for the input of one terminal. ``clock`` returns seconds."""

    def __init__(self, *, debug: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._parser = XTermParser(debug)
        self._clock = clock
        self._fed_at_s = clock()
        self._paste_chunks: list[bytes] | None = None
        """Data of an unfinished paste, except the tail."""
        self._tail = b""
        """The last bytes fed, because a paste marker may arrive in two pieces."""

    def feed(self, data: bytes) -> Iterator[Message]:
        """Yield the events of new input; the rest of an unfinished sequence or paste waits for more input."""
        if data:
            self._fed_at_s = self._clock()
        while data:
            pending_bytes = self._tail + data
            if self._paste_chunks is None:
                before_marker, start, after_marker = pending_bytes.partition(PASTE_START)
                yield from self._parse((before_marker + start)[len(self._tail) :])
                if start:
                    self._restart_parser()
                    self._paste_chunks, self._tail, data = [], b"", after_marker
                    continue
            else:
                before_marker, end, after_marker = pending_bytes.partition(PASTE_END)
                if end:
                    self._tail = before_marker
                    yield self._end_of_paste()
                    data = after_marker
                    continue
                self._paste_chunks.append(pending_bytes[:-_TAIL_BYTES])
            self._tail = pending_bytes[-_TAIL_BYTES:]
            return

    def tick(self) -> Iterator[Message]:
        """Yield events that waited for more input, such as the escape key; call it every 0.1 s."""
        if self._paste_chunks is not None and self._clock() - self._fed_at_s > PASTE_SILENCE_S:
            yield self._end_of_paste()
        yield from self._usable_events(self._parser.tick())

    def _end_of_paste(self) -> Paste:
        text = b"".join([*(self._paste_chunks or ()), self._tail]).decode("utf-8", "ignore")
        self._paste_chunks, self._tail = None, b""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        return Paste(
            "".join(
                character if character.isprintable() or character == "\n" else _as_space(character)
                for character in text
            )
        )

    def _parse(self, data: bytes) -> Iterator[Message]:
        for token in _TOKENS.finditer(data):
            # An escape character before a report ends an unfinished sequence and is then dropped.
            for character in "\x1b" if token["report"] else self._decoder.decode(token[0]):
                yield from self._usable_events(self._parser.feed(character))
            if token.lastgroup and self._parser._awaiting.timeout is not None:
                # Textual does not know this sequence, and would read the letters of it as keys
                self._restart_parser()

    def _usable_events(self, events: Iterable[Message]) -> Iterator[Message]:
        try:
            messages = list(events)
        except Exception:  # noqa: BLE001 - no byte may end the dashboard
            self._restart_parser()
            return
        for event in messages:
            # drop keys of undecodable bytes and of surrogates
            if isinstance(event, Key) and re.search("[\ufffd\ud800-\udfff]", f"{event.key}{event.character}"):
                continue
            if isinstance(event, Resize) and not all(1 <= cells <= MAX_CELLS for cells in event.size):
                self._parser.mouse_pixels = False  # no terminal is that large: ignore the report
                continue
            yield event

    def _restart_parser(self) -> None:
        Parser.__init__(self._parser)  # drops unfinished input but keeps what is known about the terminal


def _as_space(character: str) -> str:
    return " " if character.isspace() else ""


_SET_MODES = ("2004", "2048", "1000", "1003", "1015", "1006", "1004", "1049")
RESTORE_SEQUENCES = (
    "\x1b[<u" + "".join(f"\x1b[?{mode}l" for mode in _SET_MODES) + "\x1b[?7h\x1b[?25h"
).encode()
"""Escape sequences that end all modes of Textual's driver; written if Textual's own writer is blocked."""


class _TerminalOutput:
    """The output file of Textual's writer thread; calls ``leave`` if the terminal is gone."""

    def __init__(self, file: TextIO, leave: Callable[[], object]) -> None:
        self._file, self._leave = file, leave
        self.fileno = file.fileno

    def write(self, text: str) -> None:
        with self._leave_if_terminal_gone():
            self._file.write(text)

    def flush(self) -> None:
        with self._leave_if_terminal_gone():
            self._file.flush()

    @contextmanager
    def _leave_if_terminal_gone(self) -> Iterator[None]:
        try:
            yield
        except BlockingIOError:  # another program made the terminal non-blocking; it still exists
            raise
        except OSError:  # the input thread may notice that the terminal is gone, too
            self._leave()


class TerminalDriver(LinuxDriver):
    """Textual's driver, but reads input with ``Keyboard`` and restores the terminal only once."""

    _terminals: Sequence[int] = ()
    """Descriptors of the terminal, stored because ``isatty`` is False once the terminal is gone."""
    _has_terminal = False
    _is_suspended = False
    _has_left = False

    def start_application_mode(self) -> None:
        self._has_terminal = True  # set first, because a signal may interrupt the start
        streams = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
        self._terminals = [stream.fileno() for stream in streams if stream is not None and stream.isatty()]
        if sys.__stderr__ is not None:
            self._file = _TerminalOutput(sys.__stderr__, self._leave_hung_up)  # type: ignore[assignment]
        super().start_application_mode()  # type: ignore[no-untyped-call]
        self._has_terminal = self._writer_thread is not None

    def stop_application_mode(self) -> None:
        if self._has_terminal:
            super().stop_application_mode()
            self._has_terminal = False  # if this fails, ``restore`` does the rest

    def suspend_application_mode(self) -> None:
        super().suspend_application_mode()
        self._is_suspended = True

    def resume_application_mode(self) -> None:
        """Resume only if suspended: a terminal that is closed sends SIGCONT after SIGHUP.

        Textual would start its threads a second time, and the process would wait for the first threads
        forever.
        """
        if self._is_suspended:
            self._is_suspended = False
            super().resume_application_mode()

    def write(self, data: str) -> None:
        if not self._has_left:
            super().write(data)

    def leave(self, message: str) -> None:
        """Restore the terminal, print a last message, and ignore all later output."""
        self.stop_application_mode()
        self.write(f"{message}\n")
        self._has_left = True

    def restore(self) -> None:
        """Restore the terminal from any thread, even if Textual's writer is stuck."""
        if self._has_terminal:
            self._has_terminal = False
            self.exit_event.set()  # ends the input thread, for which the process waits
            with suppress(OSError, termios.error):
                if self._file is not None:
                    os.write(self._file.fileno(), RESTORE_SEQUENCES)
                if self.attrs_before is not None:
                    termios.tcsetattr(self.fileno, termios.TCSANOW, self.attrs_before)

    def run_input_thread(self) -> None:
        """Process input until the driver is stopped or suspended; runs in a thread."""
        keyboard = Keyboard(debug=self._debug)
        while not self.exit_event.is_set():
            readable, _, _ = select.select([self.fileno], [], [], 0.1)
            data = os.read(self.fileno, 4096) if readable else b""
            if readable and not data:
                raise OSError("end of file")
            for event in chain(keyboard.feed(data), keyboard.tick()):
                self.process_message(event)

    def _run_input_thread(self) -> None:
        """Run the input thread; the app reports its errors, as Textual would print them with source code."""
        try:
            self.run_input_thread()
        except OSError:
            self._leave_hung_up()
        except Exception as error:  # noqa: BLE001 - without input, the dashboard can't be used
            self._app.call_later(self._app._handle_exception, error)

    def _leave_hung_up(self) -> None:
        """Make the app exit because its terminal is gone; under nohup, no SIGHUP reports that.

        Output goes to the null device, because writing to such a terminal fails and blocks.
        """
        null_device = os.open(os.devnull, os.O_RDWR)
        for descriptor in self._terminals:
            os.dup2(null_device, descriptor)
        os.close(null_device)
        self._app.leave_terminal()  # type: ignore[attr-defined]
