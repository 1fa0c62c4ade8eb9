"""All checks, and their thresholds as settings."""

from __future__ import annotations

from dataclasses import field, fields, make_dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from tui.analysis.health import checks
from tui.analysis.health.check import Check
from tui.analysis.health.rules import HealthRules


def _checks() -> tuple[Check[Any], ...]:
    names = [module.name for module in iter_modules(checks.__path__)]
    modules = [import_module(f"{checks.__name__}.{name}") for name in names]
    defined = (each for module in modules for each in vars(module).values() if isinstance(each, Check))
    return tuple(sorted(defined, key=lambda check: check.kind.rank))


CHECKS = _checks()
"""All checks, the most urgent first."""

KINDS = {str(check.kind): check.kind for check in CHECKS}
"""The kinds of findings by name."""


def _threshold_fields() -> list[tuple[str, Any, Any]]:
    """Return the thresholds of all checks as dataclass fields; several checks may share a threshold."""
    limits = {threshold.name: threshold for check in CHECKS for threshold in fields(check.limits)}
    return [
        (name, type(each.default), field(default=each.default, metadata=each.metadata))
        for name, each in limits.items()
    ]


Thresholds: type[HealthRules] = make_dataclass(
    "Thresholds",
    _threshold_fields(),
    bases=(HealthRules,),
    namespace={"__module__": __name__},  # they are pickled for the process that analyzes a recording
    frozen=True,
)
"""All thresholds: the settings of ``[health]``."""
