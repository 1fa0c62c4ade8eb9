"""A log line as texts and numbers: ``step 20 | loss 1.3`` is the texts of its template, and 20 and 1.3."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from tui.analysis.progress.lines.vocabulary import meaning

_INTEGER = r"\d++(?:[,_]\d{3}(?!\d))*+"
_TIMES_THOUSANDS = r"(?: (?!\w ?[=:]))?(?:[kKMG](?=it\b|\b)|B\b(?!/))"
_DECIMAL = rf"(?:{_INTEGER}(?:\.\d*+)?+|\.\d++)(?:[eE][-+]?\d++)?+(?:{_TIMES_THOUSANDS})?"
_NUMBER = rf"[-+]?(?:{_DECIMAL}|(?:nan|NaN|NAN|[iI]nf|INF|Infinity)(?!\w))"
_COMPOUND = (
    r"(?:\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T :,_-]{1,2}\d\d?:\d\d(?::\d\d)?)?"  # dates, versions
    r"|(?:\d{8}|\d\d-\d\d)[T ]\d\d:\d\d(?::\d\d)?)(?:[.,]\d+)?"
    r"|\d+:\d\d(?::\d\d)?(?:[.,]\d+)?"  # times
    r"|\d+(?:\.\d+){2,}"
)
_SPLIT = re.compile(
    # not within a word, a path or a call, but "E3", "e3 s120" and "ep3 step120"
    r"(?=[\d.+nNiI-])(?:(?<![\w.$@])(?<!\w[-/(])|(?<=\d [sS])"
    + "".join(rf"|(?<=(?<![^\s\[\]]){count})(?=\d)" for count in ("[eE]", "ep", "epoch", "step", "iter"))
    + r")"
    rf"((?:{_COMPOUND})(?:Z\b|(?!\w|:\d))"
    rf"|{_DECIMAL}(?:it)?+ ?(?:/|\bof\b) {{0,6}}{_DECIMAL}(?:it\b)?+(?![\w/]|:\d)"
    rf"|{_NUMBER}(?!_|[A-Za-z]*\d)(?!:\d))"
)
_QUOTED = re.compile(r"""(?<=[:=,(\[{ ])(?:"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')(?![\w:])""")
_ASIDE = re.compile(r"(?<=\w )\((?!step|epoch|iter|batch|update)[a-z]+ \d+(?: [a-z]+)?\)")
"""Parentheses that are part of a name: ``lr (group 0)``, ``loss (for 1 batch)``."""
_WRAPPED = re.compile(
    r"\b(?:tensor|(?:np|numpy|torch|jnp|tf)\.\w+|Array|Decimal)\("
    r"|, (?:device|dtype|grad_fn|requires_grad|shape)=(?:'[^']*'|<\w+>|\(\)|[\w.]+)"
)
"""The type name and attributes around a number: ``tensor(1.2, device='cuda:0')``."""


def clean(line: str) -> str:
    """Blank out quoted prose and type names, keeping the length. The line must have no ANSI sequences."""
    line = line.replace("│", "|").replace("┃", "|")
    line = _WRAPPED.sub(lambda name: " " * len(name[0]), line)
    return _QUOTED.sub(_without_prose, _ASIDE.sub(lambda aside: "~" * len(aside[0]), line))


def _without_prose(match: re.Match[str]) -> str:
    quoted = match[0][1:-1].strip()
    is_prose = " " in quoted and quoted.strip(" /0123456789") != ""
    return "_" * len(match[0]) if is_prose else match[0]


def numbers(text: str) -> Iterator[re.Match[str]]:
    """Yield the numbers of a clean line with their positions."""
    return _SPLIT.finditer(text)


def split(text: str) -> tuple[tuple[str, ...], list[str]]:
    """Return the texts around the numbers of a clean line, and the numbers as printed."""
    parts = _SPLIT.split(text)
    return tuple(parts[::2]), parts[1::2]


_TIMES = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9}


def to_float(text: str) -> float | None:
    """Return a number as trainers print it, such as ``1,234``, ``1.2k`` or ``nan``."""
    times = _TIMES.get(text[-1:])
    digits = text.replace(",", "")
    try:
        return float(digits) if times is None else float(digits[:-1]) * times
    except ValueError:
        return None


def number_and_total(text: str) -> tuple[float | None, float | None]:
    """Return both numbers of ``12/100`` or ``12 of 100``, or a single number; a date has none."""
    first, sign, second = text.replace("of", "/").partition("/")
    if not sign:
        return to_float(text), None
    total = to_float(second.strip(" it"))
    return (None if total is None else to_float(first.strip(" it"))), total


_MESSAGE_KEYS = ("message", "msg", "log")
_TEXT_IN_JSON = re.compile(r'(?i)"(?:message|msg|log)"|": ?"[^" ]* ')


def enveloped(line: str) -> str | None:
    """Return the original line from a log agent's JSON record; None for other lines.

    It is the message field, or else the only value of several words: a record with more of them is a data
    sample that the run prints. A multi-line text is a conversation, not a log line. If the record itself has
    a training's metrics, it is the line, and its message is only a label.
    """
    if _TEXT_IN_JSON.search(line) is None:
        return None
    try:
        record = json.loads(line.strip("[], "))
    except (ValueError, RecursionError):
        return None
    texts = {key: value for key, value in record.items() if isinstance(value, str)}
    has_values = any(isinstance(value, int | float) and meaning(key) for key, value in record.items())
    messages = [text for key, text in texts.items() if key.lower() in _MESSAGE_KEYS]
    others = [text for text in texts.values() if " " in text]
    chosen = messages or (others if len(others) == 1 else [])
    text = max(chosen, key=lambda text: sum(map(str.isalpha, text)), default="").rstrip()
    return None if has_values or "\n" in text else text or None
