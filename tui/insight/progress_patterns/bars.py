"""Progress bars: tqdm's, and Lightning's own in the looks of tqdm and of rich.

``Training:  46%|████▌     | 4120/9000 [6:12:03<7:10:44,  5.30s/it, loss=0.913]``
"""

from __future__ import annotations

import re

from tui.insight.progress_patterns.reading import NUMBER, Reading, from_values, to_float, to_step

_TQDM = re.compile(
    r"(?:(?P<percent>\d{1,3})%\|[^|]{0,200}\| *)"
    r"(?P<done>\d[\d,]*)/(?P<total>\d[\d,]*) "
    r"\[(?P<spent>[\d:]+)<(?P<left>[^,\]]{1,24})(?:,\s*(?P<rate>[\d.]+|\?)(?P<unit>[^,\]\s=]{1,16}))?(?P<rest>[^\]]*)\]"
)
_RICH = re.compile(
    r"Epoch (?P<epoch>\d+)(?:/(?P<last>\d+|-\d+))?\s+[━╸╺ ]{2,}\s*(?P<done>\d+)/(?P<total>\d+)\s+"
    r"[\d:]+ • [\d:-]+\s+(?P<rate>[\d.]+)(?P<unit>it/s)(?P<rest>.*)$"
)
_ITEM = re.compile(rf"([A-Za-z_][\w/ ]{{0,48}}?)\s*[=:]\s*({NUMBER})")
_TRAINING_UNITS = frozenset(
    f"{unit}/s"
    for unit in ("it", "step", "steps", "batch", "batches", "ba", "iter", "update", "optimizer_step")
) | frozenset(f"s/{unit}" for unit in ("it", "step", "batch", "ba", "iter", "update", "optimizer_step"))
_NOT_TRAINING = re.compile(
    r"download|load|map|tokeniz|filter|generat|fetch|eval|valid|sav|sanity|predict|test|prepar|pack|shard|"
    r"convert|upload|extract|compil|merg|quantiz|dataset|warm|process|rollout|cache|infer|writing|flatten|group",
    re.IGNORECASE,
)
_EPOCH_IN_TITLE = re.compile(r"epoch[ :=\[]*(?P<epoch>\d+)(?:\s*(?:/|of)\s*(?P<epochs>\d+))?", re.IGNORECASE)


def read(text: str) -> Reading | None:
    """The reading of a training bar; bars of other work (downloads, evaluation …) tell nothing."""
    if "%|" in text:
        return _read_tqdm(text)
    return _read_rich(text) if "━" in text else None


def _read_tqdm(text: str) -> Reading | None:
    match = None
    for match in _TQDM.finditer(text):  # noqa: B007 - several bars in one line: the last is shown
        pass
    if match is None or not (match["unit"] is None or match["unit"] in _TRAINING_UNITS):
        return None
    title = text[: match.start()].rpartition("]")[2].strip(" :")
    done, total = to_step(match["done"]), to_step(match["total"])
    if done is None or not total or done > total or _NOT_TRAINING.search(title):
        return None
    values = _items(match["rest"]) | _items(text[match.end() :]) | _torchtune_title(title)
    told = from_values(values)
    if match["unit"] is None and told.loss is None:
        return None  # NeMo's bar has no rate but its loss; without either it could be anything
    named_epoch = _EPOCH_IN_TITLE.search(title)
    if named_epoch is None:
        return _reading(told, match, step=done, total_steps=total)
    epoch, epochs = to_step(named_epoch["epoch"]) or 0, to_step(named_epoch["epochs"])
    # "Epoch 1/3" counts from one, Lightning's plain "Epoch 0" from zero.
    whole = max(0, epoch - 1) if epochs else epoch
    return _reading(told, match, epoch_step=done, epoch_steps=total, whole_epochs=whole, epochs=epochs)


def _read_rich(text: str) -> Reading | None:
    match = _RICH.search(text)
    if match is None:
        return None
    done, total = to_step(match["done"]), to_step(match["total"])
    if done is None or not total:
        return None
    last = to_step(match["last"]) if match["last"] else None
    epochs = None if last is None else last + 1  # Lightning prints the number of the last epoch, from zero
    return _reading(
        from_values(_items(match["rest"])), match, epoch_step=done, epoch_steps=total,
        whole_epochs=int(match["epoch"]), epochs=epochs,
    )  # fmt: skip


def _reading(
    told: Reading,
    match: re.Match[str],
    *,
    step: int | None = None,
    total_steps: int | None = None,
    epoch_step: int | None = None,
    epoch_steps: int | None = None,
    whole_epochs: int | None = None,
    epochs: int | None = None,
) -> Reading:
    speed = to_float(match["rate"])
    step_time_s = told.step_time_s
    if speed:
        step_time_s = speed if (match["unit"] or "").startswith("s/") else 1 / speed
    if whole_epochs is not None and epoch_step is not None and epoch_steps:
        # NeMo and Lightning may print the run's own count too; the bar's count within the epoch is surer.
        step = whole_epochs * epoch_steps + epoch_step
        total_steps = epochs * epoch_steps if epochs else None
    epoch = told.epoch
    if epoch is None and whole_epochs is not None and epoch_step is not None and epoch_steps:
        epoch = whole_epochs + epoch_step / epoch_steps
    return Reading(
        step=step,
        total_steps=total_steps,
        epoch=epoch,
        total_epochs=epochs,
        loss=told.loss,
        eval_loss=told.eval_loss,
        learning_rate=told.learning_rate,
        grad_norm=told.grad_norm,
        tokens_per_s=told.tokens_per_s,
        samples_per_s=told.samples_per_s,
        step_time_s=step_time_s,
        epoch_step=epoch_step,
        epoch_steps=epoch_steps,
        whole_epochs=whole_epochs,
        from_bar=True,
    )


def _items(text: str) -> dict[str, object]:
    return {key.strip().lower(): value for key, value in _ITEM.findall(text)}


def _torchtune_title(title: str) -> dict[str, object]:
    """Torchtune writes its values before the bar: ``1|40|Loss: 0.9132``."""
    return _items(title.rpartition("|")[2]) if title.count("|") >= 2 else {}
