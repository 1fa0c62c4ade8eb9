"""Find named values in the text of a line: ``loss: 2.31``, ``grad norm 0.7``, ``12,345 tok/s``.

Each number takes the words before it, back to a separator or another number, as its name, or else the word
after it. Whether the name means anything is up to ``vocabulary``.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from tui.analysis.progress.lines.reading import NUMBER, to_float
from tui.analysis.progress.lines.vocabulary import Meaning, meaning, word_set

_NUMBER = re.compile(
    rf"(?=[-+.\dnNiI])(?<![\w.@])(?<!\w[-+])(?<!lr\()({NUMBER})(ms|[skKMG])?(?![\w.]*[A-Za-z_]|\s?%)"
)
_SEPARATORS = ("|", ",", ";", "{", "}", "[", "]", "'", '"', "=", ":", "?", "&", "  ", " - ", " • ", "\t")
_VERBS = (" is", " reached")  # "loss is 2.31", "val_loss reached 0.5"
_WRAPPERS = ("tensor", "float64", "float32")
_AFTER = re.compile(r"\s{0,2}([A-Za-z][\w.-]*+(?:/[\w.-]++)*+)(?!\s{0,2}[=:/]|\s{1,8}\d)")
_THOUSANDS = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}
_LONGEST_NAME = 100
_NEUTRAL = word_set(
    "info debug warning notice success root main and with at in completed done finished last "
    "on log current new the rank"
)
_RATES = ("tokens_per_s", "samples_per_s")
_COUNTS = ("step", "total_steps")
_PLAIN = frozenset({"loss", "eval_loss", "learning_rate", "grad_norm", "epoch"})
_FINITE = frozenset({"learning_rate", "tokens_per_s", "samples_per_s", "step_time_s"})


@dataclass(slots=True)
class Values:
    """The values of a line by field of ``ParsedMetrics``; ``marked`` if one has a ``=`` or ``:``."""

    found: dict[str, float] = field(default_factory=dict)
    marked: bool = False
    _ranks: dict[str, int] = field(default_factory=dict)

    def keep(self, known: Meaning, number: float) -> None:
        if known.rank < self._ranks.get(known.field, 1000):
            self.found[known.field] = number
            self._ranks[known.field] = known.rank


def find_values(text: str) -> Values:
    """Return the values of a text. Counts (steps and epochs) are read by ``counts``."""
    values = Values()
    before = 0
    for match in _NUMBER.finditer(text):
        start, end = match.span()
        named = _named(text[max(before, start - _LONGEST_NAME) : start])
        before = end
        values.marked |= named.marked
        known = _meaning_of(named, text, end)
        if known is None or known.field in _COUNTS:
            continue
        number = _number(match[1], match[2] or "", known, named.name)
        if number is not None:
            values.keep(known, number)
    return values


class _Name(NamedTuple):
    name: str
    marked: bool
    known: Meaning | None


@lru_cache(maxsize=8192)
def _named(gap: str) -> _Name:
    """Return the name at the end of the text before a number; ``marked`` if a sign separates the two.

    Cached, because a trainer prints the same names in each of its lines.
    """
    name = gap.rstrip(" [(")
    if name.endswith(_WRAPPERS):
        name = name[:-7].removesuffix(".np").rstrip("np. t(")
    marked = name.endswith((":", "="))
    if marked:
        name = name[:-1].rstrip(" '\"")
    elif name.endswith(_VERBS) and "loss" in name:
        marked = True
        name = name.rpartition(" ")[0].rstrip("'\"")
    for separator in _SEPARATORS:
        if separator in name:
            name = name.rpartition(separator)[2]
    name = name.strip()
    return _Name(name, marked and name != "", _meaning(name))


def _meaning(name: str) -> Meaning | None:
    known = meaning(name)
    while known is None:
        first, space, name = name.partition(" ")
        if not space or not (first[:1].isdigit() or first.lower() in _NEUTRAL):
            return None
        known = meaning(name)
    return known


def _meaning_of(named: _Name, text: str, end: int) -> Meaning | None:
    name = named.name
    throughput = "hroughput" in name
    after = _AFTER.match(text, end) if not name or throughput or "/" in text[end : end + 16] else None
    unit = meaning(after[1]) if after is not None else None
    if unit is not None and unit.field in _RATES:
        return unit
    if text.startswith("/s", end) and not text[end + 2 : end + 3].isalnum():
        return Meaning("samples_per_s", 30)
    if not name:
        return None if unit is None or unit.field == "epoch" else unit._replace(rank=unit.rank + 20)
    return None if throughput and after is not None else named.known  # None: it is in another unit


def _number(text: str, unit: str, known: Meaning, name: str) -> float | None:
    number = to_float(text)
    if number is None or (known.field in _FINITE and not math.isfinite(number)):
        return None
    if known.field in _PLAIN:
        return None if unit else number * known.scale
    if unit in _THOUSANDS:
        return number * _THOUSANDS[unit]
    if known.field == "step_time_s":
        if unit:
            return number * (1e-3 if unit == "ms" else 1.0)
        if name.lower().partition(" ")[0] == "time":
            return None  # without a unit it may be anything
    return number * known.scale
