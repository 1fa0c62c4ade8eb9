"""Decide what the numbers of a line mean, once for all lines with the same texts around them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import Any

from tui.analysis.progress.lines.line import fraction, to_float
from tui.analysis.progress.lines.reading import MAX_STEP, WHOLE, ParsedMetrics
from tui.analysis.progress.lines.vocabulary import (
    EVALUATION,
    LEADS,
    TRAINING,
    Meaning,
    meaning,
    names_evaluation,
    names_loss,
    words_of,
)

MEASURES = frozenset(
    {"loss", "eval_loss", "learning_rate", "grad_norm", "tokens_per_s", "samples_per_s", "step_time_s"}
)
LOSSES = frozenset({"loss", "eval_loss"})
COUNTS = frozenset({"step", "epoch"})
_COUNTED = WHOLE | COUNTS

_EDGE = " :：=>([{~'\"→.…\t/*`#≈@"
_UNIT_BEFORE = re.compile(r"\(([^()]{0,24})\)$")
_UNIT_AFTER = re.compile(r" ?([A-Za-z%/]+(?:\.?/[A-Za-z]+)*)?")
_ATTACHED = re.compile(r"^[A-Za-z%/]+(?!\w)")
_DELIMITER = re.compile(
    r"[,;|()\[\]{}<>=:\"!?]|[^\s\w\x00-\x7f]|'(?!s )|  | - |\. |>>|\b(?:INFO|DEBUG|WARNING|ERROR)\b"
)
_WORD = re.compile(r"[A-Za-z][\w'./-]*")
_RATE = re.compile(
    r"\s?(?:(?P<seconds>m?)s(?:ec)?/(?:it|step|batch|iter|update)|(?:it|step|batch|ba|iter|update)s?/s(?:ec)?)\b"
)
_EVALUATES = re.compile(
    rf"\b(?:evaluat\w*|validat\w*|generat(?:e|ing|ion)|{'|'.join(EVALUATION)})\b", re.IGNORECASE
)
_LANGUAGE = re.compile(
    r"\b(?:the|th[ei]se|th[ai]t|this|your?|we|our|my|me|was|were|be|been|ha[sd]|have|will|would|should|could|can|not"
    r"|if|but|then|than|because|which|what|how|why|when|let|now|here|means|(?-i:I(?= [a-z]))|it(?= [a-z]))\b"
    r"|\w\([^()]*[=\"'{,]|::\w+\[|[;?]$|\)\s?:$|\{\w+[:}]|^\s*(?:def|for|return|assert|import|from)\b"  # code
    r"|\0 [+*×] \0|\0 = \0|(?<!\S)--\w"  # expressions and options
    r"|  # |^(?:[>#] |\"|- \[)|`|\*\*\w",  # comments and quotations
    re.IGNORECASE,
)
"""Words and signs of prose and code, which no trainer prints beside its numbers."""
_BAR_TITLE = TRAINING | frozenset(
    [
        "step",
        "steps",
        "iteration",
        "iterations",
        "epoch",
        "ep",
        "episode",
        "progress",
        "global",
        "update",
        "updates",
        "batch",
        "batches",
        "process",
        "processed",
    ]
)


Metrics = tuple[tuple[int, str], ...]
"""The index and the name of each number that has no meaning of its own."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A number of a template: its index, field, name as printed, and factor to the field's unit."""

    index: int
    field: str
    name: str
    scale: float


@dataclass(frozen=True, slots=True)
class Counter:
    """The number that counts steps, of a total or along a bar."""

    index: int
    is_bar: bool = False
    is_within: bool = False
    """It counts within the epoch that the line, or one above, names."""
    is_lightning: bool = False
    """The epoch is counted from zero, and its total is the index of the last one."""


@dataclass(frozen=True, slots=True)
class Form:
    """The features of a line that show whether a training printed it."""

    has_count: bool = False
    has_values: bool = False
    """It reports more than a count: another one, or a number with a name: ``reward: 0.4``."""
    min_rises: int = 2
    """How often its count must rise evenly: once if it is written as prose never writes one, of a total or
    with a name such as ``global_step``."""
    is_bare: bool = False
    """No number beside its count has a meaning, or they are in a sentence or code."""
    has_results: bool = False
    """It has values of an evaluation: ``step 500 | val bpb 0.91``."""
    is_clear: bool = False
    """The form alone shows that a training printed it."""
    is_heading: bool = False
    """It only counts, as above a block of values."""
    is_lone_bar: bool = False
    """It is a bar without a title or a loss, which may count anything."""
    key: tuple[str, ...] = ()
    """The names of counts and losses, which lines of one kind have in common."""


