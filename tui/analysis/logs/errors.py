"""Find error lines and tracebacks in a log; count the errors and keep the first and the newest.

The lines of a traceback may be interleaved with the lines of other ranks. Lines with the same prefix, such as
``[rank0]:``, are from one rank: they are a lane.
"""

from __future__ import annotations

import re
from bisect import insort
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import re2

from tui.analysis.logs.error_tally import DRIVER_REPORT, KEPT_ERRORS, ErrorLine, ErrorTally
from tui.analysis.logs.excerpt import excerpt
from tui.analysis.logs.levels import RANKS, level_of
from tui.text.names import shortened
from tui.text.sanitize import strip_ansi

SAME_ERROR_NS = 5_000_000_000
"""Error lines within this time are one error: a traceback, or the same error reported by every rank."""

TEXT_CHARACTERS = 300
"""Maximum length of the text kept for an error, cut between words."""

MAY_FAIL = re2.compile(
    rb"ERR|rror|xception|raceback|SEVERE|CRITICAL|FATAL|atal|level|Interrupt|SystemExit|terminate called"
    rb"|Segmentation|Abort|SIG|Xid|\b[EF] "
)
"""A line that does not match, with its digits removed, is no error unless the server's level is an error."""

_EXCEPTION_LINE_PATTERN = re.compile(
    r"^\s{0,4}(?:\[\w+\]: ?|\([^()]{0,48}\bpid=[^()]{1,48}\) )?(?:[A-Za-z_]\w*\.)*"
    r"[A-Z]\w*(?:Error|Exception|Interrupt)(?:\(\w{1,48}\))?(?::\s|$)"
)
_HARMLESS_PATTERN = re.compile(
    r"Unable to register cu\w{1,40} (?:plugin )?factory|computation placer already registered"
    r"|pip's dependency resolver does not|fatal: not a git repository|\bslow_operation_alarm\.cc"
    r"|Very slow compile\?"
)
"""Errors that healthy runs print: pip after an installation, TensorFlow on import, XLA while compiling, and
git when an experiment tracker looks for a commit outside a repository."""
_ERROR_HEADING_PATTERN = re.compile(
    r"^.{0,60}?(?:Traceback \(most recent|File \")|Root Cause|ChildFailedError|Error executing job with"
)


def error_text(message: str, level: str | None) -> str | None:
    """Return the error that a log line reports, as a single line; None if it reports none.

    If the message is a whole traceback, return its last line, which names the exception.
    """
    text = strip_ansi(excerpt(message))
    if RANKS[level_of(text, level)] < RANKS["ERROR"] or _HARMLESS_PATTERN.search(text):
        return None
    lines = [
        line for line in text.splitlines() if any(map(str.isalnum, line))
    ]  # skip separators such as ****
    if not lines:
        return None
    exception_lines = [line for line in lines if _EXCEPTION_LINE_PATTERN.match(line)]
    return shortened((exception_lines[-1] if exception_lines else lines[0]).strip(), TEXT_CHARACTERS)


def _specificity(text: str) -> int:
    """Return how specific an error's text is: 0 for a heading, 2 if it names an exception, else 1."""
    if _ERROR_HEADING_PATTERN.match(text):
        return 0
    return 2 if DRIVER_REPORT in text or _EXCEPTION_LINE_PATTERN.match(text) else 1


class ErrorLines:
    """Counts the errors in log lines, in any order, and keeps the first and the newest."""

    def __init__(self) -> None:
        self._count = 0
        self._first: ErrorLine | None = None
        self._last_counted: ErrorLine | None = None
        self._kept: list[ErrorLine] = []

    def take(self, at_ns: int, message: str, level: str | None, replica: str | None) -> bool:
        """Add a log line. Return True if it reports a new error."""
        text = error_text(message, level)
        if text is None:
            return False
        error = ErrorLine(at_ns, text, replica)
        for index in range(len(self._kept) - 1, -1, -1):
            kept_error = self._kept[index]
            if kept_error.at_ns < at_ns - SAME_ERROR_NS:
                break
            if abs(kept_error.at_ns - at_ns) <= SAME_ERROR_NS:
                if _specificity(text) > _specificity(kept_error.text):
                    self._kept[index] = ErrorLine(kept_error.at_ns, text, kept_error.replica)
                    if self._first == kept_error:
                        self._first = self._kept[index]
                    return True
                return False
        # Pages may be read newest first; older errors may be counted already although they are not kept.
        for old_error in (self._first, self._last_counted):
            if old_error is not None and abs(old_error.at_ns - at_ns) <= SAME_ERROR_NS:
                if old_error is self._first and error < old_error:
                    self._first = error
                return False
        self._count += 1
        if self._first is None or error < self._first:
            self._first = error
        self._last_counted = error
        insort(self._kept, error)
        del self._kept[:-KEPT_ERRORS]
        return True

    def tally(self) -> ErrorTally:
        errors = self._kept
        if self._first is not None and (not errors or errors[0] != self._first):
            errors = [self._first, *errors]
        return ErrorTally(self._count, self._first, tuple(errors))


