"""Read what other lines say of a step: the length of its inputs, or that it was skipped."""

from __future__ import annotations

import re

MAX_CHARACTERS = 512
MAX_SKIPPED = 10
"""Number of newest skipped steps to keep."""

_LENGTH = re.compile(r"\bseq(?:uence)?[_. -]{0,2}len(?:gth)?\W{1,4}(\d{2,7})\b", re.IGNORECASE)
_SKIPPED = re.compile(
    r"\boverflow\b.{0,60}\bskipping (?:the )?step|\bskipping (?:the )?step\b.{0,60}\boverflow", re.IGNORECASE
)


def announced_input_length(message: str) -> int | None:
    """Return the length of sequences that a line names: curricula begin with short ones."""
    head = message[:MAX_CHARACTERS]
    found = _LENGTH.search(head) if "eq" in head else None
    return int(found[1]) if found else None


def announces_skipped_step(message: str) -> bool:
    """Return True if a line says that a step was skipped because its gradients overflowed."""
    head = message[:MAX_CHARACTERS]
    return "kipping" in head and _SKIPPED.search(head) is not None