@dataclass(frozen=True, slots=True)
class Template:
    """The meaning of the numbers between fixed texts."""

    slots: tuple[Slot, ...] = ()
    counter: Counter | None = None
    form: Form = Form()
    metrics: Metrics = ()

    def read(self, values: Sequence[str]) -> ParsedMetrics | None:
        """Return what the line with these numbers reports."""
        found: dict[str, Any] = {}
        for slot in self.slots:
            _take(found, slot, values[slot.index])
            if slot.field in ("loss", "step"):
                found[f"{slot.field}_name"] = slot.name
        counter = self.counter
        if counter is not None:
            _take_count(found, values[counter.index], counter)
        others = ((name, to_float(values[index])) for index, name in self.metrics)
        metrics = tuple((name, number) for name, number in others if number is not None)
        if not metrics and not found.keys() - {"rank", "step_name"}:
            return None
        return ParsedMetrics(**found, from_bar=counter is not None and counter.is_bar, metrics=metrics)


def _numbers(text: str) -> tuple[float | None, float | None]:
    """Return a number and its total, if it has one."""
    try:
        return float(text), None
    except ValueError:
        first, total = fraction(text) or (text, "")
    return to_float(first), to_float(total)


def _take(found: dict[str, Any], slot: Slot, text: str) -> None:
    number, total = _numbers(text)
    field = slot.field
    if number is None or (field in _COUNTED and not 0 <= number <= MAX_STEP):
        return
    if field in WHOLE:
        if number == int(number):
            found.setdefault(field, int(number))
    elif field in LOSSES or field == "grad_norm" or math.isfinite(number):
        if slot.scale > 0:
            found[field] = number * slot.scale
        elif number > 0:  # steps per second
            found[field] = 1 / number
    if field in COUNTS and total and total <= MAX_STEP:
        found[f"total_{field}s"] = int(total) if field == "step" else total


def _take_count(found: dict[str, Any], text: str, counter: Counter) -> None:
    done, total = _numbers(text)
    if done is None or not 0 <= done <= MAX_STEP or done != int(done) or total == 0:
        return
    if total is None or not done <= total <= MAX_STEP:
        found.setdefault("step", int(done))
        return
    if "step" in found and not counter.is_bar:
        if abs(found["step"] - done) <= 1:
            found["total_steps"] = int(total)
        return
    epoch, epochs = found.get("epoch"), found.get("total_epochs")
    if counter.is_bar and total == epochs:
        return  # it counts epochs
    if not counter.is_within or (epoch is not None and epoch != int(epoch)):
        found |= {"step": int(done), "total_steps": int(total)}
        return
    found |= {"epoch_step": int(done), "epoch_steps": int(total)}
    if epoch is not None:
        found |= over_epochs(int(done), int(total), epoch, epochs, from_zero=counter.is_lightning)


def over_epochs(
    done: int, total: int, epoch: float, epochs: float | None, *, from_zero: bool = False
) -> dict[str, Any]:
    """Return the fields of a reading whose line counts ``done`` of ``total`` steps within an epoch."""
    finished_epochs = int(epoch) if from_zero else max(0, int(epoch) - 1)
    all_epochs = epochs + from_zero if epochs else None
    return {
        "step": finished_epochs * total + done,
        "total_steps": int(all_epochs * total) if all_epochs else None,
        "epoch": finished_epochs + done / total,
        "total_epochs": all_epochs,
        "whole_epochs": finished_epochs,
        "is_epoch_0": not from_zero and int(epoch) == 0,
    }


@dataclass(slots=True)
class _Number:
    """A number of a line whose meaning is being decided, with the texts around it."""

    before: str
    after: str
    name: str
    unit: str
    is_fraction: bool
    is_whole: bool
    is_time: bool
    is_numeral: bool
    """False for a word such as "nan" before another one."""
    meaning: Meaning | None = None
    is_of_evaluation: bool = False

    @property
    def field(self) -> str:
        return self.meaning.field if self.meaning is not None else ""


