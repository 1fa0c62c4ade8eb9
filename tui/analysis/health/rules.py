"""The thresholds of health checks, which are settings."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

LimitsT = TypeVar("LimitsT")


def limit(default: float, doc: str) -> Any:
    """Return a field for a threshold of a check; ``doc`` is shown in the documentation of the settings."""
    return field(default=default, metadata={"doc": doc})


@dataclass(frozen=True, slots=True)
class NoLimits:
    """For checks without thresholds."""


@dataclass(frozen=True)
class HealthRules:
    """Settings of all checks. The subclass ``Thresholds`` adds the thresholds of each check."""

    off: frozenset[str] = field(
        default=frozenset(), metadata={"doc": 'Kinds of findings to disable, as in `["queued"]`.'}
    )
    release: float = limit(
        0.25,
        "How far a value must move back toward its healthy level to clear a finding, as a share of the way.",
    )

    def limits(self, limits_class: type[LimitsT]) -> LimitsT:
        """Return the thresholds of one check as an instance of its class."""
        names = (threshold.name for threshold in fields(limits_class))  # type: ignore[arg-type]
        return limits_class(**{name: getattr(self, name) for name in names if hasattr(self, name)})


DEFAULT_RULES = HealthRules()
