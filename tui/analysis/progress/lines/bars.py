"""Progress bars with values: tqdm, rich (Lightning) and the Trainer's table in notebooks.

``with_step`` adds a bar's step to values printed beside it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from tui.analysis.progress.lines.counts import find_counts
from tui.analysis.progress.lines.reading import NUMBER, ParsedMetrics, found_in, to_float, to_step
from tui.analysis.progress.lines.values import find_slots, read_values, split_numbers


def with_step(reading: ParsedMetrics, beside: str) -> ParsedMetrics:
    """Return the reading with the step from the adjacent text: a progress bar, or ``step 299/600``.

    The reading is unchanged if it has a step. The bar next to an evaluation's loss counts the evaluation.
    """
    if reading.step is not None or reading.epoch_step is not None:
        return reading
    if reading.loss is None and (reading.eval_loss is None or "step:" not in beside):
        return reading
    bar = None if reading.loss is None else read(beside)
    if bar is not None:
        return with_bar_counts(reading, bar)
    counts = find_counts(beside, beside.lower())
    if counts is None or counts.step is None:
        return reading
    epoch = counts.epoch if reading.epoch is None else reading.epoch
    return replace(reading, step=counts.step, total_steps=reading.total_steps or counts.total, epoch=epoch)


def with_bar_counts(reading: ParsedMetrics, bar: ParsedMetrics) -> ParsedMetrics:
    """Return the reading with the count of a progress bar; unchanged if the bar has no step."""
    if bar.step is None:
        return reading
    return replace(
        reading,
        step=bar.step,
        total_steps=bar.total_steps,
        total_epochs=reading.total_epochs if bar.total_epochs is None else bar.total_epochs,
        epoch_step=bar.epoch_step,
        epoch_steps=bar.epoch_steps,
        whole_epochs=bar.whole_epochs,
        step_time_s=bar.step_time_s,
        from_bar=True,
    )


_TQDM = re.compile(
    r"(?:(?P<percent>\d{1,3})%(?:\|[^|]{0,200}\|)? *)?(?<![\w.])"
    r"(?P<done>\d[\d,]{0,14}+)/(?P<total>\d[\d,]{0,14}+) "
    r"\[(?P<spent>[\d:]+)<(?P<left>[^,\]]{1,24})(?:,\s*+(?P<rate>[\d.]{1,16}+|\?)(?P<unit>[^,\]\s=]{1,16}))?(?P<rest>[^\]]{0,1000}+)\]"
)
_DRAWN = re.compile(
    # Bars of other libraries: [####>---] 120/500, |███   | 120/500 [24%], 24% (120 of 500) |###   |
    r"(?:\[[=#>█▏▎▍▌▋▊▉. -]{6,200}+\]|\|[=#>█▏▎▍▌▋▊▉. -]{6,200}+\||(?<![━╸╺─])[━╸╺─]{6,200}+)"
    r"[^\d/=]{0,16}(?:[\d.]{1,6}% [| ]{0,2})?"
    r"(?P<done>\d[\d,]*)/(?P<total>\d[\d,]*)(?![\w:/])(?P<rest>.*)$"
    r"|\((?P<done2>\d[\d,]*) of (?P<total2>\d[\d,]*)\) \|[=#>█. -]{6,200}+\|(?P<rest2>.*)$"
    r"|\[[=#>. -]{6,200}+\](?P<rest3>[^\[\]]{1,160}[^\w(/.:,-])(?P<done3>\d[\d,]*)/(?P<total3>\d[\d,]*)\s*$"
)
_ENDLESS = re.compile(
    # tqdm without a total
    r"(?P<done>\d[\d,]{0,14}+)it \[(?P<spent>[\d:]+),\s*(?P<rate>[\d.]+)(?P<unit>it/s|s/it)"
    r"(?P<rest>[^\]]{0,1000}+)\]"
)
_RICH = re.compile(
    r"Epoch (?P<epoch>\d+)(?:/(?P<last>\d+|-\d+))?\s[\s━╸╺-]{2,}+(?P<done>\d+)/(?P<total>\d+)\s+"
    r"[\d:]+ • [\d:-]+\s+(?P<rate>[\d.]+)(?P<unit>it/s)(?P<rest>.*)$"
)
_NOTEBOOK = re.compile(
    # The Trainer's table in a notebook: [ 40/120 01:20 < 02:44, 0.49 it/s, Epoch 0.33/1]
    r"\[ *(?P<done>\d+)/(?P<total>\d+) [\d:]+ < [\d:]+, (?P<rate>[\d.]+) (?P<unit>it/s), "
    r"Epoch (?P<epoch>[\d.]+)/(?P<epochs>\d+)\]"
)
_STEP_IN_TITLE = re.compile(r"(?:^|\s)(?P<epoch>\d{1,9})\|(?P<step>\d{1,12})\|Loss: ")  # torchtune
_COLUMNS = re.compile(r"(?:^|\s)(?P<epoch>\d+)/(?P<epochs>\d+)\s+(?:[\d.]+[GM]?\s+){3,12}\d+$")  # Ultralytics
_LEVANTER = re.compile(
    r"\bProgress on:(?P<what>train|eval) (?P<done>[\d.]{1,12})(?P<done_unit>[kM]?)it/"
    r"(?P<total>[\d.]{1,12})(?P<total_unit>[kM]?)it rate:(?P<rate>[\d.]{1,12})(?P<unit>it/s|s/it)\b"
    r"(?P<rest>.{0,200})"
)
_TIMES = {"": 1, "k": 1_000, "M": 1_000_000}
_ITEM = re.compile(rf"([A-Za-z_][\w/ .-]{{0,48}}?)\s*[=:]\s*(?:tensor\()?({NUMBER})")
_TRAINING_UNITS = frozenset(
    f"{unit}/s"
    for unit in ("it", "step", "steps", "batch", "batches", "ba", "iter", "update", "optimizer_step")
) | frozenset(f"s/{unit}" for unit in ("it", "step", "batch", "ba", "iter", "update", "optimizer_step"))
_NOT_TRAINING = re.compile(
    r"(?<![a-z])(?:download|load|map|tokeniz|filter|generat|fetch|eval|valid|sav|sanity|predict|prepar|pack|"
    r"test(?!_\w{1,40}+ ?[=:])|shard|convert|upload|extract|compil|merg|quantiz|dataset|warm|"
    r"(?<!batches )process|"
    r"rollout|cache|infer|flatten|group|class +images|request|file|prompt|capture|calibrat|import|install|"
    r"index|embed|encod|decod|render|sampl|scor|make|collect|(?:val|dev)\b(?![_ /.]?\w{1,40}+ ?[=:]))"
    r"|^batches$"  # of what is encoded
    # Work other than training: Resolving, Capturing, Applying, Adding …
    r"|^(?!(?:pre-?|re)?train|(?:fine-?)?tun|learn|optimi|fitt|distil|runn|align)[a-z]{2,20}ing\b",
    re.IGNORECASE,
)
_TRAINING_TITLE = re.compile(r"(?i)train|epoch|step|fit|iter|\bv_num")
_SETTINGS = re.compile(
    r" (?:\[[A-Za-z]\w{0,20}[=:][^\]<]{1,60}\]|[\[(]train(?:ing)?[\])]) "
)  # Epoch 4 [lr=1e-3]
_EVALUATION = re.compile(r"(?i)[\[(](?:eval|val|test|dev)[a-z]*[\])]")
_TITLE_CHARACTERS = 160
_HOST = re.compile(r"^(?:\d{1,3}\.){3}\d{1,3}: ")  # pdsh's
_MEASURES = frozenset({"loss", "eval_loss", "learning_rate", "grad_norm"})
_TOO_FAST = 1e-4  # seconds: a bar without a loss that counts faster counts bytes
_TOO_FAST_UNNAMED = 2e-3  # ... and one without a title counts requests, samples, files
_EPOCH_UNITS = frozenset({"epoch/s", "s/epoch", "ep/s", "s/ep", "epochs/s"})
_FEW_STEPS = 100  # "Epochs: 30%|" is over the epochs; "Epoch: 30%|" may be within one, if it has more steps.
_EPOCH_IN_TITLE = re.compile(
    # OpenRLHF's episodes are its epochs; without a total they are episodes played.
    r"(?:epochs?|episode(?=[ :=\[]*\d+/\d)|^train(?:ing)?(?= ?\[\d+/\d+\]))"
    r"[ :=\[#]*(?P<epoch>\d+)(?:\s*(?:/|of)\s*(?P<epochs>\d+))?",
    re.IGNORECASE,
)
_EPOCH_AFTER = re.compile(r"(?i)\b(?P<epoch>\d{1,9})\s*(?:/|of)\s*(?P<epochs>\d{1,9}) epochs?\b")


def read(text: str) -> ParsedMetrics | None:
    """Parse a training bar; bars of other work (downloads, evaluation …) are ignored."""
    if "<" in text and "[" in text and " < " not in text:
        return _read_tqdm(text)
    if "━" in text or ("•" in text and "it/s" in text):
        return _read_rich(text) or _read_drawn(text)
    if " < " in text:
        return _read_notebook(text)
    if "it [" in text:
        return _read_endless(text)
    return _read_levanter(text) if "Progress on:" in text else _read_drawn(text)


def ends(text: str) -> int:
    """Return where a line's last bar ends; 0 if it has none."""
    return max((match.end() for match in _TQDM.finditer(text)), default=0) if "<" in text else 0