@dataclass(slots=True)
class _Line:
    """A line whose numbers have got their meanings."""

    texts: Sequence[str]
    numbers: Sequence[_Number]
    counter: int | None

    @property
    def fields(self) -> set[str]:
        return {one.field for one in self.numbers} - {""}

    def known(self) -> list[int]:
        """Return the indexes of the numbers that mean something."""
        return [index for index, one in enumerate(self.numbers) if one.field or index == self.counter]

    def counts(self) -> list[_Number]:
        return [one for index, one in enumerate(self.numbers) if one.field in COUNTS or index == self.counter]


def decide(texts: Sequence[str], values: Sequence[str]) -> Template:
    """Decide what the numbers of a line mean."""
    numbers = [_number(texts, values, index) for index in range(len(values))]
    _name_measures(numbers)
    _name_counts(numbers)
    _name_loss(numbers, values)
    index, is_bar = _counter(texts, values, numbers)
    evaluates = _evaluates(texts, numbers)
    _scope(numbers, evaluates)
    line = _Line(texts, numbers, index)
    is_fraction = index is not None and numbers[index].is_fraction
    if len(numbers) == 1 and not line.known() and _is_pair(numbers[0]):
        return Template(metrics=((0, numbers[0].name),))
    if not line.known() or _is_setting(numbers):
        return Template()
    has_result = "eval_loss" in line.fields or bool(_metrics(line, ()))
    if evaluates and (is_fraction or not has_result):
        return Template()  # its result comes later
    title = _title(texts, index) if is_bar and index is not None else []
    if is_bar and index is not None and not _trains(line, index, title, evaluates):
        return Template()
    if title[-1:] in (["epoch"], ["epochs"]) and index is not None and "epoch" not in line.fields:
        numbers[index].meaning, line.counter = Meaning("epoch"), None
    slots = _slots(line)
    is_sentence = _LANGUAGE.search("\0".join(texts)) is not None
    is_prose = is_sentence and not is_bar and len(line.fields & MEASURES) < 3
    metrics = _metrics(line, slots)
    counter = _counter_of(line, values, is_bar)
    form = _form(line, metrics, is_bar, is_prose, title)
    return Template(slots, counter, form, () if is_prose else metrics)


def _slots(line: _Line) -> tuple[Slot, ...]:
    """Return the numbers that are read: of several with one field, the one with the best name."""
    best: dict[str, tuple[int, int]] = {}
    for index, one in enumerate(line.numbers):
        if one.meaning is not None:
            best[one.field] = min(best.get(one.field, (one.meaning.rank, index)), (one.meaning.rank, index))
    return tuple(
        Slot(index, one.field, one.name, one.meaning.scale)
        for index, one in enumerate(line.numbers)
        if one.meaning is not None and best[one.field][1] == index != line.counter
    )


def _metrics(line: _Line, slots: Sequence[Slot]) -> Metrics:
    """Return the other numbers that have a name, but none of what a logger puts before a line."""
    taken = {line.counter} | {slot.index for slot in slots}
    names: dict[str, int] = {}
    objects = [index for index, text in enumerate(line.texts) if "{" in text]
    first = min([*line.known(), *objects[:1]], default=0)
    while first > 0 and _continues(line.texts[first]):
        first -= 1
    for index in range(first, len(line.numbers)):
        one = line.numbers[index]
        is_measure = index not in taken and one.field in MEASURES | {""} and not one.is_time
        if is_measure and one.name not in MEASURES and _has_own_name(one):
            prefix = "eval/" if one.is_of_evaluation and not names_evaluation(one.name) else ""
            names.setdefault(prefix + one.name, index)
    return tuple((index, name) for name, index in names.items())


def _continues(text: str) -> bool:
    """Return True for what stands between the values of one list: ``, mae: `` or `` mae=``."""
    is_field = text.startswith(" ") and text.endswith("=") and text.count(" ") == 1
    return is_field or text.lstrip()[:1] in (",", ";", "|")


