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
    COUNT_PREFIXES,
    EVALUATION,
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
"""Words and signs of prose and code, which trainers do not print next to their numbers."""
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
"""The index and the name of each named number without a field in ``ParsedMetrics``."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A number of a template: its index, field, name as printed, and factor to the field's unit."""

    index: int
    field: str
    name: str
    scale: float


@dataclass(frozen=True, slots=True)
class Counter:
    """The number that counts steps: one with a total (``12/100``), or that of a progress bar."""

    index: int
    is_bar: bool = False
    is_within: bool = False
    """True if it counts within an epoch, which this line or an earlier one names."""
    is_lightning: bool = False
    """True for Lightning, which counts epochs from zero; its total is the index of the last epoch."""


@dataclass(frozen=True, slots=True)
class Form:
    """The features of a line that show whether a training printed it."""

    has_count: bool = False
    has_values: bool = False
    """True if it has another count, a measure, or a named number (``reward: 0.4``) besides the count."""
    min_rises: int = 2
    """Even rises of the count required as evidence: one suffices if the count has a total or a name such as
    ``global_step``, which prose does not contain."""
    is_bare: bool = False
    """True if no number besides the count has a meaning, or if the line is a sentence or code."""
    has_results: bool = False
    """True if it has results of an evaluation: ``step 500 | val bpb 0.91``."""
    is_clear: bool = False
    """True if this single line is enough evidence that a training printed it."""
    is_heading: bool = False
    """True if it has only a count, like the heading of a block of values."""
    is_lone_bar: bool = False
    """True for a progress bar without a title or a loss, which may count any work."""
    key: tuple[str, ...] = ()
    """The name of the first meaningful number and the texts after it, which lines of one kind share."""


@dataclass(frozen=True, slots=True)
class Template:
    """The meaning of the numbers between fixed texts."""

    slots: tuple[Slot, ...] = ()
    counter: Counter | None = None
    form: Form = Form()
    metrics: Metrics = ()

    def read(self, values: Sequence[str]) -> ParsedMetrics | None:
        """Return the values of a line with these numbers; None if it reports nothing."""
        fields: dict[str, Any] = {}
        for slot in self.slots:
            _store_field(fields, slot, values[slot.index])
            if slot.field in ("loss", "step"):
                fields[f"{slot.field}_name"] = slot.name
        counter = self.counter
        if counter is not None:
            _store_count(fields, values[counter.index], counter)
        others = ((name, to_float(values[index])) for index, name in self.metrics)
        metrics = tuple((name, number) for name, number in others if number is not None)
        if not metrics and not fields.keys() - {"rank", "step_name"}:
            return None
        return ParsedMetrics(**fields, from_bar=counter is not None and counter.is_bar, metrics=metrics)


def _numbers(text: str) -> tuple[float | None, float | None]:
    """Return a number and its total, if it has one."""
    try:
        return float(text), None
    except ValueError:
        first, total = fraction(text) or (text, "")
    return to_float(first), to_float(total)


def _store_field(fields: dict[str, Any], slot: Slot, text: str) -> None:
    number, total = _numbers(text)
    field = slot.field
    if number is None or (field in _COUNTED and not 0 <= number <= MAX_STEP):
        return
    if field in WHOLE:
        if number == int(number):
            fields.setdefault(field, int(number))
    elif field in LOSSES or field == "grad_norm" or math.isfinite(number):
        if slot.scale > 0:
            fields[field] = number * slot.scale
        elif number > 0:  # steps per second
            fields[field] = 1 / number
    if field in COUNTS and total and total <= MAX_STEP:
        fields[f"total_{field}s"] = int(total) if field == "step" else total


