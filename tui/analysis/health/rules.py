"""The thresholds of health checks, which are settings."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

LimitsT = TypeVar("LimitsT")


def limit(default: float, doc: str) -> Any:
    """Return a field of a check's limits; the description ends up in the settings."""
    return field(default=default, metadata={"doc": doc})


@dataclass(frozen=True, slots=True)
class NoLimits:
    """The limits of a check that has none."""


@dataclass(frozen=True)
class HealthRules:
    """Rules that apply to all checks. The settings' own class, ``Thresholds``, adds the limits of each."""

    off: frozenset[str] = field(
        default=frozenset(), metadata={"doc": 'Kinds of findings to disable, as in `["queued"]`.'}
    )
    release: float = limit(
        0.25,
        "How far a value must move back toward its healthy level to clear a finding, as a share of the way.",
    )

    def limits(self, kind: type[LimitsT]) -> LimitsT:
        """Return the limits of one check."""
        names = (threshold.name for threshold in fields(kind))  # type: ignore[arg-type]
        return kind(**{name: getattr(self, name) for name in names if hasattr(self, name)})


DEFAULT_RULES = HealthRules()