def _has_own_name(one: _Number) -> bool:
    """Return True for ``reward: 0.4`` and ``| reward 0.4 |``, but not for a share or a line of code."""
    before = one.before.rstrip(" \"'")
    is_next = before.endswith((":", "=", "[", "(")) or (
        one.is_numeral and len(_DELIMITER.split(before)) > 1 and one.name.count(" ") < 2
    )
    is_code = one.name.endswith(".py") or one.after.startswith("%|")
    is_name = len(one.name) <= 100 and 0 < len(_WORD.findall(one.name)) <= 4
    return is_next and is_name and not is_code


def _is_pair(one: _Number) -> bool:
    """Return True for a name and its number alone, as below the heading of a block: ``• Reward: 0.4``."""
    is_alone = one.before.strip(f"{_EDGE}|-•") == one.name and len(one.after.strip(" |")) <= len(one.unit)
    return is_alone and _has_own_name(one) and not one.is_fraction and not one.is_time


def _counter_of(line: _Line, values: Sequence[str], is_bar: bool) -> Counter | None:
    index = line.counter
    if index is None:
        return None
    epoch = next((position for position, one in enumerate(line.numbers) if one.field == "epoch"), None)
    if is_bar and not _is_timed(line.texts, values, index):
        return Counter(index, is_within=True)  # Keras's bars, below a line that names the epoch
    is_lightning = (
        is_bar
        and epoch is not None
        and (not line.numbers[epoch].is_fraction or any("•" in text for text in line.texts))
    )
    return Counter(index, is_bar, epoch is not None and epoch < index, is_lightning)


def _form(line: _Line, metrics: Metrics, is_bar: bool, is_prose: bool, title: Sequence[str]) -> Form:
    numbers, fields, counts = line.numbers, line.fields, line.counts()
    measures = len(fields & MEASURES)
    with_total = any(one.is_fraction for one in counts)
    inner = [index for index in line.known() if numbers[index].field != "rank"]
    first = inner[0] if inner else 0
    ending = line.texts[-1]
    is_object = "{" in line.texts[0] and ending.rstrip().endswith("}")
    is_of_runs = is_object and not counts and "".join(line.texts).count("{") > 1  # the results of each
    is_of_total = with_total or any(one.is_fraction and not one.name for one in numbers)
    is_known_object = (is_object and measures > 1) or "[=" in line.texts[0]  # a drawn bar
    shows = (
        is_bar
        or measures > 2
        or (is_object and {"step", "total_steps"} <= fields)
        or (is_of_total and measures > 0)
    )
    is_share = any(one.unit == "%" and one.name.lower() in _BAR_TITLE for one in numbers)
    is_clear = not is_prose and (
        (bool(counts) and shows)
        or (is_share and measures > 1)
        or (is_known_object and not is_of_runs and bool(fields & LOSSES))
    )
    is_heading = not (is_clear or measures or is_prose) and (with_total or LEADS.issuperset(words_of(ending)))
    if is_heading and not (with_total and len(counts) > 1):
        others = [one for index, one in enumerate(numbers) if index >= first and index != line.counter]
        is_heading = all(map(_heads, others))
    is_of_batches = not measures and all("batch" in one.name.lower() for one in counts)  # as of any work
    is_setting = fields & MEASURES == {"learning_rate"} and (  # epochs=20 lr=0.001
        any(map(_is_amount, counts)) or not any(one.name for one in counts)
    )
    is_bare = is_prose or is_setting or not (measures or is_heading or _compares(numbers, all))
    is_bare |= measures > 0 and len(numbers) == 1
    is_exact = with_total or any("_" in one.name for one in counts)
    min_rises = 1 if is_exact else 2 if (len(metrics) > 1 and not is_prose) or not is_bare else 4
    # The same count is followed by the same texts, at least up to the next number with a name.
    until = next((index + 1 for index in sorted({*inner, *dict(metrics)}) if index > first), None)
    return Form(
        has_count=bool(counts),
        has_values=measures > 0
        or (not is_of_batches and ((len(metrics) > 0 and not is_prose) or len(counts) > 1)),
        is_bare=is_bare,
        min_rises=min_rises,
        has_results=not is_prose and any(names_evaluation(name) for _, name in metrics),
        is_clear=is_clear,
        is_heading=is_heading,
        is_lone_bar=is_bar and not title and not fields & (LOSSES | {"epoch"}),
        key=(
            numbers[first].name.lower().rpartition(" ")[2],
            # A bar is drawn otherwise each time.
            *(re.sub(r"[\s\d#=>.\-\u2500-\u25ff]+", " ", text) for text in line.texts[first + 1 : until]),
        ),
    )


