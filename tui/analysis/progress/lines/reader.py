"""Parse the lines of a log of any trainer by their templates.

A line is split into texts and numbers. The texts are the key of its template, which assigns meanings to the
numbers and is cached. How these numbers change over several lines decides whether a training printed them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import re2

from tui.analysis.bounded import Bounded
from tui.analysis.logs.errors import MAY_FAIL
from tui.analysis.logs.excerpt import MAX_CHARACTERS, newest_states, without_digits
from tui.analysis.progress.lines import saves
from tui.analysis.progress.lines.custom import ProgressPattern
from tui.analysis.progress.lines.decide import decide
from tui.analysis.progress.lines.evidence import MAX_TRACKED, TrainingEvidence
from tui.analysis.progress.lines.line import clean, enveloped, split
from tui.analysis.progress.lines.reading import LineReading, ParsedMetrics
from tui.analysis.progress.lines.shape import MAX_LAYOUTS, Layout, Shape
from tui.analysis.progress.lines.tables import Table, separators
from tui.analysis.progress.lines.template import Template
from tui.text.sanitize import last_carriage_segment, strip_ansi

MAX_SHAPES = 4096
"""Maximum cached shapes and templates; the oldest are evicted."""

_MAY_REPORT = re2.compile(  # takes a third of the time of ``re``
    rb"(?i)loss|step|epoch|episode|iter|it/s|s/it|batch|norm|lr|tps|tgs|wps|learn|train(?:-|ing's)|valid|tok|sample|update|/s\b|entropy|\bep\b|/group|sav|writ|ckpt|checkpoint|dump|stor|snapshot"
)
"""Prefilter: a line without any of these reports no progress."""

_NAME_AND_NUMBER = re2.compile(rb"^(?:\| *)?[^:=|]*[\w)]\s*[:=|]\s*[-+.]{0,2}[e%\w-]{0,4}[ |]*$")
"""A line that is only a name and a number: a metric within a block of values."""

_MAY_ANNOUNCE = re2.compile(
    rb"(?i)restart|retry_count|retrying|attempt|skipping|membership|new node|scal(?:ing|ed)|planned|scheduled"
    rb"|seq(?:uence)?[_. -]{0,2}len"
    rb"|valuat|\beval|alidat|nference|oading|nitiali|okenizing|ompil|apturing|ploading|ushing|erging|enerating"
    rb"|onsolidat|(?:save|saving|checkpoint|ckpt)[\w ]{0,24}?(?:steps|interval|every|freq)"
)
"""Prefilter: a line without any of these has no announcement."""

_MOVING_TARGET = re2.compile(
    rb"(?i)reward|advantage|policy|value_loss|critic|advers|pg_loss|\bkl\b|approx_kl|episod|returns?\b"
    rb"|loss[_/ ]?(?:g|d|gen|disc)\b|\b(?:g|d|gen|disc|generator|discriminator)[_/ ]?loss"
)
"""Names of quantities next to which a loss may rise while the model improves."""

_CONVERSATIONAL = re2.compile(
    rb"\bI(?:'m|'ll|'ve|'d)? [a-z]+(?:[ ,.;:]|$)|\b[Ll]et(?:'s| me)\b|\b[Mm]y [a-z]|```|~~~|<\|\w+\|>"
    rb"|^(?:\W{0,4}|[\w\]\[]+[:=]? ?)[A-Z]"
    rb"(?:[a-z']*[,!]?(?: [\w',-]+){3,}[.?!:](?:$| [A-Z])|[\w', -]*\?\W*$|[a-z']* [\w' .,/-]*:$)"
    rb"|^\W{0,3}(?i:user|human|assistant)\b|\b(?:said|wrote):$|^#{1,6} [A-Z][\w' ]*\w(?:$|[.?!:])"
    rb"|(?:^|[^*])\*\*\w|^\W{0,4}\$ [a-z]|^\W*(?:const|def|function) \w"
)
"""Signs that a person or a model wrote the line: a sentence, an introduction that ends with a colon,
the first person, questions, roles, Markdown, a command, code."""

_RANK = re.compile(
    r"(?:.{0,60}?[-\s])??\W{0,3}?\[(?:rank|default|local_rank)[ :=]?\s?(\d{1,5})\]:?"
    r"|\W{0,3}(?:rank[ :=]?\s?(\d{1,5})(?=\W)|\d{1,5},(?:mpirank:)?(\d{1,5})(?:,[\w.-]{1,40})?\]<std\w{3}>"
    r"|(\d{1,5})(?=: [^\s\d])|[a-z][\w.-]{0,60}?(?:-(\d{1,5}) +\|(?= )|/(\d{1,5})(?= [a-z[{]))"
    r"|\w{1,60} pid=(\d{1,9})(?:, ip=[\w.:]{1,45})?\)):?\s?",
    re.IGNORECASE,
)
"""A rank before a line: torchrun's ``[rank0]:``, srun's ``0: ``, mpirun's ``[1,0]<stdout>:``, Compose's
``train-1  |``, torchx's ``trainer/0``, Ray's pid."""


class Reader:
    """Parses lines in any order. ``patterns`` are the user's own and take precedence."""

    def __init__(self, patterns: Sequence[ProgressPattern] = (), *, max_shapes: int = MAX_SHAPES) -> None:
        self._patterns = patterns
        self._shapes: dict[bytes, Shape] = Bounded(max_shapes)
        self._templates: dict[tuple[str, ...], Template] = Bounded(max_shapes)
        self._evidence = TrainingEvidence()
        self._tables: dict[str, Table] = {}

    def read(
        self, message: str, replica: str = "", at_ns: int = 0, shape: Shape | None = None
    ) -> list[LineReading]:
        """Return the readings accepted now: this line's, and those of earlier lines that were pending."""
        if self._patterns and (custom_reading := self._read_custom(message)) is not None:
            return [LineReading(at_ns, replica, custom_reading)]
        if message.startswith(('{"', ',{"', '[{"')) and (text := enveloped(message)) is not None:
            message, shape = text, None
        if "\n" not in message and "\r" not in message and len(message) <= MAX_CHARACTERS:
            return self._read_text(shape or self.shape(message), message, replica, at_ns)
        lines = newest_states(message).split("\n")[-200:]
        return [line_reading for line in lines for line_reading in self._read_states(line, replica, at_ns)]

    def _read_custom(self, message: str) -> ParsedMetrics | None:
        text = strip_ansi(last_carriage_segment(message))
        return next((reading for each in self._patterns if (reading := each.read(text)) is not None), None)

    def _read_states(self, line: str, replica: str, at_ns: int) -> list[LineReading]:
        """Read the newest state of a progress line, and earlier states until one has a bar or a step."""
        match = _RANK.match(line)
        rank = "" if match is None else match[0]
        states = [state for state in line[len(rank) :].split("\r") if state.strip()][-4:]
        line_readings: list[LineReading] = []
        for state in reversed(states):
            state_readings = self._read_text(self.shape(state := f"{rank}{state}"), state, replica, at_ns)
            line_readings = [*state_readings, *line_readings]
            newest = state_readings[-1].reading if state_readings else None
            if newest is not None and (newest.from_bar or newest.step is not None):
                break
        return line_readings

    def shape(self, message: str) -> Shape:
        """Return the shape of a message, cached by its text without digits."""
        key = without_digits(message)
        shape = self._shapes.get(key)
        if shape is None:
            shape = _shape_of(key)
            if len(key) <= 1024:
                self._shapes[key] = shape
        return shape

    @property
    def new_words(self) -> tuple[float, ...]:
        """Times (epoch s) of the first lines of new shapes without progress: the newest 100, oldest first."""
        times = (shape.first_other_at for shape in self._shapes.values() if not shape.has_reported)
        return tuple(sorted(filter(math.isfinite, times))[-100:])

    def _read_text(self, shape: Shape, line: str, replica: str, at_ns: int) -> list[LineReading]:
        if shape.is_conversational:
            self._evidence.quotations.conversational_lines[replica] += 1
        table = self._tables.get(replica)
        if not (
            shape.can_report
            or (table is not None and table.separators == shape.separators)
            or (shape.may_be_pair and self._evidence.is_in_block(replica))
        ):
            shape.was_seen = True
            return []
        if "\x1b" in line or not line.isascii():
            line = strip_ansi(line)
        for layout in shape.layouts:
            if (values := layout.values_of(line)) is not None:
                return self._add_values(layout, values, line, replica, at_ns)
        match = _RANK.match(line)
        text = clean(line if match is None else line[match.end() :])
        texts, values = split(text)
        template = self._templates.get(texts)
        if template is None:
            template = decide(texts, values)
            self._templates[texts] = template
        layout = Layout(template, line, match, text, values)
        if shape.was_seen and len(shape.layouts) < MAX_LAYOUTS:
            layout.learn(line, text)
            shape.layouts.append(layout)
        shape.was_seen = True
        return self._add_values(layout, values, line, replica, at_ns)

    def _add_values(
        self, layout: Layout, values: Sequence[str], line: str, replica: str, at_ns: int
    ) -> list[LineReading]:
        reading = layout.template.read(values)
        table = self._tables.get(replica)
        if table is not None and table.width <= layout.width:
            row = table.read(clean(line[layout.head :]), reading)
            if row is not None:
                return self._evidence.add(table.template.form, LineReading(at_ns, replica, row))
        save = saves.read(line[layout.head :]) if layout.can_save else None
        if save is not None:
            if reading is not None:
                save = reading._replace(checkpoint=save.checkpoint)
            return self._evidence.add_save(LineReading(at_ns, replica, save))
        if layout.table is not None and len(self._tables) < MAX_TRACKED:
            self._tables[replica] = layout.table
        if reading is None:
            return []
        if layout.rank is not None and reading.rank is None:
            reading = reading._replace(rank=int(line[slice(*layout.rank)]))
        return self._evidence.add(layout.template.form, LineReading(at_ns, replica, reading))


def _shape_of(key: bytes) -> Shape:
    return Shape(
        separators(key),
        can_report=_MAY_REPORT.search(key) is not None,
        can_announce=_MAY_ANNOUNCE.search(key) is not None,
        can_fail=MAY_FAIL.search(key) is not None,
        has_moving_target=_MOVING_TARGET.search(key) is not None,
        may_be_pair=_NAME_AND_NUMBER.search(key) is not None,
        is_conversational=_CONVERSATIONAL.search(key) is not None,
    )
