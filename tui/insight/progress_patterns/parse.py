"""The door: a quick look whether a line can tell anything, then the families in turn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tui.insight.progress_patterns import (
    announced,
    bars,
    checkpoints,
    deepspeed,
    json_lines,
    keras,
    keyed,
    megatron,
    nemo,
    python_dicts,
    torchtitan,
    verl,
)
from tui.insight.progress_patterns.own import ProgressPattern
from tui.insight.progress_patterns.reading import Reading
from tui.insight.text import last_carriage_segment, strip_ansi

MAX_CHARACTERS = 8192
"""Longer lines are no progress lines; reading them would only cost time."""

_HINTS = ("loss", "step", "it/s", "s/it", "iter", "epoch", "checkpoint", "ckpt", "sav")
"""No family's line is without one of these (lower case)."""

# torchrun's [rank0]: and [default0]:, srun's 0:, mpirun's [1,0]<stdout>: and home-made ones.
_RANK = re.compile(
    r"^\s*(?:\[(?:rank|default|Rank |Rank:? ?|RANK |local_rank )(\d{1,5})\]:?|\[\d+,(\d{1,5})\]<std\w{3}>:?"
    r"|(\d{1,5}): (?=\S)|(?:rank|Rank)[ :=](\d{1,5})(?:\]|:|,| \|| -)(?=\s))"
)

# From the most particular to the most general: a general family would read part of a particular line.
_FAMILIES = (
    python_dicts.read,
    json_lines.read,
    bars.read,
    keras.read,
    nemo.read,
    megatron.read,
    torchtitan.read,
    verl.read,
    deepspeed.read,
    checkpoints.read,
    keyed.read,
    announced.read,
)


def parse(message: str, patterns: Sequence[ProgressPattern] = ()) -> Reading | None:
    """What a log line tells about the training's progress; ``None`` when it is no such line.

    Of a line that a progress bar overwrote, what it showed last counts. NaN and infinite losses are
    kept: they are what a person needs to see. Never raises, whatever the text. The user's own
    ``patterns`` are tried first, on any line.
    """
    if len(message) > MAX_CHARACTERS:
        overwritten = message[-MAX_CHARACTERS:]
        if "\r" not in overwritten:
            return None
        message = last_carriage_segment(overwritten)
    for pattern in patterns:
        reading = pattern.read(strip_ansi(last_carriage_segment(message)))
        if reading is not None:
            return reading
    lowered = message.lower()
    for hint in _HINTS:
        if hint in lowered:
            break
    else:
        return None
    text = strip_ansi(last_carriage_segment(message)).replace("\b", "")  # Keras goes back by backspaces
    rank = _RANK.match(text)
    if rank is not None:
        text = text[rank.end() :]
    for read in _FAMILIES:
        reading = read(text)
        if reading is not None:
            return reading if rank is None else replace(reading, rank=int(rank[rank.lastindex or 1]))
    return None
