"""Lines with counts in brackets or abbreviated numbers: PyTorch tutorials, CLU (JAX), Levanter.

PyTorch: ``[1,  2000] loss: 2.173`` (epoch, batch) and ``loss: 1.231  [12864/60000]`` (samples of the
epoch).
CLU: ``logging_writer.py:48] [120] learning_rate=0.0001, loss=4.312``.
Levanter: ``Progress on:train 9.21kit/10.0kit rate:2.1it/s remaining:06:12 … postfix:loss=2.31``.
"""

from __future__ import annotations

import re
from dataclasses import replace

from tui.analysis.progress.patterns.reading import NUMBER, ParsedMetrics, from_values, to_float, to_step

_EPOCH_AND_BATCH = re.compile(rf"^\[(?P<epoch>\d{{1,6}}), +\d{{1,9}}\] loss: (?P<loss>{NUMBER})\s*$")
_SAMPLES = re.compile(rf"^loss: (?P<loss>{NUMBER}) {{1,4}}\[ *\d{{1,12}}/ *\d{{1,12}}\]\s*$")
_CLU = re.compile(r"\blogging_writer\.py:\d{1,6}\] \[(?P<step>\d{1,12})\] (?P<values>.*)$")
_CLU_VALUE = re.compile(rf"([A-Za-z_][\w/]{{0,60}})=({NUMBER})(?=,|\s*$)")
_LEVANTER = re.compile(
    r"\bProgress on:(?P<what>train|eval) (?P<done>[\d.]{1,12})(?P<done_unit>[kM]?)it/"
    r"(?P<total>[\d.]{1,12})(?P<total_unit>[kM]?)it rate:(?P<rate>[\d.]{1,12})(?P<unit>it/s|s/it)\b"
    rf"(?:.{{0,80}}\bloss=(?P<loss>{NUMBER}))?"
)
_TIMES = {"": 1, "k": 1_000, "M": 1_000_000}


def read(text: str) -> ParsedMetrics | None:
    if text.startswith(("[", "loss: ")):
        counted = _EPOCH_AND_BATCH.match(text) or _SAMPLES.match(text)
        if counted is None:
            return None
        epoch = to_float(counted["epoch"]) if counted.re is _EPOCH_AND_BATCH else None
        return ParsedMetrics(epoch=epoch, loss=to_float(counted["loss"]))
    if "Progress on:" in text:
        return _read_levanter(text)
    clu = _CLU.search(text) if "logging_writer.py:" in text else None
    if clu is None:
        return None
    told = from_values(dict(_CLU_VALUE.findall(clu["values"])))
    return None if told == ParsedMetrics() else replace(told, step=to_step(clu["step"]))


def _read_levanter(text: str) -> ParsedMetrics | None:
    match = _LEVANTER.search(text)
    if match is None:
        return None
    loss, rate = to_float(match["loss"]), to_float(match["rate"])
    if match["what"] == "eval":
        return None  # The running mean of an unfinished evaluation.
    done, total = to_float(match["done"]), to_float(match["total"])
    if done is None or not total:
        return None
    step_time_s = None if not rate else rate if match["unit"] == "s/it" else 1 / rate
    return ParsedMetrics(
        step=round(done * _TIMES[match["done_unit"]]),
        total_steps=round(total * _TIMES[match["total_unit"]]),
        loss=loss,
        step_time_s=step_time_s,
        from_bar=True,
    )