def _read_tqdm(text: str) -> ParsedMetrics | None:
    match = None
    for match in _TQDM.finditer(text):  # noqa: B007 - several bars in one line: the last is shown
        pass
    if match is None:
        return None
    title = _title(text[: match.start()])
    done, total = to_step(match["done"]), to_step(match["total"])
    evaluates = _EVALUATION.search(text[: match.start()][-_TITLE_CHARACTERS:]) is not None
    if done is None or not total or done > total:
        return None
    if evaluates or _NOT_TRAINING.search(title):
        told = found_in(_items(match["rest"])).get("eval_loss") if done == total else None
        return None if told is None else ParsedMetrics(eval_loss=told)
    known = _measures(text[: match.start()]) | found_in(_items(match["rest"]))
    after = text[match.end() :].lstrip(" ,|")[:_TITLE_CHARACTERS]
    if "loss" not in known and after[:4] in ("loss", "Loss"):
        known |= _measures(after)
    bare = title.lower()
    over_epochs = match["unit"] in _EPOCH_UNITS or bare.endswith("epochs")
    over_epochs |= bare.endswith("epoch") and total <= _FEW_STEPS and "loss" not in known
    if over_epochs and "loss" in known:
        return ParsedMetrics(**{**known, "epoch": float(done), "total_epochs": float(total)})
    # NeMo's bar has a loss but no rate; a bar without a loss or a step rate could be anything.
    if (over_epochs or match["unit"] not in _TRAINING_UNITS) and "loss" not in known:
        return None if over_epochs else _epoch_alone(title)
    is_named = known or not (title or match["rest"].strip(" ,")) or _TRAINING_TITLE.search(title)
    if not is_named and not _COLUMNS.search(title) and not _EPOCH_IN_TITLE.search(title):
        return None  # of something else
    if match["unit"] in _TRAINING_UNITS:
        step_time_s = _step_time_s(match)
        limit = _TOO_FAST if title else _TOO_FAST_UNNAMED
        if "loss" not in known and step_time_s is not None and step_time_s < limit:
            return _epoch_alone(title)
        known["step_time_s"] = step_time_s or known.get("step_time_s")
    named_step = _STEP_IN_TITLE.search(title)
    if named_step is not None:
        within = _within_epoch(known, done, total, max(0, int(named_step["epoch"]) - 1), None)
        return replace(within, step=to_step(named_step["step"]))
    return _counted(known, title, text[: match.start()], done, total)