def _store_count(fields: dict[str, Any], text: str, counter: Counter) -> None:
    done, total = _numbers(text)
    if done is None or not 0 <= done <= MAX_STEP or done != int(done) or total == 0:
        return
    if total is None or not done <= total <= MAX_STEP:
        fields.setdefault("step", int(done))
        return
    if "step" in fields and not counter.is_bar:
        if abs(fields["step"] - done) <= 1:
            fields["total_steps"] = int(total)
        return
    epoch, epochs = fields.get("epoch"), fields.get("total_epochs")
    if counter.is_bar and total == epochs:
        return  # it counts epochs
    if not counter.is_within or (epoch is not None and epoch != int(epoch)):
        fields |= {"step": int(done), "total_steps": int(total)}
        return
    fields |= {"epoch_step": int(done), "epoch_steps": int(total)}
    if epoch is not None:
        fields |= over_epochs(int(done), int(total), epoch, epochs, from_zero=counter.is_lightning)


def over_epochs(
    done: int, total: int, epoch: float, epochs: float | None, *, from_zero: bool = False
) -> dict[str, Any]:
    """Convert ``done`` of ``total`` steps within an epoch to the fields of a reading over the run."""
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
    """A line after meanings were assigned to its numbers."""

    texts: Sequence[str]
    numbers: Sequence[_Number]
    counter: int | None

    @property
    def fields(self) -> set[str]:
        return {number.field for number in self.numbers} - {""}

    def meaningful_indexes(self) -> list[int]:
        """Return the indexes of the numbers that have a field, and of the counter."""
        return [index for index, number in enumerate(self.numbers) if number.field or index == self.counter]

    def counts(self) -> list[_Number]:
        return [
            number
            for index, number in enumerate(self.numbers)
            if number.field in COUNTS or index == self.counter
        ]


def decide(texts: Sequence[str], values: Sequence[str]) -> Template:
    """Decide what the numbers of a line mean."""
    numbers = [_number(texts, values, index) for index in range(len(values))]
    _assign_measures(numbers)
    _assign_counts(numbers)
    is_object = "{" in texts[0]
    if is_object and any(number.field == "epoch" and "." in values[n] for n, number in enumerate(numbers)):
        for number in numbers:
            if number.name.lower() == "batch" and not number.is_fraction:
                number.meaning = None  # its size, since the epoch says where the training is
    _assign_loss(numbers)
    index, is_bar = _find_counter(texts, values, numbers)
    evaluates = _evaluates(texts, numbers)
    _separate_evaluation(numbers, evaluates)
    line = _Line(texts, numbers, index)
    is_fraction = index is not None and numbers[index].is_fraction
    if len(numbers) == 1 and not line.meaningful_indexes() and _is_pair(numbers[0]):
        return Template(metrics=((0, numbers[0].name),))
    if not line.meaningful_indexes() or _is_setting(numbers):
        return Template()
    has_result = "eval_loss" in line.fields or bool(_metrics(line, ()))
    if evaluates and (is_fraction or not has_result):
        return Template()  # its result comes later
    title = _title(texts, index) if is_bar and index is not None else []
    if is_bar and index is not None and not _is_training_bar(line, index, title, evaluates):
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
    """Return a slot for each field: of several numbers with one field, that with the lowest rank."""
    best: dict[str, tuple[int, int]] = {}
    for index, number in enumerate(line.numbers):
        if number.meaning is not None:
            best[number.field] = min(
                best.get(number.field, (number.meaning.rank, index)), (number.meaning.rank, index)
            )
    return tuple(
        Slot(index, number.field, number.name, number.meaning.scale)
        for index, number in enumerate(line.numbers)
        if number.meaning is not None and best[number.field][1] == index != line.counter
    )


def _metrics(line: _Line, slots: Sequence[Slot]) -> Metrics:
    """Return the other named numbers, without those of the prefix that a logger adds to a line."""
    used_indexes = {line.counter} | {slot.index for slot in slots}
    names: dict[str, int] = {}
    objects = [index for index, text in enumerate(line.texts) if "{" in text]
    first = min([*line.meaningful_indexes(), *objects[:1]], default=0)
    while first > 0 and _continues(line.texts[first]):
        first -= 1
    for index in range(first, len(line.numbers)):
        number = line.numbers[index]
        is_measure = index not in used_indexes and number.field in MEASURES | {""} and not number.is_time
        if is_measure and number.name not in MEASURES and _has_own_name(number):
            prefix = "eval/" if number.is_of_evaluation and not names_evaluation(number.name) else ""
            names.setdefault(prefix + number.name, index)
    return tuple((index, name) for name, index in names.items())


