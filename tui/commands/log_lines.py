"""Log entries as lines of text, of JSON, or as they were printed by the job."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from api_client.streams.records import LogGap, LogLine
from tui.commands.log_filter import NO_NODE, Shown
from tui.commands.output import Output, ascii_json
from tui.insight.logs.levels import level_of
from tui.insight.logs.record import record_of
from tui.insight.text import inert

NS_PER_S = 1_000_000_000
NS_PER_US = 1_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEXT_TIME_FORMAT = "%Y-%m-%d %H:%M:%S.%f"
MICROSECOND_DIGITS_DROPPED = 3
GROUP_SEPARATOR = "--\n"
TONE_OF_LEVEL = {"CRITICAL": "bad", "ERROR": "bad", "WARNING": "caution", "DEBUG": "muted"}

LOCAL, UTC_TIME, RELATIVE, ELAPSED, OFF = "local", "utc", "relative", "elapsed", "off"
TIME_MODES = (LOCAL, UTC_TIME, RELATIVE, ELAPSED, OFF)

StampText = Callable[[int], str]


def ndjson_line(shown: Shown) -> str:
    """One entry as one line of JSON, ended.

    The fields are ``record_of``'s; ``"context": true`` marks a line around a match.
    """
    document = record_of(shown.entry)
    if shown.is_context:
        document["context"] = True
    return ascii_json(document) + "\n"


class JsonArray:
    """The entries of a whole log as one JSON array, an object a line."""

    def __init__(self) -> None:
        self._is_begun = False

    def render(self, shown: Shown) -> str:
        """Return one entry and what separates it from the one before."""
        lead = ",\n" if self._is_begun else "[\n"
        self._is_begun = True
        return lead + ndjson_line(shown).rstrip("\n")

    def end(self) -> str:
        """Return what ends the array."""
        return "\n]\n" if self._is_begun else "[]\n"


class RawLines:
    """The messages alone, as the job wrote them."""

    def __init__(self, output: Output) -> None:
        self._remark = output.remark

    def render(self, shown: Shown) -> str:
        """The message, ended. A gap is no message: it is remarked on stderr."""
        entry = shown.entry
        if isinstance(entry, LogGap):
            self._remark(gap_text(entry, _local))
            return ""
        return entry.message.removesuffix("\n") + "\n"


class TextLines:
    """Entries as text: time, node, message; continuation lines are indented under the first."""

    def __init__(self, output: Output, stamp_text: StampText | None = None) -> None:
        self._paint = output.paint
        self._stamp_text = stamp_text or _local
        self._replica_width = 0
        self._stamp_width = 0

    def render(self, shown: Shown) -> str:
        """One entry, every line ended and inert."""
        separator = GROUP_SEPARATOR if shown.after_skipped else ""
        if isinstance(shown.entry, LogGap):
            return self._paint(f"-- {gap_text(shown.entry, self._stamp_text)} --", "caution") + "\n"
        return separator + self._line(shown.entry)

    def _line(self, line: LogLine) -> str:
        replica = inert(line.replica or NO_NODE)
        self._replica_width = max(self._replica_width, len(replica))
        stamp = self._stamp_text(line.timestamp_ns)
        self._stamp_width = max(self._stamp_width, len(stamp))
        first, *rest = line.message.rstrip("\n").split("\n")
        tone = TONE_OF_LEVEL.get(level_of(line.message, line.level))
        shown_stamp = f"{self._paint(stamp.rjust(self._stamp_width), 'muted')}  " if stamp else ""
        head = f"{shown_stamp}{self._paint(replica.ljust(self._replica_width), 'name')}  "
        if not rest:
            return f"{head}{self._paint(inert(first), tone)}\n"
        indent = " " * ((self._stamp_width + 2 if stamp else 0) + self._replica_width + 2)
        texts = [f"{head}{self._paint(inert(first), tone)}\n"]
        texts.extend(f"{indent}{self._paint(inert(text), tone)}\n" for text in rest)
        return "".join(texts)


def gap_text(gap: LogGap, stamp_text: StampText) -> str:
    """What a person reads of a gap."""
    start, end = stamp_text(gap.start_ns), stamp_text(gap.end_ns)
    where = f" {start} to {end}" if start else ""
    return f"gap{where}: {inert(gap.reason)}"


def stamp_text_of(mode: str, *, beginning: datetime, now: Callable[[], datetime]) -> StampText:
    """How times are written: one of ``TIME_MODES``; ``elapsed`` counts from ``beginning``."""
    if mode == OFF:
        return lambda _: ""
    if mode == UTC_TIME:
        return _utc
    if mode == RELATIVE:
        return lambda stamp_ns: _clock(stamp_ns / NS_PER_S - now().timestamp())
    if mode == ELAPSED:
        return lambda stamp_ns: _clock(stamp_ns / NS_PER_S - beginning.timestamp())
    return _local


def renderer(
    output: Output, output_format: str, stamp_text: StampText | None = None
) -> Callable[[Shown], str]:
    """What turns an entry into its lines, ended: ``text``, ``ndjson`` or ``raw``."""
    if output_format == "ndjson":
        return ndjson_line
    if output_format == "raw":
        return RawLines(output).render
    return TextLines(output, stamp_text).render


def _clock(seconds: float) -> str:
    """``+1:02:03.4`` or ``-0:00:07.1``."""
    tenths = round(abs(seconds) * 10)
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    sign = "-" if seconds < 0 else "+"
    return f"{sign}{hours}:{minutes:02}:{rest // 10:02}.{rest % 10}"


def _local(timestamp_ns: int) -> str:
    """Local time with milliseconds; the bare number where no calendar has it."""
    moment = _moment(timestamp_ns)
    if moment is None:
        return str(timestamp_ns)
    return moment.astimezone().strftime(TEXT_TIME_FORMAT)[:-MICROSECOND_DIGITS_DROPPED]


def _utc(timestamp_ns: int) -> str:
    moment = _moment(timestamp_ns)
    if moment is None:
        return str(timestamp_ns)
    return moment.strftime(TEXT_TIME_FORMAT)[:-MICROSECOND_DIGITS_DROPPED] + "Z"


def _moment(timestamp_ns: int) -> datetime | None:
    try:
        return EPOCH + timedelta(microseconds=timestamp_ns // NS_PER_US)
    except OverflowError:
        return None
