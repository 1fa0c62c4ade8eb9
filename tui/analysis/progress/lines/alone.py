"""Values on lines of their own: below a heading with the step, in a frame, behind a bullet, in a block."""

from __future__ import annotations

import re
from typing import Any

from tui.analysis.progress.lines.kinds import is_pairs, report_values
from tui.analysis.progress.lines.reading import NUMBER, ParsedMetrics, to_float, to_step
from tui.analysis.progress.lines.vocabulary import meaning, word_set

_METRIC_LINE = re.compile(
    rf"^\s*(?:(?:Train|Eval)\s+)?(?!\w+/s(?:ec)?\s?[=:])(?P<name>[A-Za-z_][\w.-]*(?:/[\w. ()-]+)+)\s?[=:]"
    rf"\s?(?P<value>{NUMBER})\s*$"
)
_BULLETS = ("•", "*", "-", "|")
_BULLET = re.compile(
    r"^(?:\s*[•*]|\s+-|\s*\| >) (?P<name>(?:Avg |Mean )?Loss|(?:avg_)?loss|current_lr|grad_norm"
    r"|Grad(?:ient)? Norm|E2E \(Tokens/sec/gpu\)): "
    rf"(?P<value>{NUMBER})(?: {{1,4}}\(\S{{1,24}}\))?\s*$"
)
_ROW = re.compile(
    rf"^\s*(?:│ |\|\s{{4}})(?P<name>[A-Za-z_/]{{4,40}})\s{{2,}}+(?:\| )?\s*+(?P<value>{NUMBER})\s*[│|]\s*$"
)
_NARROW_ROW = re.compile(rf"\|\s*(?P<name>[a-z_/]{{4,40}})\s*\|\s*(?P<value>{NUMBER})\s*\|\s*$")
_EPOCH_ROW = re.compile(r"\|\s{2,40}Epoch \|\s{2,40}(?P<epoch>\d{1,6}) \|\s*$")  # aligned to the right
_ROW_COUNTS = ("training_iteration", "total_timesteps")
_ROW_LOSSES = word_set(
    "loss train_loss training_loss train/loss total_loss val_loss eval_loss valid_loss "
    "validation_loss test_loss"
)
_IN_BLOCK = re.compile(
    r"(?:[\d: .,-]{19,32}|[A-Z]{4,7}:[\w.]{1,40}:|[IM[]\w{2,5}[^\]]{1,80}\](?: \[[^\]]{1,80}\]){0,2}"
    r"|(?:[\w:.,]{1,40}+(?: (?!- )[\w:.,-]{1,40}+){0,2}+ - ){1,3}+(?=\s))?"
    r"\W{0,12}(?P<name>[A-Za-z][\w /.-]{0,40}?)(?: set to| to| is)?[\"']?\s{0,24}(?:[:=]\s{0,24}|\s)"
    rf"(?P<value>{NUMBER})[,}}]{{0,2}}(?P<unit> ?[a-z]{{3,7}}/s(?:ec)?)?\s*$"
)
_FRACTION = re.compile(r"[.e]")
_HINTS = ("oss", "lr", "LR", "rate", "norm", "/s", "per sec", "/epoch ")
_HEADING = re.compile(
    r"(?:\[epoch=(?P<epoch>\d{1,9})(?:/\d{1,9})?\])?"
    r"\[(?:step|batch|iteration|iter)=(?P<step>\d[\d,]{0,14})/(?P<total>\d[\d,]{0,14})"
    r"(?:,\s?epoch=(?P<epoch2>\d{1,9}))?(?:,\s?\w{1,20}=[^,\]]{1,24}(?:days?, [\d:]{1,12})?){0,4}\]:?\s*$"
    r"|={5,200} Step (?P<step2>\d{1,12})/(?P<total2>\d{1,12}) ={5,200}\s*$"
    r"|^-{5,200}\[Step (?P<step4>\d{1,12})\]-{5,200}\s*$"
    r"|^(?:─{5,200} Step|[*=#-]{3,200} "
    r"(?i:(?:\[\S{1,60}\] - )?(?:train(?:ing)? |metrics )step|iteration)) #?(?P<step3>\d{1,12})"
    r" [─*=#-]{3,200}\s*$"
    r"|^(?:Epoch|EPOCH) {1,2}(?P<epoch3>\d{1,9}):?\s*$"
)


