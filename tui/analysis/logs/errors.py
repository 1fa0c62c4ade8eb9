"""Find error lines and tracebacks in a log; count the errors and keep the first and the newest.

The lines of a traceback may be interleaved with those of other ranks; they are matched by the prefix of their
rank.
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
"""Error lines this close together are one error: a traceback, or every rank reporting the same."""

TEXT_CHARACTERS = 300
"""Maximum length of the text kept for an error, cut between words."""

MAY_FAIL = re2.compile(
    rb"ERR|rror|xception|raceback|SEVERE|CRITICAL|FATAL|atal|level|Interrupt|SystemExit|terminate called"
    rb"|Segmentation|Abort|SIG|Xid|\b[EF] "
)
"""A line, with its digits removed, that matches none of these is no error, unless the server says so."""

_RAISED = re.compile(
    r"^\s{0,4}(?:\[\w+\]: ?|\([^()]{0,48}\bpid=[^()]{1,48}\) )?(?:[A-Za-z_]\w*\.)*"
    r"[A-Z]\w*(?:Error|Exception|Interrupt)(?:\(\w{1,48}\))?(?::\s|$)"
)
_HARMLESS = re.compile(
    r"Unable to register cu\w{1,40} (?:plugin )?factory|computation placer already registered"
    r"|pip's dependency resolver does not|fatal: not a git repository|\bslow_operation_alarm\.cc"
    r"|Very slow compile\?"
)
"""Errors that healthy runs print: pip after an installation, TensorFlow on import, XLA while compiling, git
when an experiment tracker reads the commit outside a repository."""
_VAGUE = re.compile(
    r"^.{0,60}?(?:Traceback \(most recent|File \")|Root Cause|ChildFailedError|Error executing job with"
)


def error_text(message: str, level: str | None) -> str | None:
    """Return the error text of a log line as a single line; None if it reports no error.

    For a traceback in one message it is the last line, which names the exception.
    """
    text = strip_ansi(excerpt(message))
    if RANKS[level_of(text, level)] < RANKS["ERROR"] or _HARMLESS.search(text):
        return None
    lines = [
        line for line in text.splitlines() if any(map(str.isalnum, line))
    ]  # skip separators such as ****
    if not lines:
        return None
    raised = [line for line in lines if _RAISED.match(line)]
    return shortened((raised[-1] if raised else lines[0]).strip(), TEXT_CHARACTERS)


def _informativeness(text: str) -> int:
    """Return how informative an error's text is: 0 for a heading, 2 if it names an exception, else 1."""
    if _VAGUE.match(text):
        return 0
    return 2 if DRIVER_REPORT in text or _RAISED.match(text) else 1


class ErrorLines:
    """Collects error lines in any order, in bounded memory."""

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
            other = self._kept[index]
            if other.at_ns < at_ns - SAME_ERROR_NS:
                break
            if abs(other.at_ns - at_ns) <= SAME_ERROR_NS:
                if _informativeness(text) > _informativeness(other.text):
                    self._kept[index] = ErrorLine(other.at_ns, text, other.replica)
                    if self._first == other:
                        self._first = self._kept[index]
                    return True
                return False
        # Pages may be read newest first; then older errors are counted, but not kept.
        for counted in (self._first, self._last_counted):
            if counted is not None and abs(counted.at_ns - at_ns) <= SAME_ERROR_NS:
                if counted is self._first and error < counted:
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


_LANE = re.compile(r"(\[[A-Za-z]{1,20}\d{1,5}\]:|\([A-Za-z_]{0,40}\s?pid=\d+[^)]{0,40}\)) ?")
_HEADING = "Traceback ("
_NATIVE_BEGINNINGS = (
    "terminate called",
    "Exception raised from",
    "Fatal Python error",
    "frame #0",
    "*** Aborted at",
    "C++ CapturedTraceback",
)
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_EXCEPTION = re.compile(
    r"(?:[A-Za-z_][\w.]{0,160}+(?<=Error|ption|Group|rrupt)|SystemExit|StopIteration|GeneratorExit"
    r"|(?:[a-z_]\w{0,40}+\.){1,8}+[A-Z]\w{0,80}+)(?::|$)"
)
"""An exception, recognized by its name or its module (``queue.Empty``); not another line, as ``Epoch: 3``."""
_NATIVE = re.compile(
    r"frame #\d|#\d{1,3} |what\(\): |Exception raised from|CUDA kernel errors|For debugging consider"
    r"|Compile with|Current thread 0x|Thread 0x|\[[^\]]{1,80}\] \[ ?\d+\]|\[[^\]]{1,80}\] \*\*\*"
    r"|PC: @|@ +0x|Extension modules:"
)