_LANE_PATTERN = re.compile(r"(\[[A-Za-z]{1,20}\d{1,5}\]:|\([A-Za-z_]{0,40}\s?pid=\d+[^)]{0,40}\)) ?")
_PYTHON_HEADING = "Traceback ("
_NATIVE_HEADINGS = (
    "terminate called",
    "Exception raised from",
    "Fatal Python error",
    "frame #0",
    "*** Aborted at",
    "C++ CapturedTraceback",
)
_CHAIN_SENTENCES = ("During handling of the above exception", "The above exception was the direct cause")
_EXCEPTION_PATTERN = re.compile(
    r"(?:[A-Za-z_][\w.]{0,160}+(?<=Error|ption|Group|rrupt)|SystemExit|StopIteration|GeneratorExit"
    r"|(?:[a-z_]\w{0,40}+\.){1,8}+[A-Z]\w{0,80}+)(?::|$)"
)
"""The last line of a traceback: the name of an exception, perhaps with its module (``queue.Empty``).

Other lines with a colon, such as ``Epoch: 3``, do not match.
"""
_NATIVE_LINE_PATTERN = re.compile(
    r"frame #\d|#\d{1,3} |what\(\): |Exception raised from|CUDA kernel errors|For debugging consider"
    r"|Compile with|Current thread 0x|Thread 0x|\[[^\]]{1,80}\] \[ ?\d+\]|\[[^\]]{1,80}\] \*\*\*"
    r"|PC: @|@ +0x|Extension modules:"
)


class TracebackPart(Enum):
    """The role of a line in its traceback.

    A folded traceback shows only ``BEGIN``, its heading, and ``END``, the exception. A traceback without an
    ``END`` ends at the next ``BEGIN`` of its lane, or at unrelated lines in its lane.
    """

    BEGIN = "begin"
    INSIDE = "inside"
    END = "end"


class TracebackLine(NamedTuple):
    """The role of a line, and its ``lane``: the prefix of its rank, which all lines of a traceback share."""

    part: TracebackPart
    lane: str


class _Kind(Enum):
    PYTHON = 1
    ENDED = 2  # The exception was read; a chained traceback, or more lines of its message, may follow.
    NATIVE = 3


@dataclass(slots=True)
class _OpenTraceback:
    kind: _Kind
    unrelated_lines: int = 0
    is_chained: bool = False


class TracebackReader:
    """Reads the lines of one node in order and finds those that belong to a traceback."""

    def __init__(self) -> None:
        self._open: dict[str, _OpenTraceback] = {}

    def read(self, text: str) -> TracebackLine | None:
        """Return the role of the next line; None if it is outside of any traceback.

        Fast for ordinary lines while no traceback is open: only a few substring searches.
        """
        text = excerpt(text)
        if not self._open and not (_PYTHON_HEADING in text or _is_native_heading(text)):
            return None
        lane, body = _split_lane(text)
        part = self._begin_traceback(lane, body) or self._continue_traceback(lane, body)
        return None if part is None else TracebackLine(part, lane)

    def _begin_traceback(self, lane: str, body: str) -> TracebackPart | None:
        traceback = self._open.get(lane)
        is_indented = body[:1].isspace()
        if _PYTHON_HEADING in body and (
            _is_python_heading(body) or (traceback is not None and (traceback.is_chained or is_indented))
        ):
            kind, continues_traceback = (
                _Kind.PYTHON,
                traceback is not None and (traceback.is_chained or is_indented),
            )
        elif _is_native_heading(body) and not (
            traceback is not None and traceback.kind is _Kind.PYTHON and is_indented
        ):
            kind, continues_traceback = _Kind.NATIVE, traceback is not None
        else:
            return None
        self._open[lane] = _OpenTraceback(kind)
        return TracebackPart.INSIDE if continues_traceback else TracebackPart.BEGIN

    def _continue_traceback(self, lane: str, body: str) -> TracebackPart | None:
        traceback = self._open.get(lane)
        if traceback is None:
            return None
        if traceback.kind is _Kind.PYTHON and _EXCEPTION_PATTERN.match(body):
            traceback.kind, traceback.unrelated_lines = _Kind.ENDED, 0
            return TracebackPart.END
        traceback.is_chained = traceback.is_chained or body.startswith(_CHAIN_SENTENCES)
        continues = (
            _NATIVE_LINE_PATTERN.match(body)
            if traceback.kind is _Kind.NATIVE
            else body.startswith(_CHAIN_SENTENCES)
        )
        # indented lines belong to the traceback, except progress bars of tqdm, which begin with a space
        if continues or not body.strip() or (body[0].isspace() and "%|" not in body):
            traceback.unrelated_lines = 0
            return TracebackPart.INSIDE
        traceback.unrelated_lines += 1
        # Before its end, a limited number of unrelated lines may interrupt a Python traceback. After its end,
        # or in a native stack, a single unrelated line ends it.
        if traceback.kind is not _Kind.PYTHON or traceback.unrelated_lines > 60:
            del self._open[lane]
        return None


def _is_native_heading(text: str) -> bool:
    if text[:1] in "[(":
        return "received signal" in text or any(beginning in text for beginning in _NATIVE_HEADINGS)
    return text.startswith(_NATIVE_HEADINGS)


def _is_python_heading(body: str) -> bool:
    """Return True for the heading of a traceback, False for a sentence that mentions tracebacks."""
    prefix, _, rest_of_line = body.partition(_PYTHON_HEADING)
    return rest_of_line.startswith("most recent call last):") and len(prefix.split()) <= 4


def _split_lane(text: str) -> tuple[str, str]:
    lane = _LANE_PATTERN.match(text)
    return (lane[1], text[lane.end() :]) if lane is not None else ("", text)
