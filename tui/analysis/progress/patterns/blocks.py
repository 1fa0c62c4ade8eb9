"""Trainers that print a heading with the step and then a line for each value.

MosaicML Composer: ``[epoch=1/3][batch=120/4800]:``, then ``Train loss/train/total: 2.3012``.
OLMo: ``[step=120/739328,epoch=0,eta=5h11m]``, then ``train/CE loss=2.812`` (``CrossEntropyLoss`` before).
NeMo RL: ``========== Step 12/500 ==========``, then ``• Loss: 0.0123``.
Ray Train: a frame with rows ``│ training_iteration   3 │``; Stable-Baselines3: ``|    loss   | 0.0123  |``.
"""

from __future__ import annotations

import re

from tui.analysis.progress.patterns.reading import NUMBER, ParsedMetrics, from_values, to_float, to_step

_HEADING = re.compile(
    r"(?:\[epoch=(?P<epoch>\d{1,9})(?:/\d{1,9})?\])?"
    r"\[(?:step|batch|iteration|iter)=(?P<step>\d[\d,]{0,14})/(?P<total>\d[\d,]{0,14})"
    r"(?:,\s?\w{1,20}=[^,\]]{1,24}){0,4}\]:?\s*$"
    r"|={5,200} Step (?P<step2>\d{1,12})/(?P<total2>\d{1,12}) ={5,200}\s*$"
)
_VALUE = re.compile(
    rf"(?:^|\s)(?:(?P<kind>Train|Eval) )?(?P<name>[A-Za-z_][\w./-]{{0,80}}(?: [\w()]{{1,20}}){{0,3}})"
    rf"\s?[:=]\s?(?P<value>{NUMBER})\s*$"
)
_BULLET = re.compile(rf"^\s*[•*] (?P<name>(?:Avg |Mean )?Loss|Grad(?:ient)? Norm): (?P<value>{NUMBER})\s*$")
_ROW = re.compile(
    rf"^\s*(?:│ |\|\s{{4}})(?P<name>[A-Za-z_/]{{4,40}})\s{{2,}}(?:\| )?\s*(?P<value>{NUMBER})\s*[│|]\s*$"
)
_ROWS = {
    **dict.fromkeys(("loss", "train_loss", "training_loss", "train/loss", "total_loss"), "loss"),
    **dict.fromkeys(("val_loss", "eval_loss", "valid_loss", "validation_loss", "test_loss"), "val_loss"),
    **dict.fromkeys(("training_iteration", "total_timesteps"), "step"),
}
_OF_GPU = re.compile(rf"^\s*- E2E \(Tokens/sec/gpu\): (?P<value>{NUMBER})\s*$")
_COMPOSER = re.compile(
    r"^(?:loss/train/total|(?:lr-\w+|optimizer)/group0|throughput/(?:device/)?tokens_per_sec)$"
)
_OLMO = {
    "train/crossentropyloss": "train/loss",
    "train/ce loss": "train/loss",
    "optim/total_grad_norm": "grad_norm",
    "optim/total grad norm": "grad_norm",
    "optim/lr (group 0)": "lr",
    "throughput/device/tokens_per_second": "tokens_per_s",
    "throughput/device/tps": "tokens_per_s",
}


def read(text: str) -> ParsedMetrics | None:
    heading = _HEADING.search(text) if "=" in text and "/" in text else None
    if heading is not None:
        step, total = (
            to_step(heading["step"] or heading["step2"]),
            to_step(heading["total"] or heading["total2"]),
        )
        if step is None or not total or step > total:
            return None
        return ParsedMetrics(step=step, total_steps=total)
    bullet = _BULLET.match(text)
    if bullet is not None:
        name = "loss" if "oss" in bullet["name"] else "grad_norm"
        return from_values({name: bullet["value"]})
    row = _ROW.match(text) if "│" in text or "|    " in text else None
    if row is not None:
        field = _ROWS.get(row["name"].lower())
        return None if field is None else _named(field, row["value"])
    of_gpu = _OF_GPU.match(text) if "E2E" in text else None
    if of_gpu is not None:
        return from_values({"tokens_per_s": of_gpu["value"]})
    match = _VALUE.search(text) if "/" in text else None
    if match is None:
        return None
    name = match["name"].lower()
    if name in _OLMO or (match["kind"] == "Train" and _COMPOSER.match(name)):
        return _named(_OLMO.get(name, name), match["value"])
    evaluates = match["kind"] == "Eval" and name.endswith(("crossentropy", "/loss"))
    if evaluates or name.endswith("/ce loss"):  # An OLMo loss on data that it does not train on.
        return ParsedMetrics(eval_loss=to_float(match["value"]))
    return None


def _named(name: str, value: str) -> ParsedMetrics | None:
    told = from_values({name: value})
    return None if told == ParsedMetrics() else told
