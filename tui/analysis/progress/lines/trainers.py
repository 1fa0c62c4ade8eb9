"""Trainers with a format of their own that the general readers would misread."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from tui.analysis.progress.lines import text as plain
from tui.analysis.progress.lines.reading import (
    NUMBER,
    ParsedMetrics,
    from_groups,
    from_values,
    to_float,
    to_step,
)

_TIMER = r"\btimer\.py:\d+:stop\] "
_SPEED = rf", (?:RunningAvgSamplesPerSec=(?:{NUMBER}), )?(?:Curr)?SamplesPerSec=(?P<samples_per_s>{NUMBER})"
# A text that such a line contains, and the expression that reads it: its groups are those of the users' own.
_FORMATS = (
    # DeepSpeed: its optimizer line and its throughput timer, which name no loss.
    ("step=", re.compile(rf"\bstep=(?P<step>\d+), skipped=\d+, lr=\[(?P<lr>{NUMBER})")),
    ("SamplesPerSec", re.compile(rf"{_TIMER}\d+/(?P<step>\d+){_SPEED}")),
    (
        "SamplesPerSec",
        re.compile(rf"{_TIMER}epoch=(?P<epoch>\d+)/micro_step=\d+/global_step=(?P<step>\d+){_SPEED}"),
    ),
    (
        "learn: ",  # CatBoost
        re.compile(
            rf"^(?P<step>\d{{1,9}}):\s+learn: (?P<loss>{NUMBER})(?:\s+test: (?P<eval_loss>{NUMBER}))?"
            r".{0,60}\btotal: "
        ),
    ),
    (
        "[valid] Ep. ",  # Marian
        re.compile(
            rf"\[valid\] Ep\. (?P<epoch>\d{{1,6}}) : Up\. (?P<step>\d{{1,12}}) : "
            rf"(?:(?:cross-entropy|ce-mean(?:-words)?) : (?P<eval_loss>{NUMBER}))?"
        ),
    ),
    (
        "Up. ",
        re.compile(
            rf"\bEp\. (?P<epoch>\d{{1,6}}) : Up\. (?P<step>\d{{1,12}}) :.{{0,60}}\bCost (?P<loss>{NUMBER})"
            rf"(?:.{{0,120}}?(?P<tokens_per_s>[\d.]{{1,16}}) words/s)?"
            rf"(?:.{{0,20}}?\bgNorm (?P<grad_norm>{NUMBER}))?(?:.{{0,60}}?\bL\.r\. (?P<lr>{NUMBER}))?"
        ),
    ),
    (
        "iter, ",
        re.compile(r"^\s*(?P<step>\d{1,12}) iter, (?P<epoch>\d{1,9}) epoch / (?P<epochs>\d{1,9}) epochs\s*$"),
    ),  # Chainer
    (
        " rate, ",  # Darknet
        re.compile(
            rf"^\s*(?P<step>\d{{1,12}}): [\d.]{{1,20}}, (?P<loss>{NUMBER}) avg(?: loss)?, "
            rf"(?P<lr>{NUMBER}) rate, "
        ),
    ),
    (
        "Train loss ",  # Tacotron 2
        re.compile(
            rf"\bTrain loss (?P<step>\d{{1,12}}) (?P<loss>{NUMBER}) Grad Norm (?P<grad_norm>{NUMBER})"
        ),
    ),
    (
        "Validation loss ",
        re.compile(rf"\bValidation loss (?P<step>\d{{1,12}}): +(?P<eval_loss>{NUMBER})\s*$"),
    ),
    (
        "Cost after ",
        re.compile(
            r"^\s*Cost after (?:iteration (?P<step>\d{1,12})|epoch (?P<epoch>\d{1,9})): "
            rf"(?P<loss>{NUMBER})"
        ),
    ),
    ("Test net output", re.compile(rf"\bTest net output #\d+: loss = (?P<eval_loss>{NUMBER})")),  # Caffe
    (
        "time_left",  # ParlAI: the run's totals so far
        re.compile(
            r"\btotal_steps[:=] ?(?P<step>\d{1,12})(?:,? epochs?[:=] ?(?P<epoch>\d{1,9}(?:\.\d{1,12})?))?"
            r"(?=,?\s).{0,40}\btime_left\b"
        ),
    ),
    ("Score at iteration ", re.compile(rf"\bScore at iteration (?P<step>\d{{1,12}}) is (?P<loss>{NUMBER})")),
    ("Learning rate set to ", re.compile(rf"^Learning rate set to (?P<lr>{NUMBER})\s*$")),  # CatBoost
    ("CurSamplesPerSec=", re.compile(rf"\|CurSamplesPerSec=(?P<samples_per_s>{NUMBER})")),
    # PyTorch's tutorials
    ("LOSS train ", re.compile(rf"^LOSS train (?P<loss>{NUMBER}) valid (?P<eval_loss>{NUMBER})\s*$")),
    ("Avg loss: ", re.compile(rf"^ ?Accuracy: [\d.]{{1,8}}%, Avg loss: (?P<eval_loss>{NUMBER})\s*$")),
    # Coqui TTS
    (
        "raining loss for ",
        re.compile(rf"^The training loss for [Ee]poch (?P<epoch>\d{{1,6}}) is (?P<loss>{NUMBER})\s*$"),
    ),
    ("he valid", re.compile(r"^The valid(?:ation)? loss is (?P<eval_loss>\d{1,6}\.\d{3,12})\s*$")),
    (
        "loss for step ",
        re.compile(
            r"^\s*validation loss for step (?P<step>\d{1,12})(?:, set [\w.-]{1,40})?: "
            rf"(?P<eval_loss>{NUMBER})\s*$"
        ),
    ),
    (
        "CV Batch ",  # WeNet: the mean so far
        re.compile(
            rf"\bCV Batch (?P<epoch>\d{{1,6}})/\d{{1,9}} loss .{{1,120}} "
            rf"history loss (?P<eval_loss>{NUMBER}) "
        ),
    ),
    ("d training epoch ", re.compile(r"\bFinished training epoch (?P<epoch>\d{1,6}) on \d{1,12} examples\b")),
    (
        " epoch training ",
        re.compile(r"\(Steps: (?P<step>\d{1,12})\) Finished (?P<epoch>\d{1,6}) epoch training \("),
    ),
    ("oing into epoch ", re.compile(r"(?:^|- )Going into epoch (?P<epoch>\d{1,6})\s*$")),
    ("num timesteps ", re.compile(r"^Updates (?P<step>\d{1,12}), num timesteps \d{1,12}, FPS \d")),
    (
        "[Train](",
        re.compile(
            r"\[Train\]\((?P<step>\d{1,12})/(?P<total>\d{1,12})\) average (?!\w*loss)[a-z]{1,30}: [\d.]"
        ),
    ),
    # Sockeye
    (
        "] Checkpoint [",
        re.compile(r"\] Checkpoint \[\d{1,9}\]\tUpdates=(?P<step>\d{1,12}) Epoch=(?P<epoch>\d{1,6}) "),
    ),
    (
        " tok/sec=",
        re.compile(
            r"\bE=(?P<epoch>\d{1,6}) B=(?P<step>\d{1,12})\ts/sec=[\d.]{1,16} "
            rf"tok/sec=(?P<tokens_per_s>{NUMBER})\s"
        ),
    ),
    # Rates beside nothing else that we read
    ("hroughput: ", re.compile(rf"\bThroughput: (?P<samples_per_s>{NUMBER}) samples/sec, TFLOPS per GPU\b")),
    ("in throughput=", re.compile(rf"\btrain throughput=(?P<samples_per_s>{NUMBER}) records/second\s*$")),
    (
        "images/sec: ",  # TensorFlow's benchmarks
        re.compile(
            rf"^(?P<step>\d{{1,12}})\timages/sec: (?P<samples_per_s>{NUMBER}) \+/- [\d.]{{1,16}} "
            rf"\(jitter = [\d.]{{1,16}}\)(?:\t(?P<loss>{NUMBER}))?"
        ),
    ),
    (
        " (Training) ",
        re.compile(rf"^\s*- \(Training\) +ppl: .{{1,80}}, lr: {{1,4}}(?P<lr>{NUMBER}), elapse: "),
    ),
    ("GLOBAL_STEP", re.compile(r"--> STEP: \d{1,9}/\d{1,9} -- GLOBAL_STEP: (?P<step>\d{1,12})\s*$")),
)


def read_own_format(text: str) -> ParsedMetrics | None:
    """Parse lines that a single expression can read."""
    for hint, expression in _FORMATS:
        match = expression.search(text) if hint in text else None
        if match is not None:
            return from_groups(match.groupdict())
    return None


_BAR = re.compile(
    r"^\s*(?P<done>\d+)/(?P<total>\d+|Unknown) "
    r"(?:[━\u2500-\u257f ]{2,}|\[[=>.]+\]|- \d+s |\d+s (?=\d+[mu]?s/step))(?P<rest>.*)$"
)
_QUIET = re.compile(
    r"^ ?(?:- )?\d+m?s (?:\d+[mu]?s/(?:step|epoch|sample) (?=- )|(?=- (?:loss|acc(?:uracy)?): ))(?P<rest>.*)$"
)  # verbose=2, and TensorFlow.js with equals signs
_KERAS_ITEM = re.compile(rf"(?:- |(?<= ))([a-z_]{{1,40}})(?:: {{1,2}}|=)({NUMBER})")
_STEP_TIME = re.compile(r"(?P<value>\d{1,9}+(?:\.\d{1,9}+)?+)(?P<unit>us|ms|s)/(?:step|epoch)\b")
_UNIT_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def read_keras(text: str) -> ParsedMetrics | None:
    """Keras: bars that count within the epoch, which is named on an earlier line."""
    bar = _BAR.match(text) if "/" in text else None
    if bar is None:
        quiet = _QUIET.match(text) if " - " in text and "loss" in text else None
        if quiet is None:
            return None
        told = from_values(dict(_KERAS_ITEM.findall(quiet["rest"])))
        return None if told == ParsedMetrics() else told
    told = from_values(dict(_KERAS_ITEM.findall(bar["rest"])))
    done, total = to_step(bar["done"]), to_step(bar["total"])
    if told.loss is None or done is None:
        return None
    speed = _STEP_TIME.search(bar["rest"])
    return ParsedMetrics(
        epoch_step=done,
        epoch_steps=total,
        loss=told.loss,
        eval_loss=told.eval_loss,
        learning_rate=told.learning_rate,
        step_time_s=float(speed["value"]) * _UNIT_S[speed["unit"]] if speed else None,
    )


_BOOSTING = re.compile(
    r"^\s*(?:\[[\d:]{8}\] |\[LightGBM\] \[Info\] )?\[(?P<round>\d{1,9})\](?:[\s:]|#011)\s*"
    r"(?=[\w'-]*(?:train|valid|eval|test))"
)
_SCORE = re.compile(
    rf"(?P<data>train|training|valid|validation|eval|test)(?:_set)?(?:_?\d{{1,2}})?(?:'s)?[ _:-]{{1,2}}"
    rf"(?:[a-z]{{1,12}}_)?(?:m?log_?loss|rmse|mae|l1|l2|error|merror|mphe|quantile|huber)\s?:\s?(?P<value>{NUMBER})"
)


def read_boosting(text: str) -> ParsedMetrics | None:
    """XGBoost and LightGBM: a round with the score on each set of data."""
    match = _BOOSTING.match(text) if text.lstrip().startswith("[") else None
    if match is None:
        return None
    scores: dict[str, Any] = {}
    for score in _SCORE.finditer(text, match.end()):
        is_training = score["data"].startswith("train")
        scores.setdefault("loss" if is_training else "eval_loss", to_float(score["value"]))
    return ParsedMetrics(step=to_step(match["round"]), **scores) if scores else None


_NEMO = re.compile(r"\bTraining epoch (\d+), iteration (\d+)/(\d+)\b")


def read_nemo(text: str) -> ParsedMetrics | None:
    """Parse a training line. NeMo counts from zero and prints the index of the last iteration."""
    match = _NEMO.search(text) if "Training epoch" in text else None
    if match is None:
        return None
    told = plain.read(f"step {match[2]} | {text[match.end() :]}")
    if told is None:
        return None
    return replace(told, step=int(match[2]) + 1, total_steps=int(match[3]) + 1, epoch=float(match[1]))


_START = re.compile(r"\bTraining starts at step (\d+)\b.{0,400}?\b(?:total steps (\d+)|(\d+) steps)\b")


def read_torchtitan_start(text: str) -> ParsedMetrics | None:
    start = _START.search(text) if "Training starts" in text else None
    if start is None:
        return None
    first, total = to_step(start[1]), to_step(start[2] or start[3])
    return ParsedMetrics(step=max(0, first - 1), total_steps=total) if first is not None and total else None


_TOTAL = re.compile(
    # RSL-RL prints the environment's steps so far in a column, indented.
    r"\b(?<! {8})(?:total (?:optimi[sz]ation|training|train)[ _]steps|total steps)"
    r"(?: ?[=:] ?| )(\d[\d,]{0,14})\b",
    re.IGNORECASE,
)


def read_announced_total(text: str) -> ParsedMetrics | None:
    """Read the total number of steps as Transformers, Unsloth, TRL and verl announce it."""
    match = _TOTAL.search(text) if "otal" in text else None
    total = to_step(match[1]) if match is not None else None
    return ParsedMetrics(total_steps=total) if total else None