def _read_drawn(text: str) -> ParsedMetrics | None:
    """Read a bar of another library, if it has a loss."""
    match = _DRAWN.search(text) if "oss" in text else None
    if match is None:
        return None
    before = text[: match.start()]
    done = to_step(match["done"] or match["done2"] or match["done3"])
    total = to_step(match["total"] or match["total2"] or match["total3"])
    known = _measures(before) | _measures(match["rest"] or match["rest2"] or match["rest3"] or "")
    if done is None or not total or done > total or "loss" not in known:
        return None
    title = _title(before)
    if _EVALUATION.search(before[-_TITLE_CHARACTERS:]) or _NOT_TRAINING.search(title):
        return None
    return _counted(known, title, before, done, total)


def _counted(known: dict[str, Any], title: str, before: str, done: int, total: int) -> ParsedMetrics | None:
    """Return the reading of a bar, whose title may say that it counts within an epoch."""
    named_epoch = _EPOCH_IN_TITLE.search(title) or _EPOCH_AFTER.search(before) or _COLUMNS.search(title)
    if named_epoch is None:
        return ParsedMetrics(**{**known, "step": done, "total_steps": total, "from_bar": True})
    epoch, epochs = to_step(named_epoch["epoch"]) or 0, to_step(named_epoch["epochs"])
    if epochs == total and epoch - done in (0, 1):  # a bar over the epochs
        return (
            ParsedMetrics(**known, epoch=float(done), total_epochs=float(total)) if "loss" in known else None
        )
    # "Epoch 1/3" counts from one, Lightning's plain "Epoch 0" from zero.
    return _within_epoch(known, done, total, max(0, epoch - 1) if epochs else epoch, epochs)