def _is_setting(numbers: Sequence[_Number]) -> bool:
    """Return True for a total in a configuration; a training announces it as ``Total … steps``."""
    totals = [one for one in numbers if one.field == "total_steps"]
    is_announced = any(one.name.lower().startswith("total") for one in totals)
    return bool(totals) and not is_announced and not any(one.field in LOSSES | {"step"} for one in numbers)


def _number(texts: Sequence[str], values: Sequence[str], index: int) -> _Number:
    text, after, value = texts[index], texts[index + 1], values[index]
    before = text if index == 0 or text[:1] in " :=,|" else _ATTACHED.sub("", text)
    bare = before.strip().removesuffix("|") if texts[0].lstrip()[:1] == "|" else before
    bare = bare.rstrip(_EDGE)
    unit = _UNIT_BEFORE.search(bare)
    if unit is not None:
        bare = bare[: unit.start()].rstrip(_EDGE)
    own = _UNIT_AFTER.match(after)
    both = fraction(value)
    return _Number(
        before,
        after,
        _DELIMITER.split(bare)[-1].strip(" \t-_*#"),
        (unit[1] if unit is not None else own[1] if own is not None and own[1] else "").strip().lower(),
        is_fraction=both is not None and to_float(both[0]) is not None,
        is_whole=value.isdecimal(),
        is_time=":" in value or after.strip() in ("d", "h", "m"),
        is_numeral=not (value.isalpha() and after.lstrip()[:1].isalpha()),
    )


def _name_measures(numbers: Sequence[_Number]) -> None:
    """Name numbers by the texts before them, those after them (``2.31 loss, 1e-4 LR``), or by their units."""
    for one in numbers:
        name = one.name.partition("/")[0] if one.is_fraction else one.name
        key = name.rpartition(" ")[2]  # of a structured log: "step_done train_loss=2.3"
        told = meaning(name, one.unit) or (meaning(key, one.unit) if "_" in key else None)
        one.meaning = None if one.unit == "%" else told
        if one.is_fraction and name.lower() == "episode":
            one.meaning = Meaning("epoch")
    for one, following in zip_longest(numbers, numbers[1:]):
        name = _DELIMITER.split(one.after)[0].strip()
        told = meaning(name) or meaning("", one.unit)
        is_unnamed = not (one.name or one.is_time)
        is_own = is_unnamed and (following is None or following.name != name or "/" in name)
        if one.meaning is None and is_own and told is not None and told.field in MEASURES:
            one.meaning = told
        elif one.meaning is None and (rate := _RATE.match(one.after)) is not None:
            one.meaning = Meaning("step_time_s", 3, {None: -1.0, "m": 1e-3, "": 1.0}[rate["seconds"]])


def _name_counts(numbers: Sequence[_Number]) -> None:
    counted = {one.field for one in numbers}
    for index, one in enumerate(numbers):
        if one.name.lower() in ("after", "at", "@") and one.unit in ("steps", "iterations", "updates"):
            one.meaning = Meaning("step", 3)
        elif one.after.startswith(("it [", "epoch:", "epoch ")):
            one.meaning = Meaning("step" if one.unit == "it" else "epoch", 1)
        elif " " in one.name and one.unit != "%":
            *lead, last = one.name.split()
            told = meaning(last)
            if told is None or told.field not in COUNTS or told.field in counted:
                continue
            measured = meaning(" ".join(lead[:-1])) if len(lead) > 1 else None
            is_key = one.before.endswith("=")  # of a structured log: "step_done step=10"
            is_title = one.after.startswith(": ") and bool(counted & LOSSES)  # "DPO tuning iter 10: loss=1"
            is_led = is_key or is_title or all(word.lower() in LEADS or word.isupper() for word in lead)
            if not is_led and (measured is None or measured.field in COUNTS):
                continue
            one.meaning = told
            counted.add(told.field)
            following = numbers[index + 1] if index + 1 < len(numbers) else None
            if measured is not None and following is not None and not following.before.strip(" :=|()s"):
                following.meaning = measured  # "validation loss at step 100: 2.1"
    first = numbers[0].name.lower() if numbers else ""
    if first in ("episode", "ep", "e"):
        numbers[0].meaning = numbers[0].meaning or Meaning("epoch")
        for one in numbers[1:]:
            if one.field == "step" and _is_amount(one):
                one.meaning = None  # the length of the episode
            elif first == "e" and one.name.lower() == "s":
                one.meaning = Meaning("step", 1)  # "e1 s50/1200"
    for one, following in pairwise(numbers):
        if (
            one.is_whole and one.field in MEASURES and following.before == ": " and following.unit != "%"
        ):  # of each group
            following.meaning, following.name, one.meaning = one.meaning, one.name, None
    for index, one in enumerate(numbers):
        follows_count = any(other.is_fraction and not other.name for other in numbers[index + 1 :])
        if one.unit != "%" and one.name.lower().rpartition(" ")[2] in TRAINING and follows_count:
            one.meaning = Meaning("epoch")  # "Train: 12 [550/1251]"
            break


