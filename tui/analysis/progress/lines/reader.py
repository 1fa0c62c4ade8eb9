"""Read step, loss, speed and saves out of one log line, whichever trainer printed it.

Specific formats are tried before general ones. Lines without any hint word are skipped after a few
substring searches, because most lines of a log are no progress lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import reduce

from tui.analysis.progress.lines import bars, saves, structured, text, trainers
from tui.analysis.progress.lines.custom import ProgressPattern
from tui.analysis.progress.lines.reading import ParsedMetrics
from tui.text.sanitize import last_carriage_segment, strip_ansi

MAX_CHARACTERS = 8192
"""Longer lines are never progress lines, so parsing them would waste time."""

_MAX_LINES = 200
_MAX_SEGMENTS = 4
_SHORT = 8  # Shorter texts after a bar report nothing.
_FIELDS = tuple(field.name for field in fields(ParsedMetrics) if field.name != "from_bar")

_HINTS = (
    "loss",
    "step",
    "it/s",
    "s/it",
    "iter",
    "epoch",
    "checkpoint",
    "ckpt",
    "sav",
    "batch=",
    "_per_s",
    "lr=",
    "/group0",
    "eval/",
    " norm",
    "_norm",
    "optim/",
    "device/tps",
    "tokens/sec",
    "persec",
    "learn: ",
    "rmse",
    "-mae:",
    "-error:",
    "up. ",
    "current_lr",
)
"""Every line of every family contains one of these (lower case)."""

# torchrun's [rank0]: and [default0]:, srun's 0:, mpirun's [1,0]<stdout>:, Ray's processes and custom ones,
# possibly after a time and a level.
_RANK = re.compile(
    r"^\s*(?:(?:\[?\d{4}-\d\d-\d\d[T ][\d:.,]{8,18}(?:Z|[+-]\d\d:?\d\d)?\]?[ :|-]{0,4})?"
    r"(?:\[?(?:INFO|DEBUG|WARNING)\]?[ :|-]{0,4})?"
    r"(?:\[(?:rank|default|Rank |Rank:? ?|RANK |local_rank )(\d{1,5})\]:?"
    r"|(?:rank|Rank)[ :=](\d{1,5})(?:\]|:|,| \|| -)(?=\s))"
    r"|\[\d+,(\d{1,5})\]<std\w{3}>:?|(\d{1,5}): (?=\S)|\(\w{1,60} pid=(\d{1,9})(?:, ip=[\w.:]{1,45})?\))"
)

# From the most specific to the most general: a general reader would take part of a specific line.
_READERS = (
    structured.read_python_dict,
    structured.read_json,
    bars.read,
    trainers.read_keras,
    trainers.read_nemo,
    trainers.read_torchtitan_start,
    trainers.read_own_format,
    trainers.read_boosting,
    text.read,
    trainers.read_announced_total,
)


def parse(message: str, patterns: Sequence[ProgressPattern] = ()) -> ParsedMetrics | None:
    """Parse a log line; ``None`` if it does not report training progress.

    If a progress bar overwrote parts of the line, the last state counts; several lines of one message are
    combined. NaN and infinite losses are kept, because people need to see them. Never raises, whatever
    the text. The user's own ``patterns`` are tried first, on any line.
    """
    if len(message) > MAX_CHARACTERS:
        overwritten = message[-MAX_CHARACTERS:]
        if "\r" not in overwritten:
            return None
        message = overwritten[overwritten.index("\r") :]
    for pattern in patterns:
        reading = pattern.read(strip_ansi(last_carriage_segment(message)))
        if reading is not None:
            return reading
    lowered = message.lower()
    for hint in _HINTS:
        if hint in lowered:
            break
    else:
        return None
    text = strip_ansi(message.rstrip("\r\n")).replace("\b", "")  # Keras moves the cursor with backspaces.
    if "\n" not in text:
        return _read_line(text)
    told = [reading for line in text.split("\n")[-_MAX_LINES:] if (reading := _read_line(line)) is not None]
    return reduce(_merged, told) if told else None


def _read_line(text: str) -> ParsedMetrics | None:
    """Parse a single line, using the last of its segments that reports progress.

    Transformers prints its losses over its bar: for a loss without a step, the preceding bar has the
    step.
    """
    if "\r" not in text:
        return _read_segment(text)
    segments = [segment for segment in text.split("\r") if segment.strip()][-_MAX_SEGMENTS:]
    if not segments:
        return None
    told: ParsedMetrics | None = None
    for segment in reversed(segments):
        reading = _read_segment(segment)
        if reading is None:
            continue
        if told is None:
            told = reading
        elif reading.from_bar and told.loss is not None and told.step is None and told.epoch_step is None:
            told = bars.with_bar_counts(told, reading)
        if told.from_bar or told.step is not None:
            break
    rank = _RANK.match(text)  # The rank may precede the first segment.
    return (
        told if told is None or rank is None or told.rank is not None else replace(told, rank=_number(rank))
    )


def _read_segment(text: str) -> ParsedMetrics | None:
    rank = _RANK.match(text)
    if rank is not None:
        text = text[rank.end() :]
    reading = _read_facts(text)
    if reading is None or rank is None or reading == ParsedMetrics(checkpoint=reading.checkpoint):
        return reading
    return replace(reading, rank=_number(rank))


def _read_facts(text: str) -> ParsedMetrics | None:
    """Parse the measures of a line and the save that it may report as well."""
    reading = next((found for read in _READERS if (found := read(text)) is not None), None)
    if reading is not None and reading.from_bar:
        rest = text[bars.ends(text) :]
        if rest != text and len(rest.strip()) > _SHORT:
            after = _read_facts(rest)
            if after is not None:
                reading = replace(_merged(after, reading), from_bar=True)
    save = saves.read(text)
    if save is None:
        return reading
    return save if reading is None else replace(reading, checkpoint=save.checkpoint)


def _merged(reading: ParsedMetrics, other: ParsedMetrics) -> ParsedMetrics:
    """Return the reading with all values of the other."""
    return replace(
        reading, **{name: value for name in _FIELDS if (value := getattr(other, name)) is not None}
    )


def _number(rank: re.Match[str]) -> int:
    return int(rank[rank.lastindex or 1])
