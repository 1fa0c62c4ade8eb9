"""The output of commands: data on stdout, remarks on stderr.

All text is sanitized, because some of it comes from a server; only scripts may ask for it verbatim.
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import stat
import sys
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, TextIO

from api_client.files import WRONG_PLACE, why_not_written
from tui.commands.support.exit_codes import CommandFailed, ExitCode
from tui.text.sanitize import sanitize_lines, sanitize_whole

DELETE = "\x7f"
"""The only control character that ASCII JSON does not escape."""

SGR_OF_TONE = {
    "running": "32",
    "starting": "36",
    "waiting": "33",
    "good": "32",
    "bad": "31",
    "caution": "33",
    "unknown": "35",
    "name": "36",
    "muted": "2",
    "strong": "1",
}
"""Tone name → SGR parameter; the terminal's own 16 colors suit any theme."""

_RESET = "\x1b[0m"
_OWN_COLOR = re.compile(rf"(\x1b\[(?:0|{'|'.join(sorted(set(SGR_OF_TONE.values())))}|38;5;[0-9]{{1,3}})m)")
"""Color sequences that may pass: those of ``paint``, and the 256-color ones used by charts."""


def _with_own_colors(line: str) -> str:
    """Sanitize a line except for its colors, which end with it."""
    pieces = _OWN_COLOR.split(line)
    pieces[::2] = map(sanitize_lines, pieces[::2])
    if len(pieces) > 1 and pieces[-2] != _RESET:
        pieces.append(_RESET)
    return "".join(pieces)


class OutputClosed(Exception):
    """The reader of our stdout closed it (``bt-tui logs … | head``)."""


class Output:
    def __init__(
        self,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
        environ: Mapping[str, str] | None = None,
        name: str | None = None,
        *,
        verbatim: bool = False,
    ) -> None:
        """With ``verbatim``, write data unchanged unless it goes to a terminal."""
        self._stdout = stdout if stdout is not None else sys.stdout
        self._name = name
        self._stderr = stderr if stderr is not None else sys.stderr
        self._environ = environ = os.environ if environ is None else environ
        self.is_terminal = self._stdout.isatty()
        self.has_color = self.is_terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
        self._is_verbatim = verbatim and not self.is_terminal
        self._json_shape: Callable[[Any], Any] | None = None
        self._json_by_line = False

    @property
    def width_cells(self) -> int | None:
        """The terminal's width in cells; None if the output is not a terminal."""
        return shutil.get_terminal_size().columns if self.is_terminal else None

    @property
    def output_closed_by_reader(self) -> bool:
        """True if stdout is a pipe without a reader, detected without having to write."""
        try:
            descriptor = self._stdout.fileno()
            if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                return False
            waiting = select.poll()
            waiting.register(descriptor, 0)
            return any(events & select.POLLERR for _, events in waiting.poll(0))
        except (OSError, ValueError, AttributeError):  # no file descriptor, or a system without poll
            return False

    def verbatim(self) -> Output:
        """Return an output that writes text unchanged for scripts; a terminal still gets sanitized text."""
        return Output(self._stdout, self._stderr, self._environ, self._name, verbatim=True)

    def data(self, text: str) -> None:
        """Write to stdout, sanitized, and flush. The caller adds line breaks.

        Raises OutputClosed if the reader has gone, and CommandFailed if the output cannot be written.
        """
        self._write(text if self._is_verbatim else self._sanitized(text))

    def clear_screen(self) -> None:
        if self.is_terminal:
            self._write("\x1b[H\x1b[2J")

    def _sanitized(self, text: str) -> str:
        if text.replace("\n", "").isprintable():
            return text  # fast path in C: there may be 100,000 lines
        if not self.has_color:
            return sanitize_lines(text)
        return "\n".join(map(_with_own_colors, text.split("\n")))

    def _write(self, text: str) -> None:
        try:
            self._stdout.write(text)
            self._stdout.flush()
        except BrokenPipeError:
            raise OutputClosed from None
        except OSError as error:
            raise cannot_write(self._name or self._stdout.name.strip("<>"), error) from None

    def with_json(self, *, shape: Callable[[Any], Any] | None = None, by_line: bool = False) -> Output:
        """Return an output whose JSON documents have another shape, or are one line for each record."""
        changed = copy(self)
        changed._json_shape = shape or self._json_shape
        changed._json_by_line = by_line or self._json_by_line
        return changed

    def answer(
        self, output_format: str, document: Any | Callable[[], Any], text: str | Callable[[], str]
    ) -> None:
        """Write a command's answer in the format: the document as JSON or ndjson, else the text.

        What takes long to make is passed as a function.
        """
        is_json = output_format in ("json", "ndjson")
        chosen = document if is_json else text
        answer = chosen() if callable(chosen) else chosen
        if is_json:
            self.with_json(by_line=output_format == "ndjson").json(answer)
        else:
            self.data(answer)

    def json(self, value: Any) -> None:
        """Write one JSON document: ASCII without control characters, models as objects, NaN as null."""
        document = value if self._json_shape is None else self._json_shape(value)
        if not self._json_by_line:
            self._write_json(document, indent=2)
            return
        for record in document if isinstance(document, list) else [document]:
            self._write_json(record, indent=None)

    def _write_json(self, value: Any, indent: int | None) -> None:
        from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

        try:
            document = to_json(
                value, indent=indent, by_alias=False, inf_nan_mode="null", ensure_ascii=True
            ).decode("ascii")
        except PydanticSerializationError:  # a lone surrogate, which only Python's own encoder can escape
            plain = to_jsonable_python(value, by_alias=False, inf_nan_mode="null")
            document = json.dumps(plain, indent=indent)
        self.data(document.replace(DELETE, "\\u007f") + "\n")

    def remark(self, text: str) -> None:
        try:
            self._stderr.write(f"bt-tui: {sanitize_whole(text)}\n")
            self._stderr.flush()
        except (OSError, ValueError):
            return

    def paint(self, text: str, tone: str | None) -> str:
        sgr = SGR_OF_TONE.get(tone or "") if self.has_color else None
        return f"\x1b[{sgr}m{text}{_RESET}" if sgr and text else text


def cannot_write(name: object, error: OSError) -> CommandFailed:
    """Return the error to raise for a stream or a file that cannot be written.

    The exit code distinguishes a wrong path from a full or failing disk.
    """
    code = ExitCode.USAGE if error.errno in WRONG_PLACE else ExitCode.UNEXPECTED
    return CommandFailed(f"can't write {name}: {why_not_written(error)}", code)


def ascii_json(value: Any) -> str:
    """Return one line of JSON without control characters or non-ASCII letters, whatever the text contains."""
    return json.dumps(value, ensure_ascii=True).replace(DELETE, "\\u007f")