def _name_loss(numbers: Sequence[_Number], values: Sequence[str]) -> None:
    """Take the only loss beside a count for the training's, whatever it is called: ``CTC loss: 1.2``.

    Without a loss, ``train 1.2 | val 1.3`` are losses, unless they may be shares or percentages.
    """
    fields = {one.field for one in numbers}
    losses = [one for one in numbers if not one.field and names_loss(one.name)]
    if not fields & COUNTS or fields & LOSSES or len(losses) > 1:
        return
    if losses:
        losses[0].meaning = Meaning("eval_loss" if names_evaluation(losses[0].name) else "loss")
        return
    named = {one.name.lower(): index for index, one in enumerate(numbers) if one.unit != "%"}
    if {"train", "val"} <= named.keys():
        train, val = named["train"], named["val"]
        if 1 < max(to_float(values[index]) or 0.0 for index in (train, val)) < 20:
            numbers[train].meaning, numbers[val].meaning = Meaning("loss"), Meaning("eval_loss")


def _counter(
    texts: Sequence[str], values: Sequence[str], numbers: Sequence[_Number]
) -> tuple[int | None, bool]:
    """Return the index of the number that counts steps, and True if it is a bar's."""
    is_keras = any("/step" in one.unit for one in numbers)
    for index, one in enumerate(numbers):
        is_bar = (
            ">." in one.after
            or (is_keras and index == 0 and not one.field and "[" not in one.before)
            or _is_timed(texts, values, index)
        )
        is_endless = one.field == "step" and one.after.startswith("it [")
        if is_endless or (is_bar and one.is_fraction and one.field in ("", "step")):
            return index, True
    counts = [
        (one.meaning.rank, index)
        for index, one in enumerate(numbers)
        if one.is_fraction and one.meaning is not None and one.field == "step"
    ]
    if counts:
        return min(counts)[1], False
    fields = {one.field for one in numbers}
    has_loss = bool(fields & LOSSES) or any(names_loss(one.name) for one in numbers)
    begun = next((index for index, one in enumerate(numbers) if one.field == "epoch"), None)
    for index, one in enumerate(numbers):
        # Such a name says only what goes on: "Training [110/125000]".
        is_named = one.meaning is not None or one.name.lower() not in TRAINING | EVALUATION | {""}
        is_share_of = index > 0 and _is_share_of(one, numbers[index - 1])
        is_samples = meaning(f"{one.unit}/s") is not None
        is_free = one.is_fraction and not (is_named or is_samples or is_share_of)
        if is_free and begun is not None and index > begun:
            is_share = "%" in one.after[:8] or (index + 1 < len(numbers) and numbers[index + 1].unit == "%")
            is_of_samples = is_share and "epoch" in numbers[begun].name.lower()
            return (None if is_of_samples else index), False
        if is_free and begun is None and "step" not in fields and has_loss:
            return index, False
    compares = fields <= {""} and _compares(numbers, any)
    if not fields & COUNTS and (compares or fields & {"loss", "eval_loss", "learning_rate"}):
        begun = next(index for index, one in enumerate(numbers) if one.meaning or (compares and one.name))
        for index in reversed(range(begun)):
            one = numbers[index]
            if not one.name and one.is_whole and not one.before.rpartition("]")[2].strip(" [,"):
                if index > 0 and one.before.strip() == "," and numbers[index - 1].is_whole:
                    numbers[index - 1].meaning = Meaning("epoch")  # "[2, 4000] loss: 1.3"
                return index, False
    return None, False