def _continues(text: str) -> bool:
    """Return True for a text between two values of one list: ``, mae: `` or `` mae=``."""
    is_field = text.startswith(" ") and text.endswith("=") and text.count(" ") == 1
    return is_field or text.lstrip()[:1] in (",", ";", "|")


def _has_own_name(number: _Number) -> bool:
    """Return True for ``reward: 0.4`` and ``| reward 0.4 |``, but not for a share or a line of code."""
    before = number.before.rstrip(" \"'")
    is_next = before.endswith((":", "=", "[", "(")) or (
        number.is_numeral and len(_DELIMITER.split(before)) > 1 and number.name.count(" ") < 2
    )
    is_code = number.name.endswith(".py") or number.after.startswith("%|")
    is_name = len(number.name) <= 100 and 0 < len(_WORD.findall(number.name)) <= 4
    return is_next and is_name and not is_code


def _is_pair(number: _Number) -> bool:
    """Return True if the line is only a name and its number, as in a block: ``• Reward: 0.4``."""
    is_alone = number.before.strip(f"{_EDGE}|-•") == number.name and len(number.after.strip(" |")) <= len(
        number.unit
    )
    return is_alone and _has_own_name(number) and not number.is_fraction and not number.is_time


def _counter_of(line: _Line, values: Sequence[str], is_bar: bool) -> Counter | None:
    index = line.counter
    if index is None:
        return None
    epoch = next((position for position, number in enumerate(line.numbers) if number.field == "epoch"), None)
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
    has_total = any(number.is_fraction for number in counts)
    inner = [index for index in line.meaningful_indexes() if numbers[index].field != "rank"]
    first = inner[0] if inner else 0
    ending = line.texts[-1]
    is_object = "{" in line.texts[0] and ending.rstrip().endswith("}")
    is_list_of_results = (
        is_object and not counts and "".join(line.texts).count("{") > 1
    )  # the results of each
    is_of_total = has_total or any(number.is_fraction and not number.name for number in numbers)
    is_known_object = (is_object and measures > 1) or "[=" in line.texts[0]  # a drawn bar
    is_distinctive = (
        is_bar
        or measures > 2
        or (is_object and {"step", "total_steps"} <= fields)
        or (is_of_total and measures > 0)
    )
    is_share = any(number.unit == "%" and number.name.lower() in _BAR_TITLE for number in numbers)
    is_clear = not is_prose and (
        (bool(counts) and is_distinctive)
        or (is_share and measures > 1)
        or (is_known_object and not is_list_of_results and bool(fields & LOSSES))
    )
    is_heading = not (is_clear or measures or is_prose) and (
        has_total or COUNT_PREFIXES.issuperset(words_of(ending))
    )
    if is_heading and not (has_total and len(counts) > 1):
        others = [number for index, number in enumerate(numbers) if index >= first and index != line.counter]
        is_heading = all(map(_may_be_in_heading, others))
    is_of_batches = not measures and all(
        "batch" in number.name.lower() for number in counts
    )  # as of any work
    is_setting = fields & MEASURES == {"learning_rate"} and (  # epochs=20 lr=0.001
        any(map(_is_amount, counts)) or not any(number.name for number in counts)
    )
    is_bare = is_prose or is_setting or not (measures or is_heading or _has_scoped_names(numbers, all))
    is_bare |= measures > 0 and len(numbers) == 1
    is_exact = has_total or any("_" in number.name for number in counts)
    min_rises = 1 if is_exact else 2 if (len(metrics) > 1 and not is_prose) or not is_bare else 4
    # Lines of one kind have the same texts after the count, at least up to the next named number.
    key_end = next((index + 1 for index in sorted({*inner, *dict(metrics)}) if index > first), None)
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
            # The drawing of a bar differs in each state.
            *(re.sub(r"[\s\d#=>.\-\u2500-\u25ff]+", " ", text) for text in line.texts[first + 1 : key_end]),
        ),
    )