def read_alone(text: str) -> ParsedMetrics | None:
    """Parse trainers that print a heading with the step and then a line for each value.

    MosaicML Composer: ``[epoch=1/3][batch=120/4800]:``, then ``Train loss/train/total: 2.3012``.
    OLMo: ``[step=120/739328,epoch=0,eta=5h11m]``, then ``train/CE loss=2.812``.
    NeMo RL: ``========== Step 12/500 ==========``, then ``• Loss: 0.0123``.
    Ray Train: a frame with rows ``│ training_iteration   3 │``.
    Stable-Baselines3: ``|    loss   | 0.0123  |``.
    """
    heading = None
    if text.startswith(("─", "***", "===", "###", "---", "Epoch ", "EPOCH ")) or (
        "/" in text and text.rstrip(": ").endswith(("]", "="))
    ):
        heading = _HEADING.search(text)
    if heading is not None:
        if heading["step3"] or heading["step4"] or heading["epoch3"]:
            step = to_step(heading["step3"] or heading["step4"])
            return measure({"step": step, "epoch": to_float(heading["epoch3"])})
        step, total = (
            to_step(heading["step"] or heading["step2"]),
            to_step(heading["total"] or heading["total2"]),
        )
        if step is None or not total or step > total:
            return None
        return ParsedMetrics(step=step, total_steps=total, epoch=to_float(heading["epoch2"]))
    row = _ROW.match(text) if text.rstrip().endswith(("│", "|")) else None
    if row is not None:
        name = row["name"].lower()
        if name in _ROW_COUNTS:
            return measure({"step": to_step(row["value"])})
        return _named(name, row["value"]) if name in _ROW_LOSSES else None
    match = _METRIC_LINE.match(text) if "/" in text else None
    if match is None and text.lstrip()[:1] in _BULLETS:
        match = _BULLET.match(text)
    return None if match is None else _named(match["name"], match["value"])


def read_in_block(text: str) -> ParsedMetrics | None:
    """Parse a line with a loss or a learning rate alone, below a heading with the epoch."""
    for hint in _HINTS:
        if hint in text:
            break
    else:
        return None
    match = _IN_BLOCK.match(text)
    if match is None and "oss" in text and is_pairs(text.lower()):
        return measure({"loss": report_values(text).get("loss")})
    if match is None:
        return None
    if match["name"].endswith("/epoch"):
        return measure({"epoch": to_float(match["value"])})
    reading = _named(f"{match['name']} ({match['unit']})" if match["unit"] else match["name"], match["value"])
    is_rate = reading is not None and (reading.tokens_per_s or reading.samples_per_s)
    return reading if is_rate or _FRACTION.search(match["value"]) else None


def read_row(text: str) -> ParsedMetrics | None:
    """Parse a row of a table that its logger framed: ``| grad_norm | 0.21 |``, as of the baselines."""
    row = _NARROW_ROW.match(text)
    if row is None:
        epoch = _EPOCH_ROW.match(text)
        return None if epoch is None else measure({"epoch": to_float(epoch["epoch"])})
    if row["name"] == "step":
        return measure({"step": to_step(row["value"])})
    return (
        _named(row["name"], row["value"])
        if row["name"] in _ROW_LOSSES | {"grad_norm", "learning_rate"}
        else None
    )


def _named(name: str, value: str) -> ParsedMetrics | None:
    known = meaning(name)
    if known is None or known.field in ("step", "epoch", "total_steps", "step_time_s"):
        return None
    number = to_float(value)
    return None if number is None else measure({known.field: number * known.scale})


def measure(fields: dict[str, Any]) -> ParsedMetrics | None:
    return ParsedMetrics(**fields) if any(value is not None for value in fields.values()) else None
