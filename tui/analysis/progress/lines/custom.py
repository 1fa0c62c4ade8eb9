"""User-defined patterns for custom trainers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import re2

from tui.analysis.logs.pattern import LogPattern
from tui.analysis.progress.lines.reading import ParsedMetrics
from tui.analysis.progress.lines.template import Slot, Template

_FIELDS = {
    "step": "step",
    "total": "total_steps",
    "epoch": "epoch",
    "epochs": "total_epochs",
    "loss": "loss",
    "eval_loss": "eval_loss",
    "lr": "learning_rate",
    "grad_norm": "grad_norm",
    "tokens_per_s": "tokens_per_s",
    "samples_per_s": "samples_per_s",
    "step_time_s": "step_time_s",
    "step_time_ms": "step_time_s",
    "rank": "rank",
}
GROUPS = (*_FIELDS, "checkpoint")
"""The groups that have a meaning; any other is a metric of its own."""

_DIALECT = "patterns are RE2's: no look-around, back-references or possessive quantifiers"


@dataclass(frozen=True, slots=True)
class ProgressPattern:
    """A regular expression with named groups that parses one line: ``GROUPS``, and metrics.

    ``regex`` is searched anywhere in a line, after escape sequences have been removed. It uses RE2, so
    that no line takes more than linear time, whatever a trainer prints: look-around, back-references and
    possessive quantifiers are not supported. Raises ValueError with the reason if the expression is not
    supported or has no named group.
    """

    name: str
    regex: str

    def __post_init__(self) -> None:
        problem = LogPattern(self.regex, regex=True, case=True).problem
        if problem:
            raise ValueError(f"pattern {self.name!r}: {problem} ({_DIALECT})")
        if not _compile(self.regex)[0].groupindex:
            raise ValueError(f"pattern {self.name!r} names no group such as (?P<loss>…)")

    def read(self, text: str) -> ParsedMetrics | None:
        """Parse a line that matches; None for others, and if no group contains a number."""
        compiled, template = _compile(self.regex)
        try:
            match = compiled.search(text)
        except UnicodeEncodeError:  # a lone surrogate
            match = compiled.search(text.encode("utf-8", "replace").decode())
        if match is None:
            return None
        groups = match.groupdict(default="")
        if groups.get("checkpoint"):
            return ParsedMetrics(checkpoint=groups["checkpoint"].strip()[:120])
        return template.read([groups[name].strip() for name in sorted(groups)])


@cache
def _compile(regex: str) -> tuple[Any, Template]:
    """Return the expression and the template of its groups, sorted by name."""
    compiled = re2.compile(regex)
    groups = list(enumerate(sorted(compiled.groupindex)))
    slots = tuple(
        Slot(index, _FIELDS[name], name, 1e-3 if name == "step_time_ms" else 1.0)
        for index, name in groups
        if name in _FIELDS
    )
    metrics = tuple((index, name) for index, name in groups if name not in GROUPS)
    return compiled, Template(slots, metrics=metrics)
