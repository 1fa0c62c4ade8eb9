"""DeepSpeed: its optimizer line, its throughput timer, and its pipeline engine.

``steps: 4120 loss: 0.9132 iter time (s): 5.312 samples/sec: 24.1``
"""

from __future__ import annotations

import re

from tui.analysis.progress.patterns.reading import NUMBER, Reading, to_float, to_step

_OPTIMISER = re.compile(rf"\bstep=(\d+), skipped=\d+, lr=\[({NUMBER})")
_TIMER = re.compile(
    rf"\bglobal_step=(\d+), RunningAvgSamplesPerSec=(?:{NUMBER}), CurrSamplesPerSec=({NUMBER})"
)
_PIPELINE = re.compile(
    rf"\bsteps: (\d+) loss: ({NUMBER}) iter time \(s\): ({NUMBER}) samples/sec: ({NUMBER})"
)


def read(text: str) -> Reading | None:
    if "step=" not in text and "steps: " not in text:
        return None
    match = _OPTIMISER.search(text)
    if match is not None:
        return Reading(step=to_step(match[1]), learning_rate=to_float(match[2]))
    match = _TIMER.search(text)
    if match is not None:
        return Reading(step=to_step(match[1]), samples_per_s=to_float(match[2]))
    match = _PIPELINE.search(text)
    if match is None:
        return None
    return Reading(
        step=to_step(match[1]),
        loss=to_float(match[2]),
        step_time_s=to_float(match[3]),
        samples_per_s=to_float(match[4]),
    )
