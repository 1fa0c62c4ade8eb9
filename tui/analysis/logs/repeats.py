"""Recognize lines that are folded into one line: states of a progress bar, and lines that many ranks print.

Progress bars are those of tqdm and Hugging Face (``%|``), Keras and Rich (``━``), pip, wget and others
(``[===> ]``). A terminal would overwrite each state with the next; a log has a line for each state.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import re2

from tui.analysis.logs.excerpt import excerpt
from tui.text.sanitize import last_carriage_segment, strip_ansi

_TQDM_BAR = re.compile(r"(?<=\d%)\|[^|]{0,512}+\|")
_PERCENT_PATTERN = re.compile(r"(\d{1,3}+)(?:\.\d++)?%")
_COUNT_PATTERN = re.compile(r"(\d[\d.,]{0,23}+)\s?([a-zA-Z]{0,3})/(\d[\d.,]{0,23}+\s?[a-zA-Z]{0,3})")
_RICH_BAR = re.compile(r"[━╸╺]{2}[━╸╺\u2500-\u257f ]*+")
_BRACKET_BAR = re.compile(r"\[[=#>.\-\s*]{5,}+\]")
_NUMBER_PATTERN = re.compile(r"\d[\d.,:]*+")


class BarState(NamedTuple):
    """The state of a progress bar.

    ``key``, the title and the total, is the same for all states of a bar. ``done`` is the progress, in
    percent or as a count; 0 if the bar shows neither. A lower value than before means that the bar restarted.
    """

    key: str
    done: float


def progress_bar(text: str) -> BarState | None:
    """Parse a progress bar; return None for any other line, after a few substring searches."""
    text = excerpt(text)
    if "%|" in text:
        bar_pattern = _TQDM_BAR
    elif "━" in text or "╸" in text:
        bar_pattern = _RICH_BAR
    elif "[=" in text or "[#" in text or "[>" in text:
        bar_pattern = _BRACKET_BAR
    else:
        return None
    text = strip_ansi(last_carriage_segment(text))
    bar = bar_pattern.search(text)
    if bar is None:
        return None
    title, text_after_bar = text[: bar.start()], text[bar.end() :]
    count, percent = (
        _COUNT_PATTERN.search(text_after_bar) or _COUNT_PATTERN.search(title),
        _PERCENT_PATTERN.search(text),
    )
    if count is None and percent is None:
        return None  # a separator or a table border
    done = float(percent[1]) if percent else _number(count[1]) if count else 0.0
    return BarState(_key(title, count), done)


def _key(title: str, count: re.Match[str] | None) -> str:
    return f"{_constant_title(title)}|{count[3].strip() if count else ''}"


@lru_cache(maxsize=256)
def _constant_title(title: str) -> str:
    """Remove the values from a title that change between states: percentages, counts, values after ``=``."""
    title = _COUNT_PATTERN.sub("", title)
    title = _PERCENT_PATTERN.sub("", title)
    if "=" in title or "|" in title:  # torchtune puts the step and loss into the title: 1|40|Loss: 0.91
        title = _NUMBER_PATTERN.sub("#", title)
    return title.strip(" :-")


def _number(text: str) -> float:
    try:
        return float(text.replace(",", "").rstrip("."))
    except ValueError:
        return 0.0


_MAX_CHARACTERS = 2048
"""Longer lines are not compared."""

_PROCESS_NUMBER_PATTERN = re2.compile(
    rb"(?i)\b(?:(?:local|global|world|node|group)?_?rank|cuda|gpu|node|replica|pid|worker|device|process"
    rb"|host)\]?[ :=#_\-]{0,3}\d+"
)
_TIME_STARTS = frozenset("0123456789[IWEFD")
"""The possible first characters of a line that begins with a time or a rank."""

_RANK_PREFIX = re.compile(r"\[(default|rank)?\d{1,5}\](?=:)")
_TIME_PREFIX = re.compile(
    r"(?:[IWEFD](?=\d{4} ))?\[?(?:\d{4}-\d\d-\d\d[T ]|\d{4} )?"
    r"\d\d:\d\d:\d\d[.,:\d]*+(?:Z|[+-]\d\d:?\d\d)?\]?\s*+"
)
_LINE_END, _LINE_END_SUBSTITUTE = "\n", "\x0b"
"""The separator between joined lines, and the character that replaces it within a line."""


def banner_keys(texts: Sequence[str]) -> list[str]:
    """Return a key for each line that is equal for the same line of all ranks; empty for lines not to fold.

    The key has neither the leading time nor the numbers of ranks, GPUs, nodes, processes and workers. It has
    all other numbers, so that lines with different losses are not folded. The lines are joined because one
    scan takes a third of the time of many scans.
    """
    bodies = [
        text if text[:1] not in _TIME_STARTS and len(text) <= _MAX_CHARACTERS else _without_time(text)
        for text in texts
    ]
    joined = _LINE_END.join(bodies)
    if joined.count(_LINE_END) >= len(bodies):
        joined = _LINE_END.join([body.replace(_LINE_END, _LINE_END_SUBSTITUTE) for body in bodies])
    keys = [key.rstrip() for key in _without_process_numbers(joined).split(_LINE_END)]
    # shorter lines (blank ones, short separators) are not worth folding
    return [key if len(key) >= 8 else "" for key in keys]


def _without_time(text: str) -> str:
    if len(text) > _MAX_CHARACTERS:
        return ""
    clock = _TIME_PREFIX.match(text)
    if clock is not None:
        text = text[clock.end() :]
    return _RANK_PREFIX.sub(r"[\1#]", text, count=1) if text[:1] == "[" else text


def _without_process_numbers(text: str) -> str:
    data = text.encode("utf-8", "surrogatepass")
    pieces: list[bytes] = []
    position = 0
    for match in _PROCESS_NUMBER_PATTERN.finditer(data):
        start, end = match.span()
        pieces += (data[position:start], data[start:end].rstrip(b"0123456789"), b"#")
        position = end
    if not pieces:
        return text
    return b"".join([*pieces, data[position:]]).decode("utf-8", "surrogatepass")
