"""Find what a line counts: steps, epochs, and steps within an epoch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tui.analysis.progress.lines.reading import to_float, to_step

# These match lowercase text, which is several times faster than ignoring case. A pattern that begins with a
# lookbehind first checks its possible first characters, so that the lookbehind runs nowhere else.
_STEP = re.compile(
    r"(?=[gtsibmnuo]|acc_|cur_)(?<![\w./?&])(?<!\D-)(?<!max )(?<!num )(?<!total )(?<!warmup )(?<!every )"
    r"(?<!per )(?<!episode )(?<!fps )(?<!inner )(?<!micro )(?<!local )"
    r"(?:(?P<updates>num[ _]updates|nupdates|num-trees)"
    r"|(?P<global>(?:train(?:ing|er)?/)?global[ _](?:step|iter(?:ation)?)|(?:acc|total)_iter)"
    r"|(?P<plain>(?:train(?:ing)?|opt(?:im(?:izer)?)?)[ _]step|steps?(?:_i)?)"
    r"|(?P<weak>iteration|iterations(?=\s?[:=])|iters?|itr|it"
    r"|(?:mini-?)?batch(?:_idx|[ _]count|es(?=:))?|updates?|timesteps?|cur_iter|i(?=\s?=\s?\d+\s?/)))"
    r"(?:\.{3})?\s{0,8}[=:#]?\s{0,8}[\[(]?\s{0,8}(?P<step>\d[\d,]{0,14}(?:\.\d{1,6}[km]|[km])?)"
    r"(?:\s{0,8}(?:/|of)\s{0,8}(?:total_steps?=)?(?P<total>\d[\d,]{0,14}(?:\.\d{1,6}[km]|[km])?))?(?![\w.]*\w|-\d)"
)
_TOTAL = re.compile(r"(?<![\w./-])(?:total|max)_steps?\s?[=:]\s?(?P<total>\d[\d,]{0,14})(?![\w.]*\w)")
_EPOCH = re.compile(
    r"(?=[te])(?<![\w./?&-])(?<!per )(?:train(?:ing)? )?epoch(?:\.{3}|\((?:val|test)\))?"
    r"\s{0,8}[=:#]?\s{0,8}[\[(]?\s{0,8}"
    r"(?P<epoch>\d{1,9}(?:\.\d{1,12})?)"
    r"(?:\s{0,8}(?:/|of)\s{0,8}(?P<epochs>\d{1,9}))?(?![\w]*\w)"
)
_SHORT_EPOCH = re.compile(r"(?:^|[|\s])ep[ :=]{1,4}(?P<epoch>\d{1,9})(?:/(?P<epochs>\d{1,9}))?(?![\w.]*\w)")
_IN_EPOCH = re.compile(
    # Epoch: [1][ 10/5005] (torchvision), Epoch(train) [2][ 50/1000] (OpenMMLab), Train: 12 [ 550/1251 ( 44%)]
    # (timm), epoch 001: 100 / 167138 (fairseq), [train: 120, 25 / 125]
    r"(?<![\w./-])(?P<head>epoch\s?\(train\)|epoch|train(?:ing)?(?=: ))(?P<colon>:?)\s{0,4}"
    r"(?P<open>\[?)\s{0,8}(?P<epoch>\d{1,9}+)(?:/(?P<epochs>\d{1,9}+))?\s{0,2}(?:\(\s*\d+%\)\s?)?"
    r"(?:\]?[:,]?\s{0,8}\[\s{0,8}|\]\(|\]?[:,] {1,8}| [|-] {1,8}|\s{2,8}|:? {1,4}\[[=>. -]{3,80}\] ?)"
    r"(?P<done>\d{1,12})\s?/\s{0,8}(?P<total>\d{1,12})(?![\w.]*\w|\s?/)"
)
_BRACKETS = re.compile(
    r"(?:^|[\s(])\[\s{0,8}(?:train: \d+, )?(?P<step>\d{1,12})\s?/\s{0,8}(?P<total>\d{1,12})\](?=\s|:)"
)
_BATCH = re.compile(r"(?<![a-z])batch\b[^|,]{0,12}\d")
_AFTER = re.compile(r"\bafter (?P<step>\d[\d,]{0,14}) (?:steps|iterations|updates)\s?[:,|]")
_AFTER_PREFIX = re.compile(r"\] (?P<step>\d{1,9}) ?: (?=[a-z_]{3,24} )")
_LEADING_OF_TOTAL = re.compile(
    # Only a rank, a time, a level and the percentage may come first.
    r"^(?:\[[^\]]{1,30}\]:? ?){0,4}\s*(?:progress:? ?)?(?:\d{1,3}(?:\.\d{1,3})?%(?: \|)? )?"
    r"\(?(?P<step>\d{1,12})/(?P<total>\d{1,12})(?:\) |\s?(?:\||:|,|- |= |(?=\(epoch |loss\b)))"
)
_OF_EPOCHS = re.compile(  # [3/25][120/1583], 3/25 | 120/1583 |
    r"\s*+\[? *+(?P<epoch>\d{1,9})/(?P<epochs>\d{1,9})(?:\] ?\[| ?\|) *+"
    r"(?P<done>\d{1,12})/(?P<total>\d{1,12})[\] |]"
)
_LEADING = re.compile(r"^\s*(?P<step>\d{1,9})\s*(?:\||(?=\s[\d.]{1,12} s run))")
# Lines counted in their own way: a text that they contain, and an expression with their counts. ESPNet's
# range of batches gives no step, and what the MNIST example and OpenCLIP count within an epoch are samples.
_SPECIAL = (
    (
        "epoch:train:",
        re.compile(r"\b(?P<epoch>\d{1,9})epoch:train:\d{1,12}-\d{1,12}batch: "),
    ),  # ESPNet
    (
        "debug train ",  # WeNet
        re.compile(r"\bdebug train (?:\|[^|]{1,40}\| ?)?batch (?P<epoch>\d{1,9})/(?P<step>\d{1,12}) loss "),
    ),
    ("epoch results:", re.compile(r"\b(?P<epoch>\d{1,9})epoch results: ")),  # ESPnet
    (
        "(train)",
        re.compile(r"\biter\s?\(train\) *\[\s*(?P<step>\d{1,12})/(?P<total>\d{1,12})\]"),
    ),
    (
        "train epoch: ",
        re.compile(r"\btrain epoch: (?P<epoch>\d+) \[ *\d+/ *\d+ \( *\d+%\)\]"),
    ),
    # CLU, Big Vision
    (".py:", re.compile(r"\.py:\d{1,6}\] \[(?P<step>\d{1,12})\] (?=[a-z][^\s=:]{0,60} ?[=:])")),
    (
        "step_in_epoch",  # FunASR: the run's total so far
        re.compile(r"\bepoch: (?P<epoch>\d{1,9})\b.{1,160}?\btotal step: (?P<step>\d{1,12})\b"),
    ),
    ("-- iter: ", re.compile(r"\bepoch: (?P<epoch>\d{1,9}) ")),  # TFLearn's iter counts samples
    ("] loss=", re.compile(r"^\[(?P<step>\d{1,12}) \| [\d.]{1,12}\] loss=")),  # GPT-2's fine-tuning
    ("] ", re.compile(r"^\[(?P<epoch>\d{1,6}): {1,8}(?P<step>\d{1,9})/(?P<total>\d{1,9})\] ")),  # PointNet
    (" (", re.compile(r"^(?:train|valid) \((?P<epoch>\d{1,6})/\d{1,6}\) ")),  # Catalyst
    (
        "][",  # Epoch: [7][50] without the epoch's steps
        re.compile(r"(?:^|[-:\]|] )epoch: ?\[(?P<epoch>\d{1,6})\]\[(?P<step>\d{1,9})\]\s"),
    ),
    # PyTorch's tutorial, I-JEPA: epoch, batch
    ("] loss: ", re.compile(r"(?:^|:)\[(?P<epoch>\d{1,6}), +(?P<step>\d{1,9})\] loss: ")),
)
_TIMES = {"k": 1e3, "m": 1e6}


@dataclass(frozen=True, slots=True)
class Counts:
    """Steps and epochs of a line. ``within``: the count is of the current epoch, after ``whole`` epochs."""

    step: int | None = None
    total: int | None = None
    epoch: float | None = None
    epochs: int | None = None
    within: tuple[int, int] | None = None
    whole: int = 0

    def fields(self) -> dict[str, Any]:
        if self.within is None:
            return {
                "step": self.step,
                "total_steps": self.total,
                "epoch": self.epoch,
                "total_epochs": None if self.epochs is None else float(self.epochs),
            }
        done, steps = self.within
        return {
            "step": self.whole * steps + done if self.step is None else self.step,
            "total_steps": self.total or (self.epochs * steps if self.epochs else None),
            "epoch": self.whole + done / max(1, steps),
            "total_epochs": None if self.epochs is None else float(self.epochs),
            "epoch_step": done,
            "epoch_steps": steps,
            "whole_epochs": self.whole,
        }


def find_counts(text: str, lowered: str) -> Counts | None:
    """Return what a line counts; ``None`` if it counts nothing."""
    for hint, expression in _SPECIAL:
        special = expression.search(lowered) if hint in lowered else None
        if special is not None:
            found = special.groupdict()
            epoch_found = to_float(found.get("epoch"))
            return Counts(to_step(found.get("step")), to_step(found.get("total")), epoch_found)
    step = _best_step(lowered)
    epoch = _find_epoch(lowered)
    if "/" in text:
        counts = _counted_within_epoch(lowered, step)
        if counts is not None:
            return counts
    if step is None and "[" in text and "loss" in lowered:
        step = _BRACKETS.search(lowered, epoch.end() if epoch is not None else 0)  # [40/900] loss: 1.2
    if step is None and epoch is not None and "(epoch " in lowered:
        step = _LEADING_OF_TOTAL.match(lowered)  # 120/21150 (epoch 0.283)
    if step is None and epoch is None:
        return _counted_otherwise(lowered) if "loss" in lowered else None
    done = None if step is None else _whole(step["step"])
    total = None if step is None else _whole(step["total"])
    if total is None and done is not None and ("total_step" in lowered or "max_step" in lowered):
        named = _TOTAL.search(lowered)
        total = None if named is None else to_step(named["total"])
    if epoch is None:
        return Counts(step=done, total=total)
    at = to_float(epoch["epoch"])
    epochs = to_step(epoch["epochs"])
    whole = "." not in epoch["epoch"]
    if at is not None and done is not None and total and whole and (epochs or _BATCH.search(lowered)):
        # "Epoch [2/3], Step [40/900]": epochs counted from one.
        return Counts(epochs=epochs, within=(done, total), whole=max(0, int(at) - 1))
    return Counts(step=done, total=total, epoch=at, epochs=epochs)


def find_epoch(lowered: str) -> float | None:
    """Return the epoch that a line names, whatever else it counts."""
    match = _find_epoch(lowered)
    return None if match is None else to_float(match["epoch"])


def _find_epoch(lowered: str) -> re.Match[str] | None:
    if "epoch" in lowered:
        return _EPOCH.search(lowered)
    # Beside "epch" (LeRobot) or a reward, "ep" is an episode.
    short = "ep " in lowered or "ep:" in lowered or "ep=" in lowered
    is_episode = "epch" in lowered or "reward" in lowered or "return" in lowered
    return _SHORT_EPOCH.search(lowered) if short and not is_episode else None


def _best_step(lowered: str) -> re.Match[str] | None:
    """Return the count of the run: ``num_updates`` before ``step``, ``step`` before ``iter``."""
    best = _STEP.search(lowered)
    if best is None or not (best["weak"] or "num" in lowered):
        return best
    for match in _STEP.finditer(lowered):
        if match["updates"]:
            return match
        if best is None or (best["weak"] and not match["weak"] and best["total"] is None):
            best = match
    return best


def _counted_within_epoch(lowered: str, step: re.Match[str] | None) -> Counts | None:
    match = _IN_EPOCH.search(lowered) if "epoch" in lowered or "train" in lowered else None
    if match is None:
        return None
    epochs = to_step(match["epochs"])
    # torchvision and timm count epochs from zero, the others from one.
    from_zero = epochs is None and match["colon"] and (match["open"] or match["head"] == "train")
    whole = int(match["epoch"]) if from_zero else max(0, int(match["epoch"]) - 1)
    updates = _whole(step["step"]) if step is not None and step["updates"] else None
    within = (int(match["done"]), int(match["total"]))
    return Counts(step=updates, epochs=epochs, within=within, whole=whole)


def _counted_otherwise(lowered: str) -> Counts | None:
    """Read a line that names neither a step nor an epoch before their numbers."""
    match = _AFTER.search(lowered) if "after " in lowered else None
    if match is not None:
        return Counts(step=to_step(match["step"]))
    match = _OF_EPOCHS.match(lowered)
    if match is not None:
        within = (int(match["done"]), int(match["total"]))
        return Counts(epochs=int(match["epochs"]), within=within, whole=max(0, int(match["epoch"]) - 1))
    match = _AFTER_PREFIX.search(lowered)
    if match is not None:
        return Counts(step=to_step(match["step"]))
    match = _LEADING_OF_TOTAL.match(lowered)
    if match is not None:
        done, total = int(match["step"]), int(match["total"])
        return Counts(step=done, total=total) if done <= total else None
    match = _LEADING.match(lowered) if "lr" in lowered or "learning" in lowered else None
    return None if match is None else Counts(step=to_step(match["step"]))


def _whole(text: str | None) -> int | None:
    if text is None:
        return None
    if text[-1] in _TIMES:
        number = to_float(text[:-1])
        return None if number is None else round(number * _TIMES[text[-1]])
    return to_step(text)
