"""Read step, loss, speed and saves out of log lines, whichever trainer printed them.

Specific formats are tried before general ones. Lines without any hint word are skipped after a few
substring searches, because most lines of a log are no progress lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce

from tui.analysis.logs.excerpt import newest_states
from tui.analysis.progress.lines import alone, bars, headings, saves, structured, tables, text, trainers
from tui.analysis.progress.lines.custom import ProgressPattern
from tui.analysis.progress.lines.languages import in_english
from tui.analysis.progress.lines.reading import ParsedMetrics
from tui.text.sanitize import last_carriage_segment, strip_ansi

_MAX_LINES = 200
_MAX_SEGMENTS = 4
_MAX_REPLICAS = 4096
_LONGEST_HEADING = 160
_SHORT = 8  # Shorter texts after a bar report nothing.
_WIDE = str.maketrans({"：": ": ", "，": ", ", "；": "; ", "（": "(", "）": ")", "＝": "="})
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
    "batch",
    "_per_s",
    "lr=",
    "lr ",
    "lr:",
    "/group0",
    "eval/",
    " norm",
    "_norm",
    "optim/",
    "device/tps",
    "s/sec",
    "persec",
    "learn: ",
    "rmse",
    "-mae:",
    "ng's ",
    "'s l",
    "num-trees",
    "-error:",
    "up. ",
    "learning rate",
    " rate, ",
    "[train](",
    "writing model to ",
)
"""Every line of every family contains one of these (lower case)."""

# torchrun's [rank0]: and [default0]:, srun's 0:, mpirun's [1,0]<stdout>:, Ray's processes and custom ones,
# possibly after a time and a level.
_RANK = re.compile(
    r"^\s*(?:(?:\[?\d{4}-\d\d-\d\d[T ][\d:.,]{8,18}(?:Z|[+-]\d\d:?\d\d)?\]?[ :|-]{0,4})?"
    r"(?:\[?(?:INFO|DEBUG|WARNING)\]?[ :|-]{0,4})?"
    r"(?:\[(?:rank|default|Rank |Rank:? ?|RANK |local_rank )(\d{1,5})\]:?"
    r"|(?:rank|Rank)[ :=](\d{1,5})(?:\]|:|,| \|| -)(?=\s))"
    r"|\[\d+,(\d{1,5})\]<std\w{3}>:?|(\d{1,5}): (?=\S)(?!\d+\.\d+, )"
    r"|\(\w{1,60} pid=(\d{1,9})(?:, ip=[\w.:]{1,45})?\))"
)

# After objects and bars: from the most specific to the most general, which would take part of a line.
_READERS = (
    headings.read,
    trainers.read_keras,
    trainers.read_nemo,
    trainers.read_torchtitan_start,
    trainers.read_own_format,
    trainers.read_boosting,
    text.read,
    trainers.read_announced_total,
)


# What a line alone does not say, but one shortly before it: who speaks, whether an evaluation runs, and the
# epoch of values that are printed on lines of their own.
_SPOKEN = (
    "user", "assistant", "human", "system", "prompt", "completion", "question", "answer", "response",
)  # fmt: skip
_SAYS = re.compile(r"[a-z]+[\s#*\d()-]{0,8}:")
_SPEECH_LINES = 12
_BLOCK_LINES = 12
_BLOCK = re.compile(
    r"(?:[\d: .,-]{19,32}|(?:[\w:.,]{1,40}+(?: (?!- )[\w:.,-]{1,40}+){0,2}+ - ){1,3}+(?=\s))?"
    r"\W{0,12}(?:train )?(?:(?P<what>epoch)|iteration|itr)(?:=|[^\w=]{1,24})(?P<number>\d{1,9})"
    r"(?:\s?(?:/|of)\s?\d{1,9})?(?: took [\d.]{1,12}s)?\W*$",
    re.IGNORECASE,
)
_EVALUATES = re.compile(
    r"(?:^|[-:\]>*|])\s*(?:running |start(?:ing)? |begin )?"
    r"(?:(?:validat|evaluat)(?:ing|ion)(?: (?:on )?(?:the )?(?:test|val\w*|dev)(?: set| data)?)?"
    r"|eval performance)[ .:*…=#-]*$",
    re.IGNORECASE,
)
# A configuration or a file of results, YAML or TOML: a key without a value, or a setting. What such a file
# says of a loss is no report.
_KEY = re.compile(r"\s*(?:- )?\[?(?P<key>[a-z][\w.]{1,40})(?:(?:\]|:)\s*$|\s?[:=]\s?(?P<value>\S{1,80})\s*$)")
_SETTING = re.compile(
    r"max_|num_|warmup|epochs|batch_size|seed|clip|decay|dropout|optimizer|patience|schedul|dtype|model|path|dir"
    r"|name"
)
_ITEM = re.compile(r"\s*(?:- )?[a-z]\w{1,30}\s?[:=]\s?[\d.e+-]{1,24}\s*$")
_STEP = re.compile(
    r"(?:(?:global[_ ])?(?:step|iteration|iter)\s?[:=]\s{1,4}|.{0,120}\] step #)(?P<step>\d{1,12})\s*$",
    re.IGNORECASE,
)
_QUOTED_STEP = re.compile(r"\s'step': (\d{1,12})[,}]")
_COUNT = re.compile(r"\W{0,8}(?:[Ss]tep|[Ee]poch)\b[^\d:=]*$")
_FRAME = ("|", "│", "┃")
_EVALUATES_NAME = re.compile(r"(?i)(?<![a-z])(?:val|eval|test)")
_SETTINGS_LINES = 12
_NAMES_TRAINING = re.compile(r"(?i)(?<![\w.])(?=\w*(?:train|epoch))\w++(?!\.\w)")  # not a logger's name
_EVALUATION_BARS = 500  # An evaluation prints fewer; more are a training's that does not say so.


@dataclass(slots=True)
class _Context:
    speech: int = 0
    block: int = 0
    settings: int = 0
    has_counted: bool = False
    rates: int = 0
    in_table: bool = False
    table: tables.Table | None = None
    names: tables.Table | None = None
    evaluation_bars: int = 0
    evaluation_steps: int | None = None
    training_steps: int | None = None


class Reader:
    """Reads the lines of a log one after the other, with what the lines before them say.

    A long line is no progress line, unless a bar overwrote it.
    """

    def __init__(self, patterns: Sequence[ProgressPattern] = ()) -> None:
        self._patterns = patterns
        self._objects = structured.IndentedObjects()
        self._contexts: dict[str, _Context] = {}

    def read(self, message: str, replica: str = "") -> ParsedMetrics | None:
        message = self._objects.join(replica, newest_states(message))
        reading = _read_own(message, self._patterns) if self._patterns else None
        if reading is None:
            reading, message = _parse_any(message)
        context = self._contexts.get(replica)
        if context is None:
            if len(self._contexts) >= _MAX_REPLICAS:
                return reading
            context = self._contexts[replica] = _Context()
        if context.settings and _ITEM.match(message):
            context.settings -= 1
            return None
        if reading is None:
            return _without_reading(context, message)
        if reading.total_steps and not reading.from_bar and _is_evaluation(context, reading, message):
            return None
        if reading.from_bar:
            return None if _is_evaluation(context, reading, message) else reading
        if reading.step is None and reading.epoch is None and reading.checkpoint is None:
            is_setting = not context.has_counted and _ITEM.match(message)
            if context.block and not is_setting:
                context.has_counted, context.rates = True, _BLOCK_LINES
            if context.evaluation_bars and not _NAMES_TRAINING.search(message) and reading.eval_loss is None:
                reading = replace(reading, loss=None, eval_loss=reading.loss)
            return None if context.speech or is_setting else reading
        if reading.checkpoint is None:
            context.has_counted = True
            context.speech = context.settings = 0
            epoch_only = reading.step is None and reading.loss is None
            if not (context.evaluation_bars and epoch_only and _EVALUATES_NAME.search(message)):
                context.evaluation_bars = 0
        counts_only = reading.step is not None and reading.loss is None and reading.eval_loss is None
        is_heading = counts_only and reading.checkpoint is None and not _EVALUATES_NAME.search(message)
        context.block = _BLOCK_LINES if is_heading or _BLOCK.match(message) else 0
        context.rates = context.rates if reading.checkpoint is not None else _BLOCK_LINES
        return reading


def _without_reading(context: _Context, message: str) -> ParsedMetrics | None:
    """Update the context; return the measure of a line that says nothing by itself."""
    if context.speech:
        context.speech -= 1
    if message.startswith("|") and context.in_table:
        row = alone.read_row(message)
        if row is not None:
            return row if context.has_counted or row.learning_rate is None else None
    else:
        context.in_table = message.startswith("----------") and not message.strip("-")
    if context.table is not None and (row := context.table.read(strip_ansi(message))) is not None:
        evaluates = context.evaluation_bars and row.eval_loss is None
        return replace(row, loss=None, eval_loss=row.loss) if evaluates else row
    if len(message) > _LONGEST_HEADING:
        return None
    if "oss" in message or "LOSS" in message or message[:1] in _FRAME or _COUNT.match(message):
        context.names = tables.table_below(message, context.names)
        if context.names is not None and context.names.is_of_training():
            context.table, context.block = context.names, 0
            return None
    key = _KEY.match(message) if ":" in message or "=" in message or "[" in message else None
    if key is not None and (key["value"] is None or _SETTING.search(key["key"])):
        context.settings, context.block = _SETTINGS_LINES, 0
        return None
    words = message.strip(" \t#*>-[").lower()
    if words.startswith(_SPOKEN) and _SAYS.match(words):
        context.speech, context.block = _SPEECH_LINES, 0
    elif ("alidat" in message or "valuat" in message or "EVAL " in message) and _EVALUATES.search(message):
        context.evaluation_bars, context.evaluation_steps = _EVALUATION_BARS, None
    elif words == "training":
        context.evaluation_bars = 0
    elif (
        step := _STEP.match(message) if message[:1] in "SsIiGg" or "tep #" in message else None
    ) is not None:
        context.block = context.rates = _BLOCK_LINES
        return ParsedMetrics(step=int(step["step"]))
    elif ("epoch" in words or "itera" in words or "itr" in words) and (begun := _BLOCK.match(message)):
        context.block = _BLOCK_LINES
        if context.has_counted and not context.settings and begun["what"]:
            return ParsedMetrics(epoch=float(begun["number"]))
    elif message.startswith("{'") and "}" not in message:
        context.block = context.rates = _BLOCK_LINES  # printed over several lines
    elif context.block and (step := _QUOTED_STEP.match(message)) is not None:
        return ParsedMetrics(step=int(step[1]))
    elif context.block or context.rates:
        below = alone.read_in_block(message)
        is_loss = below is not None and (below.loss is not None or below.eval_loss is not None)
        is_mean = "avg" in message or "verage" in message
        lines = context.block if is_loss and not is_mean else context.rates
        context.block, context.rates = max(0, context.block - 1), max(0, context.rates - 1)
        if lines and is_loss:
            context.rates = context.block  # beside it
        return below if lines else None
    return None


def _is_evaluation(context: _Context, reading: ParsedMetrics, message: str) -> bool:
    """Return True for the bar after the announcement of an evaluation, unless it names the training."""
    if reading.loss is None:
        return False
    known = reading.from_bar or context.training_steps is not None
    if known and context.evaluation_bars and reading.total_steps != context.training_steps:
        if context.evaluation_steps is None and not _NAMES_TRAINING.search(message):
            context.evaluation_steps = reading.total_steps
        if context.evaluation_steps == reading.total_steps:
            context.evaluation_bars -= 1
            return True
    context.evaluation_bars = 0
    context.training_steps = reading.total_steps
    return False


def parse(message: str, patterns: Sequence[ProgressPattern] = ()) -> ParsedMetrics | None:
    """Parse a log line; ``None`` if it does not report training progress.

    If a progress bar overwrote parts of the line, the last state counts; several lines of one message are
    combined. NaN and infinite losses are kept, because people need to see them. Never raises, whatever
    the text. The user's own ``patterns`` are tried first, on any line.
    """
    message = newest_states(message)
    return _read_own(message, patterns) or _parse_any(message)[0]


def _parse_any(message: str) -> tuple[ParsedMetrics | None, str]:
    """Parse a line in any language; return it in English, too, unless English words already say enough."""
    reading = _parse(message)
    if reading is not None and None not in (reading.loss, reading.epoch if reading.step is None else 0):
        return reading, message
    english = in_english(message)
    return (reading if english is message else _parse(english)), english


def _read_own(message: str, patterns: Sequence[ProgressPattern]) -> ParsedMetrics | None:
    for pattern in patterns:
        reading = pattern.read(strip_ansi(last_carriage_segment(message)))
        if reading is not None:
            return reading
    return None


def _parse(message: str) -> ParsedMetrics | None:
    lowered = message.lower()
    for hint in _HINTS:
        if hint in lowered:
            break
    else:
        return None
    text = strip_ansi(message.rstrip("\r\n")).replace("\b", "")  # Keras moves the cursor with backspaces.
    if not text.isascii() and ("：" in text or "，" in text):
        text = text.translate(_WIDE)
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
        text = text[rank.end() :].removeprefix(" ")
    reading = _read_facts(text)
    if reading is None or rank is None or reading.is_save:
        return reading
    return replace(reading, rank=_number(rank))


def _read_facts(text: str) -> ParsedMetrics | None:
    """Parse the measures of a line and the save that it may report as well."""
    reading = _first_reading(text)
    if reading is not None and reading.from_bar:
        rest = text[bars.ends(text) :]
        if rest != text and len(rest.strip()) > _SHORT:
            after = _read_facts(rest)
            if after is not None:
                reading = replace(_merged(after, reading), from_bar=True)
    save = saves.read(text)
    if save is None or structured.quotes_speech(text):
        return reading
    if reading is None:
        return save
    lowered = text.lower()
    if reading.loss is not None and not reading.from_bar and lowered.find("sav") < lowered.find("loss"):
        reading = replace(
            reading, loss=None
        )  # "Saving model (epoch = 3, loss = 0.71)": the best, not the last
    return replace(reading, checkpoint=save.checkpoint)


def _first_reading(text: str) -> ParsedMetrics | None:
    reading = structured.read_python_dict(text) or structured.read_json(text)
    if reading is not None or structured.quotes_speech(text):
        return reading
    reading = bars.read(text)
    if reading is not None:
        return reading
    text = text[bars.ends(text) :]  # The title of a bar of other work is no report.
    for read in _READERS:
        reading = read(text)
        if reading is not None:
            return reading
    return None


def _merged(reading: ParsedMetrics, other: ParsedMetrics) -> ParsedMetrics:
    """Return the reading with all values of the other."""
    return replace(
        reading, **{name: value for name in _FIELDS if (value := getattr(other, name)) is not None}
    )


def _number(rank: re.Match[str]) -> int:
    return int(rank[rank.lastindex or 1])
