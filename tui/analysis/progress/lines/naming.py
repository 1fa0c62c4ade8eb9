"""Name the numbers of a line by the texts around them, and assign meanings to these names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from tui.analysis.progress.lines.line import number_and_total
from tui.analysis.progress.lines.template import COUNTS, LOSSES, MEASURES
from tui.analysis.progress.lines.vocabulary import (
    COUNT_PREFIXES,
    EVALUATION,
    TRAINING,
    Meaning,
    meaning,
    names_evaluation,
    names_loss,
)

EDGE = " :：=>([{~'\"→.…\t/*`#≈@"
"""Characters between a name and its number."""

DELIMITER = re.compile(
    r"[,;|()\[\]{}<>=:\"!?]|[^\s\w\x00-\x7f]|'(?!s )|  | - |--|\. |>>|\b(?:INFO|DEBUG|WARNING|ERROR)\b"
)
"""Separators of the parts of a line, of which the last before a number is its name."""

RATE = re.compile(
    r"\s?(?:(?P<seconds>m?)s(?:ec)?/(?:it|step|batch|iter|update)|(?:it|step|batch|ba|iter|update)s?/s(?:ec)?)\b"
)
_UNIT_BEFORE = re.compile(r"\(([^()]{0,24})\)$")
_UNIT_AFTER = re.compile(r" ?([A-Za-z%/]+(?:\.?/[A-Za-z]+)*)")
_ATTACHED = re.compile(r"^[A-Za-z%/]+(?!\w)")


@dataclass(slots=True)
class Number:
    """A number of a line, as printed, with the texts around it and what is known of its meaning."""

    index: int
    text: str
    before: str
    after: str
    name: str
    unit: str
    is_fraction: bool
    """True if it has a total: ``12/100``."""
    is_time: bool
    is_numeral: bool
    """False for a word such as "nan" before another one."""
    is_in_row: bool
    """True in a line of a table of names and values: ``| iters | 1000 |``."""
    meaning: Meaning | None = None
    is_of_evaluation: bool = False
    is_counter: bool = False
    """True for the number that counts steps, which may have no name."""

    @property
    def field(self) -> str:
        return self.meaning.field if self.meaning is not None else ""

    @property
    def is_count(self) -> bool:
        return self.is_counter or self.field in COUNTS

    @property
    def is_amount(self) -> bool:
        """True for a name in the plural, such as ``iters: 1000``, but not in a table of names and values."""
        return not (self.is_fraction or self.is_in_row) and self.name.lower().endswith("s")


def named_numbers(texts: Sequence[str], values: Sequence[str]) -> list[Number]:
    """Return the numbers of a line with names, units and meanings, except those that only others show."""
    is_row = texts[0].lstrip().startswith("|")
    numbers = [_number(texts, values, index, is_row=is_row) for index in range(len(values))]
    for number in numbers:
        number.meaning = _meaning_of_name(number)
    _assign_measures(numbers)
    _assign_counts(numbers)
    _assign_loss(numbers)
    return numbers


def fields_of(numbers: Iterable[Number]) -> set[str]:
    return {number.field for number in numbers} - {""}


def _number(texts: Sequence[str], values: Sequence[str], index: int, *, is_row: bool) -> Number:
    text, after, value = texts[index], texts[index + 1], values[index]
    before = text if index == 0 else _ATTACHED.sub("", text)
    trimmed = (before.strip().removesuffix("|") if is_row else before).rstrip(EDGE)
    unit = _UNIT_BEFORE.search(trimmed)
    if unit is not None:
        trimmed = trimmed[: unit.start()].rstrip(EDGE)
    unit = unit or _UNIT_AFTER.match(after)
    return Number(
        index,
        value,
        before,
        after,
        name=DELIMITER.split(trimmed)[-1].strip(" \t-_*#"),
        unit="" if unit is None else unit[1].strip().lower(),
        is_fraction=number_and_total(value)[1] is not None,
        is_time=":" in value or after.strip() in ("d", "h", "m"),
        is_numeral=not (value.isalpha() and after.lstrip()[:1].isalpha()),
        is_in_row=is_row,
    )


def _meaning_of_name(number: Number) -> Meaning | None:
    name = number.name.partition("/")[0] if number.is_fraction else number.name
    key = name.rpartition(" ")[2]  # of a structured log: "step_done train_loss=2.3"
    name_meaning = meaning(name, number.unit) or (meaning(key, number.unit) if "_" in key else None)
    return None if number.unit == "%" else name_meaning


def _assign_measures(numbers: Sequence[Number]) -> None:
    """Assign meanings from the texts after numbers without a name (``2.31 loss, 1e-4 LR``), or the units."""
    for number, following in zip_longest(numbers, numbers[1:]):
        name = DELIMITER.split(number.after)[0].strip()
        name_meaning = meaning(name)
        is_unnamed = not (number.name or number.is_time)
        is_own = is_unnamed and (following is None or following.name != name or "/" in name)
        if number.meaning is None and is_own and name_meaning is not None and name_meaning.field in MEASURES:
            number.meaning = name_meaning
        elif number.meaning is None and (rate := RATE.match(number.after)) is not None:
            number.meaning = Meaning("step_time_s", 3, {None: -1.0, "m": 1e-3, "": 1.0}[rate["seconds"]])


def _assign_counts(numbers: Sequence[Number]) -> None:
    counted = {number.field for number in numbers}
    for number, following in zip_longest(numbers, numbers[1:]):
        if number.name.lower() in ("after", "at", "@") and number.unit in ("steps", "iterations", "updates"):
            number.meaning = Meaning("step", 3)
        elif number.after.startswith(("it [", "epoch:", "epoch ")):
            number.meaning = Meaning("step" if number.unit == "it" else "epoch", 1)
        elif " " in number.name and number.unit != "%":
            *lead, last = number.name.split()
            name_meaning = meaning(last)
            if name_meaning is None or name_meaning.field not in COUNTS or name_meaning.field in counted:
                continue
            measured = meaning(" ".join(lead[:-1]))
            is_key = number.before.endswith("=")  # of a structured log: "step_done step=10"
            is_title = number.after.startswith(": ") and bool(
                counted & LOSSES
            )  # "DPO tuning iter 10: loss=1"
            is_led = (
                is_key or is_title or all(word.lower() in COUNT_PREFIXES or word.isupper() for word in lead)
            )
            if not is_led and (measured is None or measured.field in COUNTS):
                continue
            number.meaning = name_meaning
            counted.add(name_meaning.field)
            if measured is not None and following is not None and not following.before.strip(" :=|()is"):
                following.meaning = measured  # "validation loss at step 100: 2.1"
    first = numbers[0].name.lower() if numbers else ""
    is_complete = bool(numbers) and numbers[0].after.startswith((":", "]", " |", " s"))
    is_letter = first == "e" and (is_complete or numbers[0].is_fraction)
    if first == "episode" or is_letter:
        numbers[0].meaning = Meaning("epoch")
        for number in numbers[1:]:
            if number.field == "step" and number.is_amount:
                number.meaning = None  # the length of the episode
            elif is_letter and number.name.lower() == "s":
                number.meaning = Meaning("step", 1)  # "e1 s50/1200"
    for number, following in pairwise(numbers):
        if number.text.isdecimal() and number.field in MEASURES and following.before == ": ":  # of each group
            following.meaning, following.name, number.meaning = number.meaning, number.name, None
    for index, number in enumerate(numbers):
        follows_count = any(other.is_fraction and not other.name for other in numbers[index + 1 :])
        if number.unit != "%" and number.name.lower().rpartition(" ")[2] in TRAINING and follows_count:
            number.meaning = Meaning("epoch")  # "Train: 12 [550/1251]"
            break


def _assign_loss(numbers: Sequence[Number]) -> None:
    """Assign a meaning to the training's or evaluation's only loss next to a count: ``CTC loss: 1.2``."""
    fields = fields_of(numbers)
    losses = [number for number in numbers if not number.field and names_loss(number.name)]
    if fields & COUNTS and not fields & LOSSES:
        for field, is_evaluation in (("loss", False), ("eval_loss", True)):
            named = [number for number in losses if names_evaluation(number.name) == is_evaluation]
            if len(named) == 1:
                named[0].meaning = Meaning(field)


def separate_evaluation(numbers: Sequence[Number], evaluates: bool) -> None:
    """Mark numbers as the evaluation's by the part of the line: ``train: loss 1 | val: loss 2``."""
    within = evaluates
    for number in numbers:
        for segment in DELIMITER.split(number.before.rstrip(EDGE))[:-1]:
            word = segment.strip(" .*#_").lower()
            if word in EVALUATION:
                within = True
            elif word in TRAINING:
                within = False
        number.is_of_evaluation = within
        if within and number.meaning is not None and number.field == "loss":
            number.meaning = number.meaning._replace(field="eval_loss")
        elif within and number.field in ("tokens_per_s", "samples_per_s", "step_time_s"):
            number.meaning = None
        before = number.name.lower().split()[-2:-1]
        if number.field == "step" and (EVALUATION - {"validate", "evaluate"}).intersection(before):
            number.meaning = None  # it counts the steps of the evaluation
