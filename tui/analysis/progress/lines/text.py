"""Plain lines: ``step 120/4800 | loss 2.31 | lr 1e-4``, whatever the trainer.

A line is read as a whole: what it counts (``counts``), what it measures (``values``), and its kind. A report
has a count and a measure; a line that evaluates gives an evaluation's loss; settings, sentences, code, errors
and sampled text give nothing.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from tui.analysis.progress.lines.alone import measure, read_alone
from tui.analysis.progress.lines.counts import Counts, find_counts, find_epoch
from tui.analysis.progress.lines.kinds import (
    SAMPLED,
    SETTING,
    SETTINGS,
    LineKind,
    is_log_report,
    is_pairs,
    kind_of,
    may_evaluate,
    report_values,
)
from tui.analysis.progress.lines.reading import NUMBER, ParsedMetrics, to_float
from tui.analysis.progress.lines.values import find_slots, read_values, split_numbers
from tui.analysis.progress.lines.vocabulary import SECTION, word_set

_BOTH = r"train(?:ing)?(?:, ?| ?/ ?| and | & )(?:val(?:id(?:ation)?)?|test|dev|eval)"
_BOTH_LOSSES = re.compile(  # "train/val loss: 0.4/0.5"
    rf"\b(?:{_BOTH}\)? loss(?:es)?|loss(?:es)? ?\(?{_BOTH}\)?)\s?[:=]?\s?"
    rf"(?P<loss>{NUMBER.lower()})(?:\s?[/,|]\s?|\s)(?P<eval_loss>{NUMBER.lower()})"
)
_LOSS_PAIR = re.compile(  # "loss: train=0.4, val=0.5"
    rf"\bloss(?:es)?\s?[:(|-]?\s?train(?:ing)?\s?[=:]?\s?(?P<loss>{NUMBER.lower()})[\s,|/]{{1,4}}"
    rf"(?:val(?:id(?:ation)?)?|test|dev)\s?[=:]?\s?(?P<eval_loss>{NUMBER.lower()})"
)
_SECTIONS = re.compile(  # "[train] loss=0.4, [valid] loss=0.5", "train | loss 0.4 | val | loss 0.5"
    r"\btrain(?:ing)?\]?\s?[:|,\]-]?\s(?:(?!loss).){0,300}+loss.{1,200}?"
    rf"(?P<second>(?:[|;,/]\s?|\s{{1,2}}|- )\[?{SECTION}\]?(?:\s?[:|\]]| -)\s?)"
    r"(?=.{0,300}?loss)"
)
_EVALUATION_ALONE = re.compile(
    r"^.{0,80}?(?<![\w./=-])(?:(?:valid(?:ation)?|val|eval(?:uation)?|dev|test|held-?out)(?:\.? |_)loss"
    r"|test (?:set|error): (?:average|avg) loss|test set results: loss"
    r"|(?:validating|evaluating) ?\.{3} ?loss|(?:dev|valid|val|test)\s{1,3}: loss(?= \d)"
    r"|(?:validation|valid|val|evaluation|eval)(?: metrics| results?)?(?::| -) ?(?:avg |average |mean )?loss"
    r"|\[(?:valid|val|eval|test|dev)\] loss)"
    rf"(?: {{0,40}}[=:]\s{{0,9}}| )(?P<value>{NUMBER.lower()})(?:$|[,;|.]? )"
)
_TRAINING_ALONE = re.compile(
    r"[\s*>]{0,12}(?:average |avg\.? |mean )?train(?:ing)?(?: epoch| metrics:| -|:)?[ _]loss"
    rf"(?: ?[=:]\s{{0,8}}|\s{{1,8}}(?=-?[\d.]+(?: ?$|\s+(?:\||(?:(?:test|val|valid|dev)[ _])?(?:acc|loss)))))"
    rf"(?P<value>{NUMBER.lower()})"
    r"(?:$|[,;.]?\s(?!\|)|\s{1,4}\|[^|]{1,40}[:=])"
)
_EVALUATION_BESIDE = re.compile(
    r"[\s|,;(](?:val(?:id(?:ation)?)?|eval(?:uation)?|test|dev)\.?[ _]loss ?[=:] ?"
    rf"(?P<value>{NUMBER.lower()})(?:$|[,;|)]|\s)"
)
_EVALUATION_SUMMARY = re.compile(
    r"(?:\bvalidation loss|^\s*(?:validation|evaluation): .{0,120}\btot(?:al)? loss): "
    rf"(?P<value>{NUMBER.lower()})"
)
_GROUP_RATE = re.compile(
    r"(?<![\w.])lr_(?!decay|step|min|max|mult|scale|gamma|ratio|factor|warm|init|end)([a-z]{2,16})\s?[:=]\s?"
    rf"({NUMBER})(?=[,;|\s]|$)"
)
_ASSIGNMENT = re.compile(r"(?:[A-Za-z]?[a-z]{1,20}: )?\s*\w+ ?= ?\S+\s*$")  # code, or quoted in a chat
_ITERATION_HEADING = re.compile(r"^\s*(?:#+ )?learning iteration \d{1,12}/\d{1,12}(?:\s+#*)?\s*$")  # RSL-RL
_MONITORED = re.compile(
    r"\bepoch \d{1,9}, global step \d{1,12}: '?[\w./-]{1,60}'? (?:reached|was not in top)\b"
)
_OF_EVALUATION = re.compile(  # "Eval Epoch: 3 [512/5000]": a count of what is evaluated
    r"(?<![a-z])(?:eval(?:uat(?:e|ion|ing))?|val(?:id(?:at(?:e|ion|ing))?)?|test(?:ing)?|dev)"
    r"[\])]?[ :|-]{1,3}epoch\b"
)
_SCORE = re.compile(
    r"(?<![a-z])(?:acc(?:uracy)?|m?ap|m?iou|f1|auc|bleu|wer|cer|psnr|ssim|dice|top-?[15]|ppl|perplexity|recall"
    r"|precision|r@\d{1,4}|score)(?:@\d{1,4})?>?(?:\s?[:=]\s?\(?|\s)\d"
)
_COUNT_AND_RATES = re.compile(  # "step 200: 3.1 steps/sec, 99.2 examples/sec": nothing else
    r"\b(?:step|iter(?:ation)?|batch)\s?[:=#]?\s{0,8}\d[\d,]{0,14}\s{0,4}[:,|-]?"
    r"(?:[\s,|]{1,4}[\d.,]{1,16} ?(?:it|(?:step|iter|batche|example|sample|image|img|sequence|seq)s?)"
    r"/s(?:ec(?:ond)?)?){1,3}(?: ?(?:per |/)gpu)?\W*$"
)
_RATE_ALONE = re.compile(  # of an Estimator
    r"(?:\w{4,8}:\w{1,24}:|.{0,80}\.py:\d{1,6}\] )?(?:examples|samples)/sec: "
    rf"(?P<rate>{NUMBER.lower()})\s*$"
)
_EARLIER = re.compile(r"\b(?:best|max|highest|lowest|previous|improved|early|target|threshold)")
_NAMED_NUMBER = re.compile(r"[a-z)] ?[:=] ?\d")
_LONGEST_ALONE = 160
_LONGEST_BARE = 400
_LONGEST_SECTIONS = 1000
_MANY = 20
_MANY_STEPS = 100
_OTHER_LOSS = re.compile(r"\b(?:packets?|jitter|latency|rtt|ping|stop|profit|price|normalizer)\b")
_LOSS_NAME = re.compile(r"(?<!\w)(?!val|eval|test|dev)[\w/]{0,80}?loss[\w/]*")
_WHOLE_LOSSES = word_set("loss total_loss train_loss avg_loss mean_loss loss/total total/loss train/loss")
_EVALUATED = re.compile(
    r"(?<![a-z])(?:eval(?:uati(?:on|ng))?|val|valid(?:ation)?|test(?:ing)?|dev|held-?out)\b"
    r"(?![ /.]?(?:loss|acc|ppl))"
)
_OWN_RATE = re.compile(r"\d ?/s\b")  # of what it counts, whatever that is
_BESIDE = re.compile(
    r"(?<![a-z])(?:acc(?:uracy)?|top-?1|ppl|perplexity|f1|auc|bleu|wer|cer|psnr|m?iou|dice|eta|elapsed|remaining"
    r"|speed|grad|reward|return|kl|mae|rmse|metric|updates/s|it/s)\b"
    r"[\w/@ .()-]{0,16}[:=]?\s{0,4}(?:tensor\()?\d"
)
_LOGGER = re.compile(  # a time, brackets, a level, a module, a number
    r"(?>\[?\d{2,4}[-/:][\d:.,t/+z -]{5,32}\]?|\[[^\]]{1,80}\]|(?:info|debug|root)\b:?"
    r"|[a-z_]\w{0,60}+(?:\.\w{1,60}+)++|\d{1,9}: |\d{1,4} (?=train)|[a-z]?\d{1,7} (?=info)|[-:|>\s]){0,16}+"
)
_SAMPLES = re.compile(
    rf"^loss: (?P<loss>{NUMBER}) {{1,4}}\[ *\d{{1,12}}/ *\d{{1,12}}\]\s*$"
)  # PyTorch tutorials
_BATCH_SIZE = re.compile(r"\bglobal batch size: {1,8}(?P<size>\d{1,9}) ")  # Megatron-LM
_BOX = re.compile(r"^\s*[│┃║]")


def read(text: str) -> ParsedMetrics | None:
    """Parse a line of text; ``None`` if it reports no progress."""
    if len(text) < _LONGEST_ALONE:
        alone = read_alone(text)
        if alone is not None:
            return alone
    text = text.partition("{'")[0]
    if _BOX.match(text):
        return None
    lowered = text.lower()
    both = len(text) < _LONGEST_SECTIONS and "train" in lowered and 1 < lowered.count("loss") < _MANY
    sections = _SECTIONS.search(lowered) if both else None
    if sections is not None:
        return _read_both(text, sections.start("second"))
    counts = find_counts(text, lowered)
    if counts is None:
        return _without_count(text, lowered)
    if "learning iteration" in lowered and _ITERATION_HEADING.match(lowered):
        return ParsedMetrics(step=counts.step, total_steps=counts.total)
    texts, numbers = split_numbers(text)
    kind = kind_of(texts)
    if kind.within_evaluation:
        return measure({"epoch": find_epoch(lowered)})
    if not kind.is_report:
        return _monitored(counts, lowered)
    if kind.evaluates and counts.within is not None and _OF_EVALUATION.search(lowered):
        counts = Counts(epoch=find_epoch(lowered))
    known: dict[str, Any] = dict(read_values(kind.slots, numbers))
    known |= _both(lowered)
    if "lr_" in lowered and "learning_rate" not in known:
        known |= _same_rates(lowered)
    if not known.keys() - {"epoch"}:
        return _monitored(counts, lowered) or _count_alone(counts, kind, lowered)
    if "smoothl1" in lowered and "loss" not in lowered:
        known.pop("loss", None)  # the parts of one
    if kind.evaluates and "loss" in known and "eval_loss" not in known:
        known["eval_loss"] = known.pop("loss")
    if "eval_loss" in known and "loss" not in known:
        # An evaluation's speed is not the run's.
        known = {name: value for name, value in known.items() if name in ("eval_loss", "learning_rate")}
    elif kind.evaluates and "epoch" in lowered:
        return None
    if "samples_per_s" not in known and known.get("step_time_s", 0) > 0 and "global batch size" in lowered:
        batch = _BATCH_SIZE.search(lowered)
        if batch is not None:
            known["samples_per_s"] = int(batch["size"]) / known["step_time_s"]
    if kind.evaluates and "epoch" in lowered and " steps: " in lowered:
        counts = replace(counts, step=None)  # the evaluation's
    if counts.step is None and counts.within is None:
        known.pop("step_time_s", None)  # the epoch's
        if "frames" in lowered or _EVALUATED.search(lowered):
            known.pop("samples_per_s", None)
    known |= {name: value for name, value in counts.fields().items() if value is not None}
    reading = ParsedMetrics(**known)
    # A scheduler's configuration has a step and a learning rate, but no "120/4800".
    scheduled = counts.step is not None and counts.total and "learning_rate" in known
    if scheduled or is_training_metrics(reading):
        return reading
    if reading.step is not None and "samples_per_s" in known and _COUNT_AND_RATES.search(lowered):
        return reading
    if kind.counts_first and "learning_rate" in known:
        return reading
    return _count_alone(counts, kind, lowered)


def _same_rates(lowered: str) -> dict[str, float | None]:
    """Read the learning rate that several groups share: ``lr_encoder: 0.1, lr_decoder: 0.1``."""
    rates = dict(_GROUP_RATE.findall(lowered))
    same = len(rates) > 1 and len(set(rates.values())) == 1
    return {"learning_rate": to_float(rates.popitem()[1])} if same else {}


def _both(lowered: str) -> dict[str, Any]:
    both = (
        (_BOTH_LOSSES.search(lowered) or _LOSS_PAIR.search(lowered))
        if "train" in lowered and may_evaluate(lowered)
        else None
    )
    return {} if both is None else {name: to_float(value) for name, value in both.groupdict().items()}


def _bare(text: str, lowered: str) -> ParsedMetrics | None:
    """Read a loss beside another measure of training, or a learning rate beside a speed, without a count."""
    texts, numbers = split_numbers(text)
    kind = kind_of(texts)
    if not kind.is_report or (SETTING.search(lowered) and "averaged stats:" not in lowered):
        return None
    known: dict[str, Any] = dict(read_values(kind.slots, numbers))
    if both := _both(lowered):
        return ParsedMetrics(**both)
    names = set(_LOSS_NAME.findall(lowered))
    if "loss" in known and not names & _WHOLE_LOSSES and len(names) > 1:
        del known["loss"]  # the parts of one
    if kind.evaluates and "loss" in known:
        known = {"eval_loss": known["loss"]}
    elif "loss" in known and _EVALUATED.search(lowered):
        return None
    if "grad" not in lowered and "gnorm" not in lowered:
        known.pop("grad_norm", None)
    if "/s" in lowered and _OWN_RATE.search(lowered):
        known.pop("samples_per_s", None)
    losses = [known[name] for name in ("loss", "eval_loss") if name in known]
    if any(loss.is_integer() for loss in losses) or _OTHER_LOSS.search(lowered):
        return None
    measured = known.keys() & {
        "loss",
        "eval_loss",
        "learning_rate",
        "grad_norm",
        "tokens_per_s",
        "samples_per_s",
    }
    if len(measured) > 1 or (losses and (_BESIDE.search(lowered) or is_pairs(lowered))):
        return ParsedMetrics(**known)
    return None


def _read_both(text: str, cut: int) -> ParsedMetrics | None:
    """Parse a line with the means of an epoch in two sections: ``[train] loss=0.4, [valid] loss=0.5``."""
    reading = read(text[:cut]) or measure({"loss": report_values(text[:cut]).get("loss")})
    texts, numbers = split_numbers(text[cut:])
    evaluated = read_values(find_slots(texts), numbers).get("loss")
    return None if reading is None else replace(reading, eval_loss=evaluated)


def _monitored(counts: Counts, lowered: str) -> ParsedMetrics | None:
    """Parse Lightning's message about the score that it monitors: the line counts, whatever the score is."""
    if ", global step " not in lowered or _MONITORED.search(lowered) is None:
        return None
    return ParsedMetrics(step=counts.step, epoch=counts.epoch)


