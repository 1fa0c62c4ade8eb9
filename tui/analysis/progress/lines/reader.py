"""Reads the lines of a log, whichever trainer printed them, by their templates.

A line is split into texts and numbers. The texts are its template: what its numbers mean is decided once and
remembered. What a template's numbers do over several lines decides whether they are a training's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import re2

from tui.analysis.logs.excerpt import newest_states
from tui.analysis.progress.lines import saves, tables
from tui.analysis.progress.lines.belief import MAX_KINDS, Belief, Told
from tui.analysis.progress.lines.custom import ProgressPattern
from tui.analysis.progress.lines.line import clean, split
from tui.analysis.progress.lines.reading import ParsedMetrics
from tui.analysis.progress.lines.template import Template, decide
from tui.text.sanitize import last_carriage_segment, strip_ansi

MAX_TEMPLATES = 4096
MAX_LINES = 200
MAX_STATES = 4
"""Newest states of a line that progress bars overwrote."""

_HINTS = re2.compile(  # a third of the time of ``re``
    rb"(?i)loss|step|epoch|iter|it/s|s/it|batch|norm|lr|tps|tgs|wps|learning|tok|sample|update|/s\b|entropy|\bep\b|/group|sav|writ|ckpt|checkpoint|dump|stor|snapshot"
)
"""A line that has none of these reports nothing."""

_RANK = re.compile(
    r"(?:.{0,60}?[-\s])??\W{0,3}?\[(?:rank|default|local_rank)[ :=]?\s?(\d{1,5})\]:?"
    r"|\W{0,3}(?:rank[ :=]?\s?(\d{1,5})(?=\W)|\d{1,5},(\d{1,5})\]<std\w{3}>"
    r"|(\d{1,5})(?=: \S)|\w{1,60} pid=(\d{1,9})(?:, ip=[\w.:]{1,45})?\)):?\s?",
    re.IGNORECASE,
)
"""A rank before a line: torchrun's ``[rank0]:``, srun's ``0: ``, mpirun's ``[1,0]<stdout>:``, Ray's pid."""


class Reader:
    """Reads lines in any order; ``patterns`` are the user's own, and are tried first."""

    def __init__(self, patterns: Sequence[ProgressPattern] = ()) -> None:
        self._patterns = patterns
        self._templates: dict[tuple[str, ...], Template] = {}
        self._belief = Belief()
        self._tables: dict[str, tuple[Template, int]] = {}

    def read(self, message: str, replica: str = "", at_ns: int = 0) -> list[Told]:
        """Return what is believed now: of this line, and of lines before it that were held."""
        if self._patterns and (own := self._read_own(message)) is not None:
            return [Told(at_ns, replica, own)]
        message = newest_states(message)
        found: list[Told] = []
        for line in message.split("\n")[-MAX_LINES:]:
            found += self._read_states(line, replica, at_ns)
        return found

    def _read_own(self, message: str) -> ParsedMetrics | None:
        text = strip_ansi(last_carriage_segment(message))
        return next((reading for each in self._patterns if (reading := each.read(text)) is not None), None)

    def _read_states(self, line: str, replica: str, at_ns: int) -> list[Told]:
        """Read the newest state of a line; values printed over a bar, and the bar before them."""
        match = _RANK.match(line)
        rank = None if match is None else int(match[match.lastindex or 1])
        line = line if match is None else line[match.end() :]
        if "\r" not in line:
            return self._read_text(line, replica, at_ns, rank)
        states = [state for state in line.split("\r") if state.strip()][-MAX_STATES:]
        found: list[Told] = []
        for state in reversed(states):
            told = self._read_text(state, replica, at_ns, rank)
            found = [*told, *found]
            if told and (told[-1].reading.from_bar or told[-1].reading.step is not None):
                break
        return found

    def _read_text(self, line: str, replica: str, at_ns: int, rank: int | None) -> list[Told]:
        if _HINTS.search(line.encode("utf-8", "replace")) is None and replica not in self._tables:
            return []
        line = strip_ansi(line)
        save = saves.read(line)
        text = clean(line)
        texts, values = split(text)
        if replica in self._tables and (row := tables.row(text, self._tables[replica])) is not None:
            return [Told(at_ns, replica, row)]
        table = tables.header(text) if not values and save is None else None
        if table is not None and len(self._tables) < MAX_KINDS:
            self._tables[replica] = table
        template = self._template(texts, values)
        reading = template.read(values)
        if save is not None:
            return [*self._belief.trains(), Told(at_ns, replica, _with_save(save, reading, template))]
        if reading is None:
            return []
        if rank is not None and reading.rank is None:
            reading = replace(reading, rank=rank)
        return self._belief.take(template.form, Told(at_ns, replica, reading))

    def _template(self, texts: tuple[str, ...], values: Sequence[str]) -> Template:
        template = self._templates.get(texts)
        if template is None:
            template = decide(texts, values)
            if len(self._templates) < MAX_TEMPLATES:
                self._templates[texts] = template
        return template


def _with_save(save: ParsedMetrics, reading: ParsedMetrics | None, template: Template) -> ParsedMetrics:
    """Return a save with what else its line reports: only its counts, unless its form is clear."""
    if reading is None or template.form.is_prose:
        return save
    if not template.form.is_clear:
        reading = ParsedMetrics(step=reading.step, epoch=reading.epoch)
    return replace(reading, checkpoint=save.checkpoint)
