"""Decide what the numbers of a line mean, once for all lines with the same texts around them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from tui.analysis.progress.lines.naming import (
    DELIMITER,
    EDGE,
    RATE,
    Number,
    fields_of,
    named_numbers,
    separate_evaluation,
)
from tui.analysis.progress.lines.template import (
    COUNTS,
    LOSSES,
    MEASURES,
    Counter,
    Form,
    Metrics,
    Slot,
    Template,
)
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

_WORD = re.compile(r"[A-Za-z][\w'./-]*")
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


def decide(texts: Sequence[str], values: Sequence[str]) -> Template:
    """Decide what the numbers of a line mean."""
    numbers = named_numbers(texts, values)
    counter, is_bar = _find_counter(numbers)
    if counter is not None:
        counter.is_counter = True
    evaluates = _evaluates(texts, numbers)
    separate_evaluation(numbers, evaluates)
    fields = fields_of(numbers)
    if not (fields or counter):
        return Template(metrics=((0, numbers[0].name),)) if _is_pair(numbers) else Template()
    if _is_setting(numbers):
        return Template()
    has_result = "eval_loss" in fields or bool(_metrics(texts, numbers, ()))
    if evaluates and (not has_result or (counter is not None and counter.is_fraction)):
        return Template()  # its result comes later
    title: list[str] = []
    if is_bar and counter is not None:
        title = _title(texts, counter.index)
        if not _is_training_bar(texts, counter.index, fields, title, evaluates):
            return Template()
        if title[-1:] in (["epoch"], ["epochs"]) and "epoch" not in fields:
            counter.meaning, counter.is_counter = Meaning("epoch"), False
    fields = fields_of(numbers)
    slots = _slots(numbers)
    is_sentence = _LANGUAGE.search("\0".join(texts)) is not None
    is_prose = is_sentence and not is_bar and len(fields & MEASURES) < 3
    metrics = _metrics(texts, numbers, slots)
    form = _form(texts, numbers, metrics, is_bar, is_prose, title)
    return Template(slots, _counter_of(texts, numbers, is_bar), form, () if is_prose else metrics)


def _slots(numbers: Sequence[Number]) -> tuple[Slot, ...]:
    """Return a slot for each field: of several numbers with one field, that with the lowest rank."""
    best: dict[str, tuple[int, int]] = {}
    for number in numbers:
        if number.meaning is not None:
            rank = (number.meaning.rank, number.index)
            best[number.field] = min(best.get(number.field, rank), rank)
    return tuple(
        Slot(number.index, number.field, number.name, number.meaning.scale)
        for number in numbers
        if number.meaning is not None and best[number.field][1] == number.index and not number.is_counter
    )


def _metrics(texts: Sequence[str], numbers: Sequence[Number], slots: Sequence[Slot]) -> Metrics:
    """Return the other named numbers, without those of the prefix that a logger adds to a line."""
    used_indexes = {slot.index for slot in slots}
    names: dict[str, int] = {}
    meaningful = [number.index for number in numbers if number.field or number.is_counter]
    objects = [index for index, text in enumerate(texts) if "{" in text]
    first = min([*meaningful, *objects[:1]], default=0)
    while first > 0 and _continues(texts[first]):
        first -= 1
    for number in numbers[first:]:
        is_free = number.index not in used_indexes and not (number.is_counter or number.is_time)
        is_measure = is_free and number.field in MEASURES | {""}
        if is_measure and number.name not in MEASURES and _has_own_name(number):
            prefix = "eval/" if number.is_of_evaluation and not names_evaluation(number.name) else ""
            names.setdefault(prefix + number.name, number.index)
    return tuple((index, name) for name, index in names.items())


def _continues(text: str) -> bool:
    """Return True for a text between two values of one list: ``, mae: `` or `` mae=``."""
    is_field = text.startswith(" ") and text.endswith("=") and text.count(" ") == 1
    return is_field or text.lstrip()[:1] in (",", ";", "|")


def _has_own_name(number: Number) -> bool:
    """Return True for ``reward: 0.4`` and ``| reward 0.4 |``, but not for a share or a line of code."""
    before = number.before.rstrip(" \"'")
    is_next = before.endswith((":", "=", "[", "(")) or (
        number.is_numeral and len(DELIMITER.split(before)) > 1 and number.name.count(" ") < 2
    )
    is_code = number.name.endswith(".py") or number.after.startswith("%|")
    is_name = len(number.name) <= 100 and 0 < len(_WORD.findall(number.name)) <= 4
    return is_next and is_name and not is_code


def _is_pair(numbers: Sequence[Number]) -> bool:
    """Return True if the line is only a name and its number, as in a block: ``• Reward: 0.4``."""
    if len(numbers) != 1:
        return False
    (number,) = numbers
    is_alone = number.before.strip(f"{EDGE}|-•") == number.name and len(number.after.strip(" |")) <= len(
        number.unit
    )
    return is_alone and _has_own_name(number)


def _counter_of(texts: Sequence[str], numbers: Sequence[Number], is_bar: bool) -> Counter | None:
    index = next((number.index for number in numbers if number.is_counter), None)
    if index is None:
        return None
    if is_bar and not _is_timed(numbers, index):
        return Counter(index, is_within=True)  # Keras's bars, below a line that names the epoch
    epoch = next((number for number in numbers if number.field == "epoch"), None)
    if epoch is None:
        return Counter(index, is_bar)
    is_lightning = is_bar and (not epoch.is_fraction or any("•" in text for text in texts))
    # An epoch that is printed with decimals is a part of the run, and the count next to it is the run's, too.
    return Counter(index, is_bar, epoch.index < index and "." not in epoch.text, is_lightning)


def _form(
    texts: Sequence[str],
    numbers: Sequence[Number],
    metrics: Metrics,
    is_bar: bool,
    is_prose: bool,
    title: Sequence[str],
) -> Form:
    fields = fields_of(numbers)
    counts = [number for number in numbers if number.is_count]
    measures = len(fields & MEASURES)
    has_total = any(number.is_fraction for number in counts)
    inner = [
        number.index for number in numbers if (number.field or number.is_counter) and number.field != "rank"
    ]
    first = inner[0] if inner else 0
    ending = texts[-1]
    is_object = "{" in texts[0] and ending.rstrip().endswith("}")
    is_list_of_results = is_object and not counts and "".join(texts).count("{") > 1  # the results of each
    is_of_total = has_total or any(number.is_fraction and not number.name for number in numbers)
    is_known_object = (is_object and measures > 1) or "[=" in texts[0]  # a drawn bar
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
        is_heading = all(_may_be_in_heading(number) for number in numbers[first:] if not number.is_counter)
    is_of_batches = not measures and all("batch" in number.name.lower() for number in counts)  # of any work
    is_setting = fields & MEASURES == {"learning_rate"} and (  # epochs=20 lr=0.001
        any(number.is_amount for number in counts) or not any(number.name for number in counts)
    )
    is_bare = is_prose or is_setting or not (measures or is_heading or _has_scoped_names(numbers, all))
    is_bare |= measures > 0 and len(numbers) == 1
    is_own_name = any("_" in number.name for number in counts)  # such as "global_step"
    min_rises = (
        1 if has_total or is_own_name else 2 if (len(metrics) > 1 and not is_prose) or not is_bare else 4
    )
    # Whole numbers next to steps are other counts, as of an agent's actions: measures have decimals.
    has_measured = (
        is_own_name
        or "epoch" in fields
        or any("." in numbers[index].text.rstrip(".") for index, _ in metrics)
    )
    # Lines of one kind have the same texts after the count, at least up to the next named number.
    key_end = next((index + 1 for index in sorted({*inner, *dict(metrics)}) if index > first), None)
    return Form(
        has_count=bool(counts),
        has_values=measures > 0
        or (not is_of_batches and ((has_measured and not is_prose) or len(counts) > 1)),
        is_bare=is_bare,
        min_rises=min_rises,
        has_results=not is_prose and any(names_evaluation(name) for _, name in metrics),
        is_clear=is_clear,
        is_heading=is_heading,
        is_lone_bar=is_bar and not title and not fields & (LOSSES | {"epoch"}),
        key=(
            numbers[first].name.lower().rpartition(" ")[2],
            # The drawing of a bar differs in each state.
            *(re.sub(r"[\s\d#=>.\-\u2500-\u25ff]+", " ", text) for text in texts[first + 1 : key_end]),
        ),
    )


def _is_setting(numbers: Sequence[Number]) -> bool:
    """Return True for a total in a configuration; a training announces it as ``Total … steps``."""
    totals = [number for number in numbers if number.field == "total_steps"]
    is_announced = any(number.name.lower().startswith("total") for number in totals)
    return bool(totals) and not is_announced and not fields_of(numbers) & (LOSSES | {"step"})


def _find_counter(numbers: Sequence[Number]) -> tuple[Number | None, bool]:
    """Return the number that counts steps, and True if it is a bar's."""
    is_keras = any("/step" in number.unit for number in numbers)
    for number in numbers:
        is_bar = (
            ">." in number.after
            or (is_keras and number.index == 0 and not number.field and "[" not in number.before)
            or _is_timed(numbers, number.index)
        )
        is_endless = number.field == "step" and number.after.startswith("it [")
        if is_endless or (is_bar and number.is_fraction and number.field in ("", "step")):
            return number, True
    steps = [
        (number.meaning.rank, number.index)
        for number in numbers
        if number.is_fraction and number.meaning is not None and number.field == "step"
    ]
    return (numbers[min(steps)[1]] if steps else _unnamed_counter(numbers)), False