def _is_setting(numbers: Sequence[_Number]) -> bool:
    """Return True for a total in a configuration; a training announces it as ``Total … steps``."""
    totals = [number for number in numbers if number.field == "total_steps"]
    is_announced = any(number.name.lower().startswith("total") for number in totals)
    return (
        bool(totals) and not is_announced and not any(number.field in LOSSES | {"step"} for number in numbers)
    )


def _number(texts: Sequence[str], values: Sequence[str], index: int) -> _Number:
    text, after, value = texts[index], texts[index + 1], values[index]
    before = text if index == 0 or text[:1] in " :=,|" else _ATTACHED.sub("", text)
    trimmed = before.strip().removesuffix("|") if texts[0].lstrip()[:1] == "|" else before
    trimmed = trimmed.rstrip(_EDGE)
    unit = _UNIT_BEFORE.search(trimmed)
    if unit is not None:
        trimmed = trimmed[: unit.start()].rstrip(_EDGE)
    unit_match = _UNIT_AFTER.match(after)
    parts = fraction(value)
    return _Number(
        before,
        after,
        _DELIMITER.split(trimmed)[-1].strip(" \t-_*#"),
        (unit[1] if unit is not None else unit_match[1] if unit_match is not None and unit_match[1] else "")
        .strip()
        .lower(),
        is_fraction=parts is not None and to_float(parts[0]) is not None,
        is_whole=value.isdecimal(),
        is_time=":" in value or after.strip() in ("d", "h", "m"),
        is_numeral=not (value.isalpha() and after.lstrip()[:1].isalpha()),
    )


def _assign_measures(numbers: Sequence[_Number]) -> None:
    """Assign meanings from the texts before, the texts after (``2.31 loss, 1e-4 LR``), or the units."""
    for number in numbers:
        name = number.name.partition("/")[0] if number.is_fraction else number.name
        key = name.rpartition(" ")[2]  # of a structured log: "step_done train_loss=2.3"
        name_meaning = meaning(name, number.unit) or (meaning(key, number.unit) if "_" in key else None)
        number.meaning = None if number.unit == "%" else name_meaning
        if number.is_fraction and name.lower() == "episode":
            number.meaning = Meaning("epoch")
    for number, following in zip_longest(numbers, numbers[1:]):
        name = _DELIMITER.split(number.after)[0].strip()
        name_meaning = meaning(name) or meaning("", number.unit)
        is_unnamed = not (number.name or number.is_time)
        is_own = is_unnamed and (following is None or following.name != name or "/" in name)
        if number.meaning is None and is_own and name_meaning is not None and name_meaning.field in MEASURES:
            number.meaning = name_meaning
        elif number.meaning is None and (rate := _RATE.match(number.after)) is not None:
            number.meaning = Meaning("step_time_s", 3, {None: -1.0, "m": 1e-3, "": 1.0}[rate["seconds"]])