class TracebackPart(Enum):
    """The role of a line in its traceback.

    When folded, ``BEGIN`` and ``END`` stay visible: the heading and the exception. Not every traceback
    has an ``END``; it also ends with the next ``BEGIN`` of its lane, or with unrelated lines in its lane.
    """

    BEGIN = "begin"
    INSIDE = "inside"
    END = "end"


class TracebackLine(NamedTuple):
    """A line of a traceback; lines of the same ``lane`` (a rank's prefix) belong together."""

    part: TracebackPart
    lane: str


class _Kind(Enum):
    PYTHON = 1
    ENDED = 2  # The exception was found; a chained one, or more lines of its message, may follow.
    NATIVE = 3


@dataclass(slots=True)
class _OpenTraceback:
    kind: _Kind
    foreign_lines: int = 0
    chained: bool = False


class TracebackReader:
    """Reads the lines of one node in order and finds those that belong to a traceback."""

    def __init__(self) -> None:
        self._open: dict[str, _OpenTraceback] = {}

    def read(self, text: str) -> TracebackLine | None:
        """Return the role of the next line; None if it is outside of any traceback.

        While no traceback is open, an ordinary line costs a few substring searches.
        """
        text = excerpt(text)
        if not self._open and not (_HEADING in text or _begins_native(text)):
            return None
        lane, body = _split_lane(text)
        part = self._begin(lane, body) or self._continue(lane, body)
        return None if part is None else TracebackLine(part, lane)

    def _begin(self, lane: str, body: str) -> TracebackPart | None:
        stack = self._open.get(lane)
        is_indented = body[:1].isspace()
        if _HEADING in body and (_is_heading(body) or (stack is not None and (stack.chained or is_indented))):
            kind, is_inside = _Kind.PYTHON, stack is not None and (stack.chained or is_indented)
        elif _begins_native(body) and not (stack is not None and stack.kind is _Kind.PYTHON and is_indented):
            kind, is_inside = _Kind.NATIVE, stack is not None
        else:
            return None
        self._open[lane] = _OpenTraceback(kind)
        return TracebackPart.INSIDE if is_inside else TracebackPart.BEGIN

    def _continue(self, lane: str, body: str) -> TracebackPart | None:
        stack = self._open.get(lane)
        if stack is None:
            return None
        if stack.kind is _Kind.PYTHON and _EXCEPTION.match(body):
            stack.kind, stack.foreign_lines = _Kind.ENDED, 0
            return TracebackPart.END
        stack.chained = stack.chained or body.startswith(_CHAINED)
        continues = _NATIVE.match(body) if stack.kind is _Kind.NATIVE else body.startswith(_CHAINED)
        # a tqdm line begins with a space below 100%: the run continued after the exception
        if continues or not body.strip() or (body[0].isspace() and "%|" not in body):
            stack.foreign_lines = 0
            return TracebackPart.INSIDE
        stack.foreign_lines += 1
        # Lines of other processes may interrupt a Python traceback before its end, up to a limit. After the
        # end, and in a native stack, another line ends it.
        if stack.kind is not _Kind.PYTHON or stack.foreign_lines > 60:
            del self._open[lane]
        return None


def _begins_native(text: str) -> bool:
    if text[:1] in "[(":
        return "received signal" in text or any(beginning in text for beginning in _NATIVE_BEGINNINGS)
    return text.startswith(_NATIVE_BEGINNINGS)


def _is_heading(body: str) -> bool:
    """Return True for a heading, False for a sentence that mentions one."""
    before, _, after = body.partition(_HEADING)
    return after.startswith("most recent call last):") and len(before.split()) <= 4


def _split_lane(text: str) -> tuple[str, str]:
    lane = _LANE.match(text)
    return (lane[1], text[lane.end() :]) if lane is not None else ("", text)