def _unnamed_counter(numbers: Sequence[Number]) -> Number | None:
    """Return the number without a name that counts steps: a fraction, or the number before the values."""
    fields = fields_of(numbers)
    epoch = next((number for number in numbers if number.field == "epoch"), None)
    has_loss = bool(fields & LOSSES) or any(names_loss(number.name) for number in numbers)
    if epoch is not None or (has_loss and "step" not in fields):
        start = 0 if epoch is None else epoch.index + 1
        counter = next((number for number in numbers[start:] if _is_unnamed_fraction(numbers, number)), None)
        if counter is not None:
            following = numbers[counter.index + 1 : counter.index + 2]
            is_share = "%" in counter.after[:8] or any(number.unit == "%" for number in following)
            is_of_samples = epoch is not None and is_share and "epoch" in epoch.name.lower()
            return None if is_of_samples else counter
    has_scoped_names = not fields and _has_scoped_names(numbers, any)
    if fields & COUNTS or not (has_scoped_names or fields & (LOSSES | {"learning_rate"})):
        return None
    first = next(number.index for number in numbers if number.meaning or (has_scoped_names and number.name))
    for number in reversed(numbers[:first]):
        is_next = not number.before.rpartition("]")[2].strip(" [,")
        if not number.name and number.text.isdecimal() and is_next:
            before = numbers[max(0, number.index - 1)]
            if number.before.strip() == "," and before.text.isdecimal():
                before.meaning = Meaning("epoch")  # "[2, 4000] loss: 1.3"
            return number
    return None