def _assign_counts(numbers: Sequence[_Number]) -> None:
    counted = {number.field for number in numbers}
    for index, number in enumerate(numbers):
        if number.name.lower() in ("after", "at", "@") and number.unit in ("steps", "iterations", "updates"):
            number.meaning = Meaning("step", 3)
        elif number.after.startswith(("it [", "epoch:", "epoch ")):
            number.meaning = Meaning("step" if number.unit == "it" else "epoch", 1)
        elif " " in number.name and number.unit != "%":
            *lead, last = number.name.split()
            name_meaning = meaning(last)
            if name_meaning is None or name_meaning.field not in COUNTS or name_meaning.field in counted:
                continue
            measured = meaning(" ".join(lead[:-1])) if len(lead) > 1 else None
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
            following = numbers[index + 1] if index + 1 < len(numbers) else None
            if measured is not None and following is not None and not following.before.strip(" :=|()s"):
                following.meaning = measured  # "validation loss at step 100: 2.1"
    first = numbers[0].name.lower() if numbers else ""
    is_letter = first == "e" and (numbers[0].is_fraction or numbers[0].after.startswith((":", " |", " s")))
    if first == "episode" or is_letter:
        numbers[0].meaning = numbers[0].meaning or Meaning("epoch")
        for number in numbers[1:]:
            if number.field == "step" and _is_amount(number):
                number.meaning = None  # the length of the episode
            elif is_letter and number.name.lower() == "s":
                number.meaning = Meaning("step", 1)  # "e1 s50/1200"
    for number, following in pairwise(numbers):
        if (
            number.is_whole
            and number.field in MEASURES
            and following.before == ": "
            and following.unit != "%"
        ):  # of each group
            following.meaning, following.name, number.meaning = number.meaning, number.name, None
    for index, number in enumerate(numbers):
        follows_count = any(other.is_fraction and not other.name for other in numbers[index + 1 :])
        if number.unit != "%" and number.name.lower().rpartition(" ")[2] in TRAINING and follows_count:
            number.meaning = Meaning("epoch")  # "Train: 12 [550/1251]"
            break


def _assign_loss(numbers: Sequence[_Number]) -> None:
    """Assign the training's loss to the only loss next to a count, whatever its name: ``CTC loss: 1.2``."""
    fields = {number.field for number in numbers}
    losses = [number for number in numbers if not number.field and names_loss(number.name)]
    if len(losses) == 1 and fields & COUNTS and not fields & LOSSES:
        losses[0].meaning = Meaning("eval_loss" if names_evaluation(losses[0].name) else "loss")


def _find_counter(
    texts: Sequence[str], values: Sequence[str], numbers: Sequence[_Number]
) -> tuple[int | None, bool]:
    """Return the index of the number that counts steps, and True if it is a bar's."""
    is_keras = any("/step" in number.unit for number in numbers)
    for index, number in enumerate(numbers):
        is_bar = (
            ">." in number.after
            or (is_keras and index == 0 and not number.field and "[" not in number.before)
            or _is_timed(texts, values, index)
        )
        is_endless = number.field == "step" and number.after.startswith("it [")
        if is_endless or (is_bar and number.is_fraction and number.field in ("", "step")):
            return index, True
    counts = [
        (number.meaning.rank, index)
        for index, number in enumerate(numbers)
        if number.is_fraction and number.meaning is not None and number.field == "step"
    ]
    if counts:
        return min(counts)[1], False
    fields = {number.field for number in numbers}
    has_loss = bool(fields & LOSSES) or any(names_loss(number.name) for number in numbers)
    epoch_index = next((index for index, number in enumerate(numbers) if number.field == "epoch"), None)
    for index, number in enumerate(numbers):
        # Such a name is that of the activity, not of the count: "Training [110/125000]".
        is_named = number.meaning is not None or number.name.lower() not in TRAINING | EVALUATION | {""}
        is_share_of = index > 0 and _is_share_of(number, numbers[index - 1])
        is_samples = meaning(f"{number.unit}/s") is not None
        is_free = number.is_fraction and not (is_named or is_samples or is_share_of)
        if is_free and epoch_index is not None and index > epoch_index:
            is_share = "%" in number.after[:8] or (
                index + 1 < len(numbers) and numbers[index + 1].unit == "%"
            )
            is_of_samples = is_share and "epoch" in numbers[epoch_index].name.lower()
            return (None if is_of_samples else index), False
        if is_free and epoch_index is None and "step" not in fields and has_loss:
            return index, False
    has_scoped_names = fields <= {""} and _has_scoped_names(numbers, any)
    if not fields & COUNTS and (has_scoped_names or fields & {"loss", "eval_loss", "learning_rate"}):
        first = next(
            index
            for index, number in enumerate(numbers)
            if number.meaning or (has_scoped_names and number.name)
        )
        for index in reversed(range(first)):
            number = numbers[index]
            if not number.name and number.is_whole and not number.before.rpartition("]")[2].strip(" [,"):
                if index > 0 and number.before.strip() == "," and numbers[index - 1].is_whole:
                    numbers[index - 1].meaning = Meaning("epoch")  # "[2, 4000] loss: 1.3"
                return index, False
    return None, False


