"""Lines that are, or end in, a JSON object: custom loggers, fairseq, structured logging."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace

from tui.analysis.progress.lines import bars
from tui.analysis.progress.lines.kinds import is_spoken
from tui.analysis.progress.lines.reading import (
    NUMBER,
    ParsedMetrics,
    from_values,
    is_of_layer,
    is_partial,
    to_float,
    to_step,
)
from tui.analysis.progress.lines.text import is_training_metrics
from tui.analysis.progress.lines.text import read as read_text
from tui.analysis.progress.lines.vocabulary import EVALUATION, meaning

_START = re.compile(r"\{\s{0,4}\"")
_KIND_KEYS = ("event", "mode", "split", "phase", "stage", "type")
_NAME_KEYS = ("key", "name", "tag", "metric")  # {"tag": "loss", "value": 0.41}
_SAVED = re.compile(r"checkpoint[_ ](?:was )?(?:saved|written)|saved[_ ]checkpoint")
_OTHER_LOSS = re.compile(r"(?i)packet loss|stop loss")
_MESSAGE_KEYS = (
    "message",
    "msg",
    "event",
    "text",
)  # Fields in which structured logging keeps the line itself.


# A conversation or an example of a data set: what its strings say is no report, only its numbers are.
_SAID = re.compile(
    r"\"(?:content|value|prompt|completion|instruction|input|output|response|question|answer|body)"
    r"\": ?\"[^\"]* "
    r"|\"role\": ?\"(?:user|assistant|system|tool)\""
    r"|^\s*[\[{]*\"text\": ?\"[^\"]*\"[\s}\],]*$"
)
_SPEAKER = re.compile(r"\"(?:from|author|sender|user|username|nick|speaker)\": ?\"")
_LEVEL = re.compile(r"(?i)\"(?:level\w*|severity)\":")  # structured logging, not a chat


def quotes_speech(text: str) -> bool:
    """Return True for JSON whose strings are what somebody said or wrote."""
    return '"' in text and (
        _SAID.search(text) is not None or (_SPEAKER.search(text) is not None and _LEVEL.search(text) is None)
    )


_MAX_OBJECT_LINES = 60


class IndentedObjects:
    """Joins JSON objects that are printed over several lines, as by ``json.dumps(…, indent=2)``."""

    def __init__(self) -> None:
        self._open: dict[str, list[str]] = {}

    def join(self, replica: str, message: str) -> str:
        """Return the message, or the whole object if this is its last line."""
        if message == "{":
            self._open[replica] = [message]
            return message
        if not self._open or (held := self._open.get(replica)) is None:
            return message
        held.append(message.strip())
        if message == "}":
            return " ".join(self._open.pop(replica))
        if not message.startswith((" ", "\t")) or len(held) > _MAX_OBJECT_LINES:
            del self._open[replica]
        return message


def read_json(text: str) -> ParsedMetrics | None:
    """Parse a JSON object with a loss, or with a step and a measure; values may be nested."""
    start = _START.search(text)
    if start is None or not text.rstrip().endswith("}"):
        return None
    try:
        decoded = json.loads(text[start.start() :])
    except (ValueError, RecursionError):
        return None
    if not isinstance(decoded, dict):
        return None
    values = _flat(decoded)
    kind = " ".join(str(decoded.get(name, "")) for name in _KIND_KEYS).lower()
    said = next((value for name in _MESSAGE_KEYS if isinstance(value := decoded.get(name), str)), "")
    if said and (quotes_speech(text) or is_spoken(said.lower())):
        said = ""
    if _SAVED.search(f"{kind} {said}".lower()):
        return ParsedMetrics(checkpoint=_saved_name(values), step=to_step(values.get("step")))
    if "train_runtime" in values and "loss" not in values:
        return _summary(values)
    if is_of_layer(values):
        return None
    reading = from_values(values)
    if _OTHER_LOSS.search(said) or (reading.loss is not None and not _names_more_than_a_loss(values)):
        return None
    if reading.loss is not None and reading.eval_loss is None and not EVALUATION.isdisjoint(kind.split()):
        reading = replace(reading, loss=None, eval_loss=reading.loss)
    if (
        reading.loss is not None
        or reading.eval_loss is not None
        or is_training_metrics(reading)
        or (reading.step is not None and _trains(values))
        or ("current_steps" in values and reading.total_steps)
        or (reading.learning_rate is not None and reading.epoch is not None and is_partial(values))
    ):
        return bars.with_step(reading, text[: start.start()])
    return read_text(said) if said else None


def _names_more_than_a_loss(values: Mapping[str, object]) -> bool:
    """Return True if an object has another number of training: a loss by itself could be anything's."""
    counted = {
        name: value.partition("/")[0] if isinstance(value, str) else value for name, value in values.items()
    }
    numbers = (name for name, one in counted.items() if isinstance(one, int) or to_float(one) is not None)
    return sum(meaning(name) is not None for name in numbers) > 1


