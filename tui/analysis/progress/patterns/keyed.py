"""Lines with named values, such as ``step 120 loss 2.31``; the most general family.

Lines that mention a step and a loss but do not report them (prose, code, errors, commands) are rejected.
"""

from __future__ import annotations

import re
from typing import Any

from tui.analysis.progress.patterns.reading import (
    NUMBER,
    ParsedMetrics,
    found_in,
    is_training_metrics,
    to_float,
    to_step,
)

# Rejected by how the line begins: a shell trace, an assignment, a build log, a stack …
_NO_BEGINNING = re.compile(
    r"\s*(?:[+$%>#] ?(?=[\w.])|#\d+ |export |set |usage:|file \"|frame #|raise |assert |e   |-{1,2}\w"
    r"|\w+ = \S{1,40}; ?\w+ = )"
)
# … an exception by name, a call with a string argument, flags of a command …
_EXCEPTION = re.compile(r"\b[A-Z][a-z]\w{0,60}(?:Error|Exception|Warning)\b")
_CALL = re.compile(r"\w\(f?[\"']")
_FLAG = re.compile(r"\s--[a-z][\w-]{1,40}[= ]")
# … or a verb about a step other than completing it.
_ROLLED_BACK = re.compile(r"\broll(?:ed|ing) back\b")
_WORD = re.compile(r"\w+")
_NON_REPORT_VERBS = frozenset(
    _WORD.findall(
        "loaded loading resumed resuming restored restoring retry retrying waited waiting reverted reverting"
        " rewound expect expected expecting recommend recommended goal"
    )
)
_SENTENCE_WORDS = frozenset(
    _WORD.findall(
        "the was were are should has had have we you your that which because still so reach reached than but"
        " got not if when could would must will see only this be until due normal below above differ differs"
    )
)
_IS_OR_OF = re.compile(r"\b(?:(?<!loss )is|(?<!\d )of)\b")


def is_log_report(text: str, *, marked: bool) -> bool:
    """Return True if a line with a step and a value reports them.

    ``marked``: an equals sign or a colon separates a name from its value, as in no sentence. Without one,
    words typical of sentences make the line prose.
    """
    lowered = text.lower()
    words = frozenset(_WORD.findall(lowered))
    if (
        not words.isdisjoint(_NON_REPORT_VERBS)
        or lowered.rstrip().endswith("?")
        or _NO_BEGINNING.match(lowered)
    ):
        return False
    if ("Error" in text or "Exception" in text or "Warning" in text) and _EXCEPTION.search(text):
        return False
    if ("(" in text and _CALL.search(lowered)) or ("--" in text and _FLAG.search(lowered)):
        return False
    if "back" in words and _ROLLED_BACK.search(lowered):
        return False
    return marked or (words.isdisjoint(_SENTENCE_WORDS) and _IS_OR_OF.search(lowered) is None)


