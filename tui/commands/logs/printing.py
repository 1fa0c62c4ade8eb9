"""Select and format the lines that ``bt-tui logs`` prints: by node, level or pattern, with context."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from api_client.models import TrainingJob
from api_client.models.logs import NS_PER_S, LogEntry, LogGap, LogLine
from tui.analysis.logs.levels import RANKS, level_of, level_rank
from tui.commands.support.output import JSON, NDJSON, CommandOutput, ascii_json, not_in_job_error
from tui.text.log_entries import NO_NODE, entry_fields
from tui.text.sanitize import sanitize, sanitize_whole
from tui.text.times import stamp_text


@dataclass(frozen=True, slots=True)
class OutputLine:
    """An entry to print: a match, a context line, or a gap.

    ``index`` is the line's number among all lines of the chosen nodes, printed or not, in reading order.
    """

    entry: LogEntry
    is_context: bool = False
    index: int | None = None


class LogLineFilter:
    """Filters entries one at a time, in either time direction, and returns the entries to print.

    ``is_chosen`` selects the nodes; among their lines, ``min_level`` and ``matches`` select the matches.
    A line without a level counts as INFO, like ordinary output. Gaps always pass.
    """

    def __init__(
        self,
        *,
        is_chosen: Callable[[str | None], bool],
        min_level: str | None = None,
        matches: Callable[[str], bool] | None = None,
        invert: bool = False,
        context_lines: int = 0,
    ) -> None:
        self._is_chosen = is_chosen
        self._min_rank = RANKS[min_level] if min_level else None
        self._matches = matches
        self._invert = invert
        self._context_lines = context_lines
        self._context_before: deque[OutputLine] = deque(maxlen=context_lines)
        self._context_left = 0
        self._index = 0

    @property
    def needs_context(self) -> bool:
        """True if context lines after the last match are still needed."""
        return self._context_left > 0

    def filter_entry(self, entry: LogEntry, *, only_context: bool = False) -> list[OutputLine]:
        """Return the entries to print now; the entry itself, if included, comes last.

        With ``only_context``, no more matches are returned, only context lines after the last match.
        """
        if isinstance(entry, LogGap):
            return [] if only_context else [OutputLine(entry)]
        if not self._is_chosen(entry.replica):
            return []
        self._index += 1
        if not only_context and self._is_match(entry):
            lines = [*self._context_before, OutputLine(entry, index=self._index)]
            self._context_before.clear()
            self._context_left = self._context_lines
            return lines
        line = OutputLine(entry, is_context=True, index=self._index)
        if self._context_left:
            self._context_left -= 1
            return [line]
        self._context_before.append(line)
        return []

    def _is_match(self, line: LogLine) -> bool:
        if self._min_rank is not None and level_rank(line.message, line.level) < self._min_rank:
            return False
        return self._matches is None or self._matches(line.message) is not self._invert


class NodeChooser:
    """Callable that tests if a line's node was requested, by its full name or its number.

    Baseten does not document how training jobs name their nodes, so ``2`` matches ``2``, ``node-2`` and
    ``g00r2``. Without names, every line is chosen. Remembers which nodes it has seen.
    """

    def __init__(self, nodes: Sequence[str] = ()) -> None:
        self._nodes = tuple(dict.fromkeys(nodes))
        self._numbers = {int(name) for name in nodes if _is_number(name)}
        self._is_chosen_by_replica: dict[str | None, bool] = {}

    def __call__(self, replica: str | None) -> bool:
        """Return True if the node is chosen; `replica` is None for lines without a node."""
        if replica not in self._is_chosen_by_replica:
            name = replica or NO_NODE
            is_chosen = name in self._nodes or _number_of(name) in self._numbers
            self._is_chosen_by_replica[replica] = is_chosen or not self._nodes
        return self._is_chosen_by_replica[replica]

    def check(self, job: TrainingJob) -> None:
        """Raise CommandFailed if no node seen so far has a requested name, and no other node can have it.

        Nodes are numbered from 0, so a number below the job's node count may be a node without output.
        """
        if not self._nodes or not self._is_chosen_by_replica:
            return
        seen_nodes = [replica or NO_NODE for replica in self._is_chosen_by_replica]
        numbers = {_number_of(name) for name in seen_nodes} | set(range(job.node_count or 0))
        for name in self._nodes:
            if name not in seen_nodes and not (_is_number(name) and int(name) in numbers):
                raise not_in_job_error(job.id, "node", name, seen_nodes)


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit()


def _number_of(name: str) -> int | None:
    match = re.search(r"(\d{1,9})\D{0,9}$", name)
    return int(match[1]) if match else None


RAW = "raw"
TIME_MODES = ("local", "utc", "relative", "elapsed", "off")
TONE_OF_LEVEL = {"CRITICAL": "bad", "ERROR": "bad", "WARNING": "caution", "DEBUG": "muted"}

StampFormatter = Callable[[int], str]


def ndjson_line(line: OutputLine) -> str:
    """Return an entry as one line of JSON with a line break.

    The fields are those of ``entry_fields``; ``"context": true`` marks a context line of a match.
    """
    document = entry_fields(line.entry)
    if line.is_context:
        document["context"] = True
    return ascii_json(document) + "\n"


def raw_text(print_message: Callable[[str], object], line: OutputLine) -> str:
    """Return the message, exactly as the job printed it, with a line break; print a gap to stderr."""
    entry = line.entry
    if isinstance(entry, LogGap):
        print_message(gap_text(entry, stamp_text))
        return ""
    return entry.message.removesuffix("\n") + "\n"


class TextRenderer:
    """Renders entries as text: time, node, message; continuation lines are indented below the first.

    With ``has_context``, ``--`` separates lines that do not follow each other, as in grep.
    """

    def __init__(
        self, output: CommandOutput, format_stamp: StampFormatter = stamp_text, *, has_context: bool = False
    ) -> None:
        self._paint = output.paint
        self._format_stamp = format_stamp
        self._has_context = has_context
        self._last_index: int | None = None
        self._replica_width = 0
        self._stamp_width = 0

    def render(self, line: OutputLine) -> str:
        """Return one entry, sanitized, each line with a line break."""
        if isinstance(line.entry, LogGap):
            return self._paint(f"-- {gap_text(line.entry, self._format_stamp)} --", "caution") + "\n"
        last_index, self._last_index = self._last_index, line.index
        is_apart = last_index is not None and line.index is not None and abs(line.index - last_index) > 1
        separator = "--\n" if self._has_context and is_apart else ""
        return separator + self._line_text(line.entry)

    def _line_text(self, line: LogLine) -> str:
        replica = sanitize(line.replica or NO_NODE)
        self._replica_width = max(self._replica_width, len(replica))
        stamp = self._format_stamp(line.timestamp_ns)
        self._stamp_width = max(self._stamp_width, len(stamp))
        shown_stamp = f"{self._paint(stamp.rjust(self._stamp_width), 'muted')}  " if stamp else ""
        line_start = f"{shown_stamp}{self._paint(replica.ljust(self._replica_width), 'name')}  "
        indent = "\n" + " " * ((self._stamp_width + 2 if stamp else 0) + self._replica_width + 2)
        tone = TONE_OF_LEVEL.get(level_of(line.message, line.level))
        rows = [self._paint(sanitize_whole(text), tone) for text in line.message.rstrip("\n").split("\n")]
        return f"{line_start}{indent.join(rows)}\n"


def gap_text(gap: LogGap, format_stamp: StampFormatter) -> str:
    start, end = format_stamp(gap.start_ns), format_stamp(gap.end_ns)
    range_text = f" {start} to {end}" if start else ""
    return f"gap{range_text}: {sanitize(gap.reason)}"


def stamp_formatter(mode: str, *, beginning: datetime, now: Callable[[], datetime]) -> StampFormatter:
    """Return the formatter for one of ``TIME_MODES``; ``elapsed`` counts from ``beginning``."""
    if mode == "off":
        return lambda _: ""
    if mode == "utc":
        return partial(stamp_text, timezone=UTC)
    if mode == "relative":
        return lambda stamp_ns: _offset_text(stamp_ns / NS_PER_S - now().timestamp())
    if mode == "elapsed":
        return lambda stamp_ns: _offset_text(stamp_ns / NS_PER_S - beginning.timestamp())
    return stamp_text


class LogPrinter:
    """Prints entries in the format of an output: as text, ndjson, raw, or all in one JSON array."""

    def __init__(
        self, output: CommandOutput, format_stamp: StampFormatter = stamp_text, *, has_context: bool = False
    ) -> None:
        self.output = output
        self._has_begun = False
        text = TextRenderer(output, format_stamp, has_context=has_context)
        renderers: dict[str, Callable[[OutputLine], str]] = {
            NDJSON: ndjson_line,
            JSON: self._array_item,
            RAW: partial(raw_text, output.print_message),
        }
        self._render = renderers.get(output.format, text.render)

    def print(self, entries: Sequence[OutputLine]) -> None:
        if entries:
            self.output.write_text("".join([self._render(entry) for entry in entries]))

    def end(self) -> None:
        """Close the JSON array; other formats need no end."""
        if self.output.format == JSON:
            self.output.write_text("\n]\n" if self._has_begun else "[]\n")

    def _array_item(self, line: OutputLine) -> str:
        separator = ",\n" if self._has_begun else "[\n"
        self._has_begun = True
        return separator + ndjson_line(line).rstrip("\n")


def _offset_text(seconds: float) -> str:
    """Format an offset as ``+1:02:03.4`` or ``-0:00:07.1``."""
    tenths = round(abs(seconds) * 10)
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    sign = "-" if seconds < 0 else "+"
    return f"{sign}{hours}:{minutes:02}:{rest // 10:02}.{rest % 10}"