def _count_alone(counts: Counts, kind: LineKind, lowered: str) -> ParsedMetrics | None:
    """Return the count of a line whose measures are none of ours: a reward, an accuracy, the time left."""
    if kind.counts_first and not kind.evaluates:
        return ParsedMetrics(**counts.fields())
    if (
        counts.within is not None
        and (counts.epochs or "time" in lowered)
        and counts.within[0] <= counts.within[1]
    ):
        return ParsedMetrics(**counts.fields())
    if counts.step is None and counts.epochs and len(_NAMED_NUMBER.findall(lowered)) > 1:
        return ParsedMetrics(**counts.fields())  # rl_games
    if (
        counts.step is None
        and may_evaluate(lowered)
        and _SCORE.search(lowered, max(0, lowered.find("epoch")))
    ):
        return None if _EARLIER.search(lowered) else measure({"epoch": counts.epoch})
    if counts.step is None or (counts.total and counts.step > counts.total):
        return None
    rewarded = kind.has_reward and (counts.total or "global_step=" in lowered)
    if (
        rewarded
        or kind.has_measure
        or "step time" in lowered
        or (counts.step >= _MANY_STEPS and ("time elapsed: " in lowered or "elapsed time: " in lowered))
        or ("wall time" in lowered and "eta" in lowered)
        or (counts.total and (kind.under_way or kind.has_part))
    ):
        return ParsedMetrics(step=counts.step, total_steps=counts.total)
    return None