# These match lowercase text, which is several times faster than ignoring case. A pattern that begins with a
# lookbehind first checks its possible first characters, so that the lookbehind runs nowhere else.
_LOWER_NUMBER = NUMBER.lower()
_STEP = re.compile(
    r"(?=[gtsibnu])(?<![\w./?&-])(?<!max )(?<!num )(?<!total )(?<!warmup )(?<!every )"
    r"(?:global[ _]step|train(?:ing)?[ _]step|steps?|iteration|iter|it|batch"
    r"|num[ _]updates|updates?)"
    r"\s{0,8}[=:#]?\s{0,8}[\[(]?\s{0,8}(?P<step>\d[\d,]{0,14})(?:\s{0,8}(?:/|of)\s{0,8}(?P<total>\d[\d,]{0,14}))?(?![\w.]*\w)"
)
_EPOCH = re.compile(
    r"(?=[te])(?<![\w./-])(?:train )?epoch\s{0,8}[=:#]?\s{0,8}[\[(]?\s{0,8}(?P<epoch>\d{1,9}(?:\.\d{1,12})?)"
    r"(?:\s{0,8}(?:/|of)\s{0,8}(?P<epochs>\d{1,9}))?(?![\w]*\w)"
)
_RATE_NAME = r"tok(?:en)?s?/s(?:ec)?(?:/(?:gpu|device))?|samples/s(?:ec)?|examples/s(?:ec)?"
_VALUE = re.compile(
    r"(?=[a-z])(?<![\w./?&-])(?:(?:train(?:ing)?|optim|perf|throughput|metrics)/(?!loss))?(?P<name>"
    r"(?:train(?:ing)?|eval(?:uation)?|val(?:idation)?|valid|test|dev|lm|total|avg|mean|running|step|batch"
    r"|policy|actor|ce|nll|gpt|sft|distill|reward"
    # Other losses, listed so that they are not mistaken for the training loss.
    r"|critic|value|vf|aux|kl|reg|unsupervised|entropy|router|balanc\w{1,8}|mtp|cls|bbox|best|min|max|last"
    r"|packet|target|reference|previous|initial"
    r")[ _/]loss(?:_mean)?|loss[ _](?:train|val)|loss"
    r"|(?:train/|optim/)?(?:learning[ _]rate|lr|grad(?:ient)?[ _-]?norm)|gnorm|norm"
    rf"|{_RATE_NAME}|tokens_per_s(?:ec(?:ond)?)?(?:_per_gpu)?|tps|samples_per_s(?:ec(?:ond)?)?"
    r"|step_time(?:_s|_ms)?|step_avg|iter_time_ms|sec/step|s/step|dt|time(?=\s{0,2}[=:]?\s{0,8}\d[\d.]{0,12}\s?ms))"
    r"\s{0,8}(?P<mark>[=:]|(?<=loss )is )?\s{0,8}(?:np\.float\d+\(|tensor\()?(?P<value>"
    + _LOWER_NUMBER
    + r")(?P<unit>ms|[skm])?(?![\w.]*[a-z_]| ?%)"
)
_RATE_AFTER = re.compile(
    rf"(?<![\w.])(?P<value>{_LOWER_NUMBER})(?P<unit>[km])? ?(?P<name>{_RATE_NAME})\b(?!\s?[=:])"
)
_REWARD = re.compile(
    rf"\b(?:mean|average|avg)?[ _]?(?:reward|return)s?(?:/mean)?\s?[:=]\s{{0,4}}{_LOWER_NUMBER}"
)
_TIMES_IN_SECONDS = ("step_time", "step_time_s", "step_avg", "time")
_ABOUT_EVALUATION = re.compile(
    # Headings that tell which loss it is: "| valid |", "[Eval] step 40", "Validation: epoch 3".
    r"(?:^|[|>] ?|- |[\[(]|(?<=[a-z]: ))(?:valid(?:ation)?|val|eval(?:uation)?|test)"
    r"(?: ?[\]):|]| - | set\b| on '[\w.-]{1,40}' subset| (?=(?:at )?(?:global[ _])?(?:step|epoch|iter)))"
)
# fairseq's, in the middle of a validation
_WITHIN_VALIDATION = re.compile(r"\bvalid on '[\w.-]{1,40}' subset:?\s{1,8}\d+ / \d+ ")
_EVALUATION_HEADING = re.compile(
    r"^.{0,80}?(?<![\w./=-])(?:(?:valid(?:ation)?|val|eval(?:uation)?)[ _]loss|test set: average loss)"
    rf" ?[=:] ?(?P<value>{_LOWER_NUMBER})(?:$|, accuracy)"
)
_THOUSANDS = {"k": 1e3, "m": 1e6}
_BRACKETS = re.compile(r"(?:^|\s)\[\s{0,8}(?P<step>\d{1,12})\s?/\s{0,8}(?P<total>\d{1,12})\](?=\s|:)")
_SETTINGS = re.compile(
    r"\b\w*(?:Namespace|Config|Arguments|Args|Params|Settings|Scheduler|LR|Optimizer|AdamW?)\("
)
_BATCH_OF_EPOCH = re.compile(
    # OpenMMLab: Epoch(train) [2][ 50/1000]
    r"\bEpoch\s?(?:\(train\))?\s*\[\s*(?P<epoch>\d{1,9})\]\s*\[\s*(?P<done>\d{1,12})/(?P<total>\d{1,12})\]"
    r"|\bTrain: (?P<epoch2>\d{1,9}) \[\s*(?P<done2>\d{1,12})/(?P<total2>\d{1,12})\b"  # timm
)
_ITER_OF_RUN = re.compile(r"\bIter\s?\(train\) *\[\s*(?P<done>\d{1,12})/(?P<total>\d{1,12})\]")
_WITHIN = re.compile(r"(?<![a-z])batch\b[^|,]{0,12}\d")
_MNIST = re.compile(r"\bTrain Epoch: (?P<epoch>\d+) \[(?P<done>\d+)/(?P<total>\d+) \(\d+%\)\]")
_TORCHVISION = re.compile(r"\bEpoch: \[(?P<epoch>\d{1,9})\]\s*\[ *(?P<done>\d{1,12})/(?P<total>\d{1,12})\]")