def _is_unnamed_fraction(numbers: Sequence[Number], number: Number) -> bool:
    """Return True unless the total is of samples or of a share: ``Accuracy: 84.1% (8410/10000)``.

    Some names are those of the activity, not of the count: ``Training [110/125000]``.
    """
    is_named = number.meaning is not None or number.name.lower() not in TRAINING | EVALUATION | {""}
    is_samples = meaning(f"{number.unit}/s") is not None
    before = numbers[max(0, number.index - 1)]
    is_progress = not before.name or before.name.lower() in _BAR_TITLE
    is_share = before.unit == "%" and not is_progress and number.before.strip() == "("
    return number.is_fraction and not (is_named or is_samples or is_share)


def _has_scoped_names(numbers: Sequence[Number], of: Callable[[Iterable[bool]], bool]) -> bool:
    """Return True if any or all names have words of training, or of evaluation: ``train-auc:0.9``."""
    tokens_by_name = [set(re.findall("[a-z]+", number.before.lower())) for number in numbers if number.name]
    return of(any(scope & tokens for tokens in tokens_by_name) for scope in (TRAINING, EVALUATION))


def _evaluates(texts: Sequence[str], numbers: Sequence[Number]) -> bool:
    """Return True if the words before the first known number, or those of a count, name an evaluation."""
    first = next((number.index for number in numbers if number.field), None)
    if first is None:
        return False
    head = " ".join(DELIMITER.split(" ".join(texts[: first + 1]).rstrip(EDGE))[:-1])
    return _EVALUATES.search(head) is not None or any(
        number.field in COUNTS and _EVALUATES.search(number.before) for number in numbers
    )


def _is_timed(numbers: Sequence[Number], index: int) -> bool:
    """Return True if elapsed and remaining time follow a count: ``120/500 [01:23<02:34, 3.2it/s]``."""
    following = numbers[index + 1 : index + 2]
    return not numbers[index].after.strip(" [") and any(
        ":" in time.text and time.after.lstrip()[:1] in ("<", ",", "•") for time in following
    )


def _title(texts: Sequence[str], counter: int) -> list[str]:
    """Return the words of a bar's title. A drawn bar has a title only before a colon, else a log prefix."""
    drawn = next((index for index in range(1, counter + 1) if texts[index].startswith("%|")), 0)
    if drawn and not texts[drawn - 1].rstrip().endswith(":"):
        return []
    title = re.split(r"\] | - |\) ", " ".join(texts[: counter + 1]))[-1]
    return [word for word in words_of(title) if len(word) > 1]


def _is_training_bar(
    texts: Sequence[str], counter: int, fields: set[str], title: Sequence[str], evaluates: bool
) -> bool:
    """Return True if a bar counts a training's steps: it has a loss, or its title and numbers say so."""
    if "loss" in fields or (fields == {"epoch"} and not evaluates):
        return True
    if evaluates or title in (["batch"], ["batches"]) or not _BAR_TITLE.issuperset(title):
        return False
    inside = "0".join(texts[counter + 1 :]).partition("]")[0]
    return "<" in inside and RATE.search(inside) is not None


def _may_be_in_heading(number: Number) -> bool:
    """Return True for a count, a time or a percentage; False for an amount such as ``iters: 1000``."""
    return number.is_time or number.unit == "%" or (number.field in COUNTS and not number.is_amount)