def is_training_metrics(reading: ParsedMetrics) -> bool:
    """Return True if the reading is about training: a loss, or a step with a measure.

    A step and a learning rate are not enough, because a scheduler's configuration has both. A step's
    duration is enough if the line has the total number of steps.
    """
    if reading.loss is not None or reading.eval_loss is not None:
        return reading.step is not None or reading.epoch is not None or reading.epoch_step is not None
    timed = reading.step_time_s if reading.total_steps or reading.learning_rate is not None else None
    # A game counts frames per second, and a service its items.
    trains = reading.total_steps or reading.epoch is not None or reading.learning_rate is not None
    samples = reading.samples_per_s if trains else None
    # A solver's iterations have a gradient's norm too, but no learning rate and no end.
    norm = reading.grad_norm if reading.total_steps or reading.learning_rate is not None else None
    measured = (norm, reading.tokens_per_s, samples, timed)
    if reading.step is None:
        return reading.epoch is not None and (reading.tokens_per_s or samples) is not None
    return any(value is not None for value in measured)


def _without_count(text: str, lowered: str) -> ParsedMetrics | None:
    if text.startswith("loss: "):
        samples = _SAMPLES.match(text)
        return None if samples is None else ParsedMetrics(loss=to_float(samples["loss"]))
    if len(text) < _LONGEST_BARE and ("loss" in lowered or "lr" in lowered):
        told = _bare(text, lowered)
        if told is not None:
            return told
    if "s/sec: " in lowered and (rate := _RATE_ALONE.match(lowered)) is not None:
        return ParsedMetrics(samples_per_s=to_float(rate["rate"]))
    # "loss 0.38, train acc 0.86, test acc 0.84"; "Episode: 12, reward: 41.0, loss: 0.412"
    if lowered.startswith(("loss", "episode", "ep ")) and ("train" in lowered or "reward" in lowered):
        return measure({"loss": report_values(text).get("loss")})
    bare = _LOGGER.sub("", lowered, count=1) if "train" in lowered else lowered
    if bare.lstrip(" \t*>").startswith(("train", "average train", "avg", "mean train")):
        alone = _TRAINING_ALONE.match(bare)
        if alone is None or _ASSIGNMENT.match(text) or not is_log_report(text, marked=False):
            return None
        beside = _EVALUATION_BESIDE.search(bare, alone.end("value"))
        evaluated = None if beside is None else to_float(beside["value"])
        return ParsedMetrics(loss=to_float(alone["value"]), eval_loss=evaluated)
    if "loss" not in lowered or not may_evaluate(lowered):
        return None
    alone = _EVALUATION_ALONE.match(lowered) if lowered.count("loss") == 1 else None
    alone = alone or _EVALUATION_SUMMARY.search(lowered)
    if alone is None or SAMPLED.search(lowered) or SETTINGS.search(text) or _ASSIGNMENT.match(text):
        return None
    value = to_float(alone["value"]) if is_log_report(text, marked=False) else None
    return None if not value or value.is_integer() else ParsedMetrics(eval_loss=value)  # val_loss = 0 is code