def _trains(values: Mapping[str, object]) -> bool:
    """Return True if an object has measures of the training by name: ``train/return``."""
    return any(name.startswith("train/") and isinstance(one, float) for name, one in values.items())


def _flat(decoded: dict[str, object], depth: int = 3) -> dict[str, object]:
    """Return all values by name, outer ones before inner ones; an evaluation's keep its name."""
    values: dict[str, object] = {}
    for key, value in decoded.items():
        if isinstance(value, dict) and depth:
            prefix = f"{key}/" if key.lower() in EVALUATION else ""
            values.update({f"{prefix}{name}": inner for name, inner in _flat(value, depth - 1).items()})
    values.update({key: _only(value) for key, value in decoded.items() if value is not None})
    named = next((name for key in _NAME_KEYS if isinstance(name := decoded.get(key), str)), None)
    return values if named is None or "value" not in values else {**values, named: values["value"]}


def _only(value: object) -> object:
    """Return the value of a list of one."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _saved_name(values: dict[str, object]) -> str:
    path = next(
        (
            value
            for name in ("path", "checkpoint", "name", "dir")
            if isinstance(value := values.get(name), str)
        ),
        "",
    )
    return path.rstrip("/").rpartition("/")[2][:120]


_ITEM = re.compile(
    rf"'([\w/ .()-]{{1,64}})': (?:'({NUMBER})'"
    rf"|(?:[a-z.]{{0,8}}(?:float\d+|tensor|[Aa]rray)\()?(?:\[({NUMBER})\]|({NUMBER})))"
    r"(?:, (?:device|dtype|grad_fn|weak_type)=[^,)]{1,40}\)?){0,3}\)?(?=[,}\s])"
)


# ms-swift puts both into one item, under various names.
_STEP_OF_TOTAL = re.compile(r"'[\w/ ]*step[\w/ ]*': '(\d{1,12})/(\d{1,12})'")


_HEADING = re.compile(r"\b(?:epoch|(step|iteration)):?\s{1,4}(\d{1,9}):? $", re.IGNORECASE)


_CODE = re.compile(r"(?:^\s*return |\w\(|^(?:In|Out) ?\[\d+\]: )$")
_EVALUATES = re.compile(
    r"^[^{]{0,200}\b(?:evaluation|eval|validation|valid|val|test) [^{/.]{0,40}\{"
    r"|'(?:split|phase|mode|stage)': '(?:val|eval|test|dev)"
)


def _steps_of(text: str) -> dict[str, int]:
    match = _STEP_OF_TOTAL.search(text)
    return {} if match is None else {"step": int(match[1]), "total_steps": int(match[2])}


def _summary(values: Mapping[str, object]) -> ParsedMetrics:
    """Parse Transformers' final summary: its train_loss is the mean of the run, not a point of the curve."""
    return ParsedMetrics(
        epoch=to_float(values.get("epoch")),
        samples_per_s=to_float(
            values.get("train_samples_per_second", values.get("train_step_samples_per_second"))
        ),
    )


def read_python_dict(text: str) -> ParsedMetrics | None:
    start = text.find("{'")
    if start < 0:
        return None
    values = {key: quoted or one or bare for key, quoted, one, bare in _ITEM.findall(text[start:])}
    if is_of_layer(values):
        return None
    if ("train_runtime" in values or "train_step_runtime" in values) and "loss" not in values:
        return _summary(values)
    if _CODE.search(text, 0, start):
        return None
    reading = from_values(values, **_steps_of(text))
    evaluates = ("val" in text or "test" in text or "Eval" in text) and _EVALUATES.search(text.lower())
    if evaluates and reading.loss is not None and reading.eval_loss is None:
        reading = replace(reading, loss=None, eval_loss=reading.loss)
    if reading.loss is None and reading.eval_loss is None:
        heading = _HEADING.search(text, 0, start)
        if heading is None:
            return None
        return ParsedMetrics(step=int(heading[2])) if heading[1] else ParsedMetrics(epoch=float(heading[2]))
    return bars.with_step(reading, f"{text[:start]} {text[text.rfind('}') + 1 :]}")