def read(text: str) -> ParsedMetrics | None:
    """Parse a line with a loss and a step or an epoch, or a step and a measure.

    A loss without either is not enough: prose and settings mention losses too.
    """
    # Every line with a hint gets here, so skip each pattern whose required word is missing.
    lowered = text.lower()
    if "(" in text and _SETTINGS.search(text):
        return None
    step = _STEP.search(lowered)
    epoch = _EPOCH.search(lowered) if "epoch" in lowered else None
    if step is None and "[" in text and "loss" in lowered:
        step = _BRACKETS.search(text)  # [40/900] loss: 1.2
    within = _counted(text) if "[" in text else {}
    evaluates = "val" in lowered or "test" in lowered
    if step is None and epoch is None and not within:
        alone = _EVALUATION_HEADING.match(lowered) if evaluates and lowered.count("loss") == 1 else None
        return None if alone is None else ParsedMetrics(eval_loss=to_float(alone["value"]))
    if evaluates and _WITHIN_VALIDATION.search(text):
        return None
    found = list(_VALUE.finditer(lowered))
    values = {match["name"]: _value(match) for match in reversed(found)}
    if "/s" in lowered:
        for match in _RATE_AFTER.finditer(lowered):  # the unit follows the number
            values.setdefault(match["name"], _value(match))
    if not values and step is not None and step["total"] and _REWARD.search(lowered):
        # Reinforcement learning often prints no loss; its progress is still useful.
        return _of_counts(step) if is_log_report(text, marked=True) else None
    if not values or not is_log_report(text, marked=any(match["mark"] for match in found)):
        return None
    known = found_in(values)
    if step is not None:
        known |= {"step": to_step(step["step"]), "total_steps": to_step(step["total"])}
    if epoch is not None:
        known |= {"epoch": to_float(epoch["epoch"]), "total_epochs": to_float(epoch["epochs"])}
        known |= _within_epoch(text, known)
    known |= within
    if evaluates and "loss" in known and "eval_loss" not in known and _ABOUT_EVALUATION.search(lowered):
        known["eval_loss"] = known.pop("loss")
    told = ParsedMetrics(**known)
    return told if is_training_metrics(told) and (told.step is not None or told.epoch is not None) else None


def counted(text: str) -> dict[str, Any]:
    """Return the step and the total found in a text as fields of ``ParsedMetrics``; empty if none."""
    match = _STEP.search(text.lower())
    return {} if match is None else {"step": to_step(match["step"]), "total_steps": to_step(match["total"])}


def _of_counts(step: re.Match[str]) -> ParsedMetrics | None:
    done, total = to_step(step["step"]), to_step(step["total"])
    return None if done is None or not total or done > total else ParsedMetrics(step=done, total_steps=total)


def _counted(text: str) -> dict[str, Any]:
    run = _ITER_OF_RUN.search(text)
    if run is not None:
        return {"step": to_step(run["done"]), "total_steps": to_step(run["total"])}
    match = _BATCH_OF_EPOCH.search(text)
    if match is None:
        return {}
    # OpenMMLab counts epochs from one, timm from zero.
    whole = max(0, int(match["epoch"]) - 1) if match["epoch"] else int(match["epoch2"])
    return _in_epoch(whole, int(match["done"] or match["done2"]), int(match["total"] or match["total2"]))


def _in_epoch(whole: int, done: int, steps: int, total: int | None = None) -> dict[str, Any]:
    return {
        "step": whole * steps + done,
        "total_steps": total,
        "epoch": whole + done / max(1, steps),
        "epoch_step": done,
        "epoch_steps": steps,
        "whole_epochs": whole,
    }


def _within_epoch(text: str, known: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a line that counts within its epoch; empty if it counts over the run."""
    mnist = _MNIST.search(text)
    if mnist is not None:
        # It counts samples within the epoch; they are not steps but advance like them.
        epochs_done = max(0, int(mnist["epoch"]) - 1)
        return {"epoch": epochs_done + int(mnist["done"]) / max(1, int(mnist["total"]))}
    vision = _TORCHVISION.search(text)
    if vision is not None:
        whole, step, steps = int(vision["epoch"]), int(vision["done"]), int(vision["total"])
        total: int | None = None
    else:
        epochs = known.get("total_epochs")
        if known.get("step") is None or not known.get("total_steps"):
            return {}
        if not epochs and (_WITHIN.search(text.lower()) is None or known["epoch"] != int(known["epoch"])):
            return {}
        step, steps = known["step"], known["total_steps"]
        # "Epoch [2/3], Step [40/900]": epochs counted from one.
        whole, total = max(0, int(known["epoch"]) - 1), int(epochs) * steps if epochs else None
    return _in_epoch(whole, step, steps, total)


def _value(match: re.Match[str]) -> float | None:
    number = to_float(match["value"])
    if number is None:
        return None
    name, unit = match["name"], match["unit"] or ""
    if unit in _THOUSANDS:
        return number * _THOUSANDS[unit]
    if name == "dt" and unit == "s":
        return number * 1000  # without a unit, dt is conventionally in milliseconds
    return number / 1000 if name in _TIMES_IN_SECONDS and unit == "ms" else number
