"""Lines that are, or end in, a JSON object: custom loggers, fairseq, structured logging."""

from __future__ import annotations

import json
import re

from tui.analysis.progress.patterns import bars, keyed
from tui.analysis.progress.patterns.reading import (
    NUMBER,
    ParsedMetrics,
    from_values,
    is_training_metrics,
    to_float,
)

_START = re.compile(r"\{\s{0,4}\"")
_MESSAGE_KEYS = (
    "message",
    "msg",
    "event",
    "text",
)  # Fields in which structured logging keeps the line itself.


def read_json(text: str) -> ParsedMetrics | None:
    """Parse a JSON object with a loss, or with a step and a measure; one level of nesting."""
    start = _START.search(text)
    if start is None or not text.rstrip().endswith("}"):
        return None
    try:
        decoded = json.loads(text[start.start() :])
    except (ValueError, RecursionError):
        return None
    if not isinstance(decoded, dict):
        return None
    values: dict[str, object] = {}
    for value in decoded.values():
        if isinstance(value, dict):
            values.update({str(inner).lower(): inside for inner, inside in value.items()})
    values.update({str(key).lower(): value for key, value in decoded.items()})
    reading = from_values(values)
    if is_training_metrics(reading):
        return bars.with_step(reading, text[: start.start()])
    said = next((value for name in _MESSAGE_KEYS if isinstance(value := decoded.get(name), str)), None)
    return None if said is None else keyed.read(said)


_ITEM = re.compile(
    rf"'([\w/ .()-]{{1,64}})': (?:'({NUMBER})'|(?:(?:np|numpy|torch)?\.?(?:float\d+|tensor)\()?({NUMBER}))"
    r"(?:, (?:device|dtype|grad_fn)=[^,)]{1,40}){0,3}\)?(?=[,}\s])"
)


# ms-swift puts both into one item, under various names.
_STEP_OF_TOTAL = re.compile(r"'[\w/ ]*step[\w/ ]*': '(\d{1,12})/(\d{1,12})'")


def _steps_of(text: str) -> dict[str, int]:
    match = _STEP_OF_TOTAL.search(text)
    return {} if match is None else {"step": int(match[1]), "total_steps": int(match[2])}


def read_python_dict(text: str) -> ParsedMetrics | None:
    start = text.find("{'")
    if start < 0:
        return None
    values = {key.lower(): quoted or bare for key, quoted, bare in _ITEM.findall(text[start:])}
    if "train_runtime" in values:
        # The final summary: its train_loss is the mean of the whole run, not a point of the curve.
        return ParsedMetrics(
            epoch=to_float(values.get("epoch")),
            samples_per_s=to_float(values.get("train_samples_per_second")),
        )
    if "throughput" in values:
        values.setdefault("tokens_per_s", values["throughput"])  # LLaMA-Factory counts tokens
    reading = from_values(values, **_steps_of(text))
    if reading.loss is None and reading.eval_loss is None:
        return None
    return bars.with_step(reading, f"{text[:start]} {text[text.rfind('}') + 1 :]}")