def _epoch_alone(title: str) -> ParsedMetrics | None:
    """Return the epoch that a bar of something else than steps is about."""
    named = _EPOCH_IN_TITLE.match(title) if title[:5].lower() == "epoch" else None
    if named is None:
        return None
    whole = int(named["epoch"])
    return ParsedMetrics(epoch=float(max(0, whole - 1) if named["epochs"] else whole), from_bar=True)


def _read_rich(text: str) -> ParsedMetrics | None:
    match = _RICH.search(text)
    if match is None:
        return None
    done, total = to_step(match["done"]), to_step(match["total"])
    if done is None or not total:
        return None
    last = to_step(match["last"]) if match["last"] else None
    epochs = None if last is None else last + 1  # Lightning prints the index of the last epoch, from zero
    known = found_in(_items(match["rest"]))
    known["step_time_s"] = _step_time_s(match)
    return _within_epoch(known, done, total, int(match["epoch"]), epochs)


def _read_notebook(text: str) -> ParsedMetrics | None:
    match = _NOTEBOOK.search(text)
    if match is None:
        return None
    return ParsedMetrics(
        step=to_step(match["done"]),
        total_steps=to_step(match["total"]),
        epoch=to_float(match["epoch"]),
        total_epochs=to_float(match["epochs"]),
        step_time_s=_step_time_s(match),
        from_bar=True,
    )


def _read_endless(text: str) -> ParsedMetrics | None:
    match = _ENDLESS.search(text)
    if match is None or _NOT_TRAINING.search(_title(text[: match.start()])):
        return None
    known = _measures(text[: match.start()]) | found_in(_items(match["rest"]))
    if "loss" not in known:
        return None
    named_epoch = _EPOCH_IN_TITLE.search(text[: match.start()])
    known["epoch"] = None if named_epoch is None else to_float(named_epoch["epoch"])
    return ParsedMetrics(
        **{**known, "step": to_step(match["done"]), "step_time_s": _step_time_s(match), "from_bar": True}
    )


def _read_levanter(text: str) -> ParsedMetrics | None:
    match = _LEVANTER.search(text)
    if match is None or match["what"] == "eval":  # the running mean of an unfinished evaluation
        return None
    done, total = to_float(match["done"]), to_float(match["total"])
    if done is None or not total:
        return None
    return ParsedMetrics(
        step=round(done * _TIMES[match["done_unit"]]),
        total_steps=round(total * _TIMES[match["total_unit"]]),
        loss=found_in(_items(match["rest"].rpartition("postfix:")[2])).get("loss"),
        step_time_s=_step_time_s(match),
        from_bar=True,
    )


def _within_epoch(
    known: dict[str, Any], done: int, total: int, whole: int, epochs: int | None
) -> ParsedMetrics:
    """Return the reading of a bar that counts within its epoch, after ``whole`` of ``epochs`` epochs.

    NeMo and Lightning may print the run's own count too; the bar's count is more reliable.
    """
    counted = {
        "step": whole * total + done,
        "total_steps": epochs * total if epochs else None,
        "epoch": known.get("epoch", whole + done / total),
        "total_epochs": epochs,
        "epoch_step": done,
        "epoch_steps": total,
        "whole_epochs": whole,
    }
    return ParsedMetrics(**{**known, **counted, "from_bar": True})


def _step_time_s(match: re.Match[str]) -> float | None:
    speed = to_float(match["rate"])
    if not speed:
        return None
    return speed if match["unit"].startswith("s/") else 1 / speed


def _items(text: str) -> dict[str, object]:
    return {key.strip().lower(): value for key, value in _ITEM.findall(text)}


def _measures(before: str) -> dict[str, Any]:
    """Return the measures in a bar's title: ``epoch 3 iter 120: train loss 0.41. lr 5.9e-04``."""
    if "oss" not in before:
        return {}
    texts, numbers = split_numbers(before[-_TITLE_CHARACTERS:])
    return {
        name: value for name, value in read_values(find_slots(texts), numbers).items() if name in _MEASURES
    }


def _title(before: str) -> str:
    if before[:1].isdecimal():
        before = _HOST.sub("", before)
    return _SETTINGS.sub(" ", before[-_TITLE_CHARACTERS:]).rpartition("] ")[2].rpartition(") ")[2].strip(" :")
