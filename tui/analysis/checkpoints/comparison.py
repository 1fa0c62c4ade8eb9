"""Side-by-side comparison of two checkpoints."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api_client.models import Checkpoint, CheckpointFile
from api_client.models.checkpoints import name_inside
from tui.analysis.checkpoints.facts import CheckpointFacts
from tui.text.units import UNKNOWN, bytes_iec, count, number


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """A property and its value for each of two checkpoints; texts are not sanitized."""

    name: str
    left: str
    right: str

    @property
    def differs(self) -> bool:
        return self.left != self.right


def compare_checkpoints(
    left: CheckpointFacts,
    right: CheckpointFacts,
    *,
    left_files: Sequence[CheckpointFile] | None = None,
    right_files: Sequence[CheckpointFile] | None = None,
) -> list[ComparedLine]:
    """Compare step, type, size, score, adapter settings, and, if both lists are known, files.

    Two files are equal if their names inside the checkpoint, their ranks, and their sizes match.
    """
    left_checkpoint, right_checkpoint = left.checkpoint, right.checkpoint
    lines = [
        ComparedLine("step", count(left.step), count(right.step)),
        ComparedLine("type", left.kind, right.kind),
        ComparedLine(
            "base model", left_checkpoint.base_model or UNKNOWN, right_checkpoint.base_model or UNKNOWN
        ),
        ComparedLine("size", *_size_texts(left_checkpoint, right_checkpoint)),
        ComparedLine(_score_name(left, right), _score_text(left), _score_text(right)),
        ComparedLine("written", _time_text(left_checkpoint), _time_text(right_checkpoint)),
        ComparedLine("storage", left.sync, right.sync),
    ]
    if left.fault is not None or right.fault is not None:
        lines.append(ComparedLine("loss diverged", _fault_text(left), _fault_text(right)))
    if left_files is not None and right_files is not None:
        lines += _compared_files(left, right, left_files, right_files)
    return lines + _compared_adapters(
        left_checkpoint.lora_adapter_config, right_checkpoint.lora_adapter_config
    )


def _size_texts(left_checkpoint: Checkpoint, right_checkpoint: Checkpoint) -> tuple[str, str]:
    left_text, right_text = _format_sizes(left_checkpoint.size_bytes, right_checkpoint.size_bytes)
    return (
        UNKNOWN if left_checkpoint.size_bytes is None else left_text,
        UNKNOWN if right_checkpoint.size_bytes is None else right_text,
    )


def _time_text(checkpoint: Checkpoint) -> str:
    return checkpoint.created_at.strftime("%Y-%m-%d %H:%M:%S UTC") if checkpoint.created_at else UNKNOWN


def _fault_text(facts: CheckpointFacts) -> str:
    if facts.fault is None:
        return "no" if facts.is_checked else UNKNOWN
    since = facts.fault.since
    return facts.fault.mark + (f", {since:%m-%d %H:%M} UTC" if since is not None else "")


def _score_name(left: CheckpointFacts, right: CheckpointFacts) -> str:
    score = left.score or right.score
    return score.name if score else "loss"


def _score_text(facts: CheckpointFacts) -> str:
    return number(facts.score.value) if facts.score else UNKNOWN


def _compared_files(
    left: CheckpointFacts,
    right: CheckpointFacts,
    left_files: Sequence[CheckpointFile],
    right_files: Sequence[CheckpointFile],
) -> list[ComparedLine]:
    left_sizes, right_sizes = _size_by_file(left.name, left_files), _size_by_file(right.name, right_files)
    lines = [ComparedLine("files", count(len(left_sizes)), count(len(right_sizes)))]
    for key in sorted(left_sizes.keys() | right_sizes.keys()):
        if left_sizes.get(key) != right_sizes.get(key):
            name, rank = key
            label = f"{name} (rank {rank})" if rank else name
            lines.append(ComparedLine(label, *_format_sizes(left_sizes.get(key), right_sizes.get(key))))
    return lines


def _format_sizes(left: int | None, right: int | None) -> tuple[str, str]:
    """Format two sizes; in exact bytes if both would be rounded to the same text although they differ."""
    left_text, right_text = ("missing" if size is None else bytes_iec(size) for size in (left, right))
    if left_text == right_text and left != right:
        return f"{left:,} B", f"{right:,} B"
    return left_text, right_text


def _size_by_file(checkpoint: str, files: Sequence[CheckpointFile]) -> dict[tuple[str, int], int]:
    return {
        (name_inside(file.relative_file_name, checkpoint), file.node_rank): file.size_bytes for file in files
    }


def _compared_adapters(left: Mapping[str, Any] | None, right: Mapping[str, Any] | None) -> list[ComparedLine]:
    left_values, right_values = left or {}, right or {}
    return [
        ComparedLine(f"adapter {name}", _setting_text(left_values, name), _setting_text(right_values, name))
        for name in sorted(left_values.keys() | right_values.keys())
    ]


def _setting_text(settings: Mapping[str, Any], name: str) -> str:
    if name not in settings:
        return UNKNOWN
    value = settings[name]
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = sorted(value)  # PEFT writes `target_modules`, a set, in arbitrary order.
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text[:500]
