"""Parse trainer_state.json, which transformers' Trainer saves with every checkpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from api_client.errors import UnreadableFile
from api_client.http.decoding import NotDecodable, read_json

FILE_NAME = "trainer_state.json"
MAX_BYTES = 64 * 1024 * 1024  # maximum size of the file; a history of 100,000 entries takes about 15 MB

Curve = tuple[tuple[int, float], ...]  # pairs of (step, value), in step order


@dataclass(frozen=True, slots=True)
class TrainerState:
    """Trainer state; fields missing from the file are None. The keys of ``curves`` are names from the log.

    Values may be NaN or infinite. ``best_model_checkpoint`` is a path in the training container.
    """

    global_step: int | None = None
    max_steps: int | None = None
    epoch: float | None = None
    total_epochs: float | None = None
    best_metric: float | None = None
    best_model_checkpoint: str | None = None
    curves: Mapping[str, Curve] = field(default_factory=dict)

    def curve(self, name: str) -> Curve:
        """Return the values of ``name``, such as ``loss``, ``eval_loss`` or ``learning_rate``, if any."""
        return self.curves.get(name, ())

    def last(self, name: str) -> float | None:
        """Return the latest value of ``name``."""
        curve = self.curve(name)
        return curve[-1][1] if curve else None


def parse_trainer_state(content: bytes) -> TrainerState:
    """Parse the file. Raises UnreadableFile if it is not a JSON object; malformed parts are left out."""
    try:
        state = read_json(content)
    except NotDecodable as problem:
        raise UnreadableFile(str(problem)) from None
    if not isinstance(state, dict):
        raise UnreadableFile("it is not a JSON object")
    best_checkpoint = state.get("best_model_checkpoint")
    return TrainerState(
        global_step=_int_or_none(state.get("global_step")),
        max_steps=_int_or_none(state.get("max_steps")),
        epoch=_float_or_none(state.get("epoch")),
        total_epochs=_float_or_none(state.get("num_train_epochs")),
        best_metric=_float_or_none(state.get("best_metric")),
        best_model_checkpoint=best_checkpoint if isinstance(best_checkpoint, str) else None,
        curves=_curves(state.get("log_history")),
    )


def _curves(history: Any) -> dict[str, Curve]:
    points_by_name: dict[str, list[tuple[int, float]]] = {}
    for entry in history if isinstance(history, list) else ():
        step = _int_or_none(entry.get("step")) if isinstance(entry, dict) else None
        if step is None:
            continue
        for name, value in entry.items():
            number = _float_or_none(value)
            if name not in {"step", "epoch"} and number is not None:
                points_by_name.setdefault(name, []).append((step, number))
    return {
        name: tuple(sorted(points, key=lambda point: point[0])) for name, points in points_by_name.items()
    }


def _int_or_none(value: Any) -> int | None:
    number = _float_or_none(value)
    return int(number) if number is not None and math.isfinite(number) else None


def _float_or_none(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None