def _is_share_of(number: _Number, before: _Number) -> bool:
    """Return True for the fraction behind a named percentage: ``Accuracy: 84.1% (8410/10000)``."""
    is_progress = not before.name or before.name.lower() in _BAR_TITLE
    return before.unit == "%" and not is_progress and number.before.strip() == "("


def _has_scoped_names(numbers: Sequence[_Number], of: Callable[[Iterable[bool]], bool]) -> bool:
    """Return True if any or all names have words of training, or of evaluation: ``train-auc:0.9``."""
    tokens_by_name = [set(re.findall("[a-z]+", number.before.lower())) for number in numbers if number.name]
    return of(any(scope & tokens for tokens in tokens_by_name) for scope in (TRAINING, EVALUATION))


def _evaluates(texts: Sequence[str], numbers: Sequence[_Number]) -> bool:
    """Return True if the words before the first known number, or those of a count, name an evaluation."""
    first = next((index for index, number in enumerate(numbers) if number.field), None)
    if first is None:
        return False
    head = " ".join(_DELIMITER.split(" ".join(texts[: first + 1]).rstrip(_EDGE))[:-1])
    return _EVALUATES.search(head) is not None or any(
        number.field in COUNTS and _EVALUATES.search(number.before) for number in numbers
    )


def _separate_evaluation(numbers: Sequence[_Number], evaluates: bool) -> None:
    """Mark numbers as the evaluation's by the part of the line: ``train: loss 1 | val: loss 2``."""
    within = evaluates
    for number in numbers:
        for segment in _DELIMITER.split(number.before.rstrip(_EDGE))[:-1]:
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


def _is_timed(texts: Sequence[str], values: Sequence[str], index: int) -> bool:
    """Return True if elapsed and remaining time follow a count: ``120/500 [01:23<02:34, 3.2it/s]``."""
    return (
        len(values) > index + 1
        and not texts[index + 1].strip(" [")
        and ":" in values[index + 1]
        and texts[index + 2].lstrip()[:1] in ("<", ",", "•")
    )


def _title(texts: Sequence[str], counter: int) -> list[str]:
    """Return the words of a bar's title. A drawn bar has a title only before a colon, else a log prefix."""
    drawn = next((index for index in range(1, counter + 1) if texts[index].startswith("%|")), 0)
    if drawn and not texts[drawn - 1].rstrip().endswith(":"):
        return []
    title = re.split(r"\] | - |\) ", " ".join(texts[: counter + 1]))[-1]
    return [word for word in words_of(title) if len(word) > 1]


def _is_training_bar(line: _Line, counter: int, title: Sequence[str], evaluates: bool) -> bool:
    """Return True if a bar counts a training's steps: it has a loss, or its title and numbers say so."""
    if "loss" in line.fields or (line.fields == {"epoch"} and not evaluates):
        return True
    if evaluates or title in (["batch"], ["batches"]) or not _BAR_TITLE.issuperset(title):
        return False
    inside = "0".join(line.texts[counter + 1 :]).partition("]")[0]
    return "<" in inside and _RATE.search(inside) is not None


def _may_be_in_heading(number: _Number) -> bool:
    """Return True for a count, a time or a percentage; False for an amount such as ``iters: 1000``."""
    return number.is_time or number.unit == "%" or (number.field in COUNTS and not _is_amount(number))


def _is_amount(number: _Number) -> bool:
    is_row = number.before.lstrip().startswith("|")  # of a table of names and values
    return not (number.is_fraction or is_row) and number.name.lower().endswith("s")
