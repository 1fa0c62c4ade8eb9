"""Find named values in the text of a line: ``loss: 2.31``, ``grad norm 0.7``, ``12,345 tok/s``.

Each number takes the words before it, back to a separator or another number, as its name, or else the word
after it. Whether the name means anything is up to ``vocabulary``. A trainer prints the same text around
changing numbers, so what the text means is decided once (``find_slots``) and remembered.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from tui.analysis.progress.lines.reading import NUMBER, to_float
from tui.analysis.progress.lines.vocabulary import ALONE, EVALUATION, Meaning, meaning, word_set

_NUMBER = re.compile(
    r"(?=[-+.\dnNiI])(?<![\w.@])(?<!\w[-+])(?<!lr\()"
    r"(?![-+]?(?:0,\d|\d++,(?!\d{3}(?!\d))\d))"  # not "0,41", a decimal comma
    rf"({NUMBER})(ms|[skKMG])?(?![\w.]*[A-Za-z_]|\s?%|\]?\s?[x×*]\s?\d)"  # not "[1.000]x1e-4"
)
_SEPARATORS = (
    "|",
    ",",
    ";",
    "{",
    "}",
    "[",
    "]",
    "'",
    '"',
    "=",
    "≈",
    ":",
    "?",
    "&",
    "  ",
    " - ",
    " • ",
    "! ",
    "\t",
)
_SENTENCE = re.compile(r"^.*\w{6}\. ")  # not "Val. loss"
_VERBS = (" is", " reached", " rate to", " set to")  # "loss is 2.31", "val_loss reached 0.5"
_WRAPPER = re.compile(r"(?:\b[a-z]{2,5}\.)?\b(?:[Tt]ensor|(?:Device)?Array|array|float(?:16|32|64))$")
_UNIT_BEFORE = re.compile(  # the unit of the number before: "0.0011 s/iter lr: …", "12 ms loss …"
    r"(?:[A-Za-z]{1,12}/[A-Za-z]{1,12}(?:/[A-Za-z]{1,8})?|m?s|secs?|seconds?|h|hrs?|[kmgtKMGT]i?[bB]|%|it|x"
    r"|tokens?|samples?|examples?|frames?|steps?)$"
)
_AFTER = re.compile(
    r"\s{0,2}(?:tgt )?([A-Za-z][\w.-]*+(?:/[\w.-]++)*+)(?!\s{0,2}(?:\([^()]{1,40}\)\s?)?[=:/≈]|\s{1,8}\d)"
)
_UNIT = re.compile(r"\s{0,2}([A-Za-z]{2,16}/[A-Za-z]{1,8})\b(?!\s{0,2}[=:/≈])")
_COST = re.compile(r"(?i)(?:\S.{0,24} )?(?:(?:train(?:ing)?|avg\.?|average|mini-?batch) )?(?<!time )cost")
_SHORT_LOSSES = word_set("t_loss v_loss")  # training and validation as a pair; v_loss alone is a critic's
_SECONDS = re.compile(r"\s?(?:m?s|secs?|seconds?|min|minutes?|h|hours?)\b")
_MILLISECONDS = re.compile(r"\s?ms\b")
_AT_COUNT = re.compile(
    r" (?:(?:at|after|for|@) |\()(?:global |training |train )?(?:step|epoch|iteration|iter):? {0,4}$",
    re.IGNORECASE,
)
_THOUSANDS = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}
_COUNTED = (" step", " epoch", " iter", " iteration", " batch")
_LONGEST_NAME = 100
_NEUTRAL = word_set(
    "info debug warning notice success root main and with at in complete completed done ended finished last "
    "on log current new the rank"
)
_RATES = ("tokens_per_s", "samples_per_s")
_COUNTS = ("step", "total_steps")
_PLAIN = frozenset({"loss", "eval_loss", "learning_rate", "grad_norm", "epoch"})
_FINITE = frozenset({"learning_rate", "tokens_per_s", "samples_per_s", "step_time_s"})


class Slot(NamedTuple):
    """The meaning of one number of a line: its position among the line's numbers, its field and factor."""

    position: int
    field: str
    factor: float


class Slots(NamedTuple):
    """The numbers of a line that mean something; ``marked`` if one of them has a ``=`` or ``:`` before it."""

    values: tuple[Slot, ...]
    marked: bool


def split_numbers(text: str) -> tuple[tuple[str | None, ...], list[str]]:
    """Return the texts around the numbers, alternating with the numbers' units, and the numbers."""
    parts = _NUMBER.split(text)
    numbers = parts[1::3]
    del parts[1::3]
    return tuple(parts), numbers