def _is_share_of(one: _Number, before: _Number) -> bool:
    """Return True for what a named percentage is a share of: ``Accuracy: 84.1% (8410/10000)``."""
    is_progress = not before.name or before.name.lower() in _BAR_TITLE
    return before.unit == "%" and not is_progress and one.before.strip() == "("


def _compares(numbers: Sequence[_Number], of: Callable[[Iterable[bool]], bool]) -> bool:
    """Return True if a line has values of training or evaluation, or all: ``train-auc:0.9 eval-auc:0.8``."""
    words = [set(re.findall("[a-z]+", one.before.lower())) for one in numbers if one.name]
    return of(any(known & each for each in words) for known in (TRAINING, EVALUATION))


def _evaluates(texts: Sequence[str], numbers: Sequence[_Number]) -> bool:
    """Return True if the words before the first known number, or those of a count, name an evaluation."""
    first = next((index for index, one in enumerate(numbers) if one.field), None)
    if first is None:
        return False
    head = " ".join(_DELIMITER.split(" ".join(texts[: first + 1]).rstrip(_EDGE))[:-1])
    return _EVALUATES.search(head) is not None or any(
        one.field in COUNTS and _EVALUATES.search(one.before) for one in numbers
    )


def _scope(numbers: Sequence[_Number], evaluates: bool) -> None:
    """Tell losses apart by the part of the line in which they stand: ``train: loss 1 | val: loss 2``."""
    within = evaluates
    for one in numbers:
        for segment in _DELIMITER.split(one.before.rstrip(_EDGE))[:-1]:
            word = segment.strip(" .*#_").lower()
            if word in EVALUATION:
                within = True
            elif word in TRAINING:
                within = False
        one.is_of_evaluation = within
        if within and one.meaning is not None and one.field == "loss":
            one.meaning = one.meaning._replace(field="eval_loss")
        elif within and one.field in ("tokens_per_s", "samples_per_s", "step_time_s"):
            one.meaning = None
        before = one.name.lower().split()[-2:-1]
        if one.field == "step" and (EVALUATION - {"validate", "evaluate"}).intersection(before):
            one.meaning = None  # counts the evaluation


def _is_timed(texts: Sequence[str], values: Sequence[str], index: int) -> bool:
    """Return True if times spent and left follow a count, as in ``120/500 [01:23<02:34, 3.2it/s]``."""
    return (
        len(values) > index + 1
        and not texts[index + 1].strip(" [")
        and ":" in values[index + 1]
        and texts[index + 2].lstrip()[:1] in ("<", ",", "•")
    )


def _title(texts: Sequence[str], counter: int) -> list[str]:
    """Return the words of a bar's title, before a colon; those before it without one are the log's."""
    drawn = next((index for index in range(1, counter + 1) if texts[index].startswith("%|")), 0)
    if drawn and not texts[drawn - 1].rstrip().endswith(":"):
        return []
    title = re.split(r"\] | - |\) ", " ".join(texts[: counter + 1]))[-1]
    return [word for word in words_of(title) if len(word) > 1]


def _trains(line: _Line, counter: int, title: Sequence[str], evaluates: bool) -> bool:
    """Return True if a bar counts a training's steps: it has a loss, or its title and numbers say so."""
    if "loss" in line.fields or (line.fields == {"epoch"} and not evaluates):
        return True
    if evaluates or title in (["batch"], ["batches"]) or not _BAR_TITLE.issuperset(title):
        return False
    inside = "0".join(line.texts[counter + 1 :]).partition("]")[0]
    return "<" in inside and _RATE.search(inside) is not None


def _heads(one: _Number) -> bool:
    """Return True for a count or a time, which may stand in a heading, but no amount: ``iters: 1000``."""
    return one.is_time or one.unit == "%" or (one.field in COUNTS and not _is_amount(one))


def _is_amount(one: _Number) -> bool:
    is_row = one.before.lstrip().startswith("|")  # of a table of names and values
    return not (one.is_fraction or is_row) and one.name.lower().endswith("s")