@lru_cache(maxsize=4096)
def find_slots(texts: tuple[str | None, ...]) -> Slots:
    """Return what the numbers between these texts mean: text, unit, text, unit, …, text.

    If several name one field, the one with the lowest rank comes first. Counts (steps and epochs) are read by
    ``counts``.
    """
    found: list[tuple[int, Slot]] = []
    marked = False
    pair = False
    losses: set[str] = set()
    costs: list[Slot] = []
    short: list[tuple[int, str]] = []
    rate: str | None = None
    for position in range(len(texts) // 2):
        before = (texts[2 * position] or "")[-_LONGEST_NAME:]
        name, has_sign = _name(before)
        unit, after = texts[2 * position + 1] or "", texts[2 * position + 2] or ""
        if position and before.strip() in (":", "=", "):"):
            counted = _AT_COUNT.search(texts[2 * position - 2] or "")  # "loss at step 120: 0.41"
            if counted is not None:
                name, has_sign = _name(counted.string[: counted.start()][-_LONGEST_NAME:])[0], True
        if rate is not None and before.strip() == rate:
            name, has_sign = "", True  # "Speed: 186 samples/s 8556 tokens/s"
        marked |= has_sign
        is_last = 2 * position + 3 == len(texts)
        own_unit = _UNIT.match(after) if (has_sign or not before.strip()) and not is_last else None
        rate = None if own_unit is None else own_unit[1]
        if not has_sign and name.endswith(_COUNTED):
            name = ""  # "loss @ step 120"
        if "oss" in name:
            losses.add(name)
            if name in _SHORT_LOSSES and not unit:
                short.append((position, "loss" if name[0] == "t" else "eval_loss"))
        elif has_sign and not unit and _COST.fullmatch(name) and not _SECONDS.match(after):
            costs.append(Slot(position, "loss", 1.0))
        known = _meaning_of(name, after if is_last else f"{after}0" if rate is None else f" {rate}")
        if not unit and _MILLISECONDS.match(after):
            unit = "ms"
        if known is None and pair and name.lower() in EVALUATION:
            known = Meaning("eval_loss", 9)  # LitGPT's "loss train: 1.2, val: 1.3"
        pair |= name.lower() == "loss train"
        factor = None if known is None or known.field in _COUNTS else _factor(known, unit, name)
        if known is not None and factor is not None:
            found.append((known.rank, Slot(position, known.field, factor)))
    if len(_SHORT_LOSSES.intersection(losses)) == len(losses) == 2:
        found += ((0, Slot(place, field, 1.0)) for place, field in short)
    if costs and not losses and any("poch" in text for text in texts if text):
        found.append((ALONE, costs[0]))
    if len(losses) > 1:
        found = [one for one in found if one[0] < ALONE or one[1].field != "loss"]
    found.sort(key=lambda one: one[0])
    return Slots(tuple(slot for _, slot in found), marked)


def read_values(slots: Slots, numbers: Sequence[str]) -> dict[str, float]:
    """Return the values of a line by field of ``ParsedMetrics``."""
    values: dict[str, float] = {}
    for position, name, factor in slots.values:
        if name not in values:
            number = to_float(numbers[position])
            if number is not None and (name not in _FINITE or math.isfinite(number)):
                values[name] = number * factor if factor != 1.0 else number
    return values


def _name(gap: str) -> tuple[str, bool]:
    """Return the name at the end of the text before a number, and whether a sign separates the two."""
    name = gap.removesuffix("'").rstrip(" [(") if gap.endswith(("': '", " ['")) else gap.rstrip(" [(")
    name = _WRAPPER.sub("", name).rstrip(" (")
    marked = name.endswith((":", "="))
    if marked:
        name = name[:-1].rstrip(" '\"")
    elif name.endswith(_VERBS) and ("oss" in name or "rate" in name):
        marked = True
        name = name.rpartition(" ")[0].removesuffix(" set").rstrip("'\"")
        name = "learning rate" if name.endswith("learning rate") else name
    elif name.endswith("|") and "oss" in name:
        marked, name = True, " ".join(name[:-1].split())  # "eval  CrossEntropyLoss |  2.31"
    name = name.removesuffix("]")
    for separator in _SEPARATORS:
        if separator in name:
            name = name.rpartition(separator)[2]
    if "(" in name and ")" not in name:
        name = name.rpartition("(")[2]
    if ". " in name:
        name = _SENTENCE.sub("", name)
    name = name.strip()
    return name, marked and name != ""


def _meaning_of(name: str, after: str) -> Meaning | None:
    word = _AFTER.match(after)
    unit = meaning(word[1]) if word is not None else None
    if unit is not None and unit.field in _RATES:
        return unit
    if not name and after.startswith("/s") and not after[2:3].isalnum():
        return Meaning("samples_per_s", 30)
    if not name:
        return None if unit is None or unit.field == "epoch" else unit._replace(rank=unit.rank + 20)
    if "hroughput" in name and word is not None:
        return None  # in another unit
    known = meaning(name)
    while known is None:
        first, space, name = name.partition(" ")
        if not space or not (
            first[:1].isdigit()
            or first[:1] == "/"
            or first.lower().rstrip(".") in _NEUTRAL
            or _UNIT_BEFORE.match(first)
        ):
            return None
        known = meaning(name)
    return known


def _factor(known: Meaning, unit: str, name: str) -> float | None:
    if known.field in _PLAIN:
        return None if unit else known.scale
    if unit in _THOUSANDS:
        return _THOUSANDS[unit]
    if known.field == "step_time_s":
        if unit:
            return 1e-3 if unit == "ms" else 1.0
        if name.lower().partition(" ")[0] == "time":
            return None  # without a unit it may be anything
    return known.scale
