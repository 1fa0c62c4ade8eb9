"""The demo world, read from ``demo.toml``: its projects and all of its jobs."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from api_client.emulator.fleet.files import CACHES, CacheTree
from api_client.emulator.fleet.logs import Lines, RunLog, restarting
from api_client.emulator.fleet.plans import JobPlan, LineSource, Load, Saves, Scenario, SimRun
from api_client.emulator.fleet.training import TrainingCurves
from api_client.emulator.responses import ID_ALPHABET, ID_LENGTH
from api_client.models.logs import NS_PER_S


@dataclass(frozen=True, slots=True)
class ProjectPlan:
    """A project of the demo world and its age in days at the world's epoch."""

    name: str
    age_days: int

    @property
    def id(self) -> str:
        """Project id, the same in every world."""
        return demo_id("project", self.name)

    @property
    def age_ns(self) -> int:
        return self.age_days * 86_400 * NS_PER_S


def demo_id(kind: str, name: str) -> str:
    """Derive an id in the platform's format from kind and name, so that it is the same in every world."""
    number = int.from_bytes(sha256(f"{kind}:{name}".encode()).digest()[:8])
    return "".join(ID_ALPHABET[number // 30**digit % len(ID_ALPHABET)] for digit in range(ID_LENGTH))


@dataclass(frozen=True, slots=True)
class DemoScript:
    """Everything that a simulated world contains; ``caches`` are the cache contents by project name.

    A recreated job uses the plan of the original.
    """

    projects: tuple[ProjectPlan, ...]
    plans: tuple[JobPlan, ...]
    caches: Mapping[str, CacheTree]


def _merge_tables(defaults: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields with defaults, also for the fields of nested tables."""
    tables = {
        name: _merge_tables(defaults.get(name) or {}, value)
        for name, value in fields.items()
        if isinstance(value, dict)
    }
    return {**defaults, **fields, **tables}


def _with_inherited_fields(tables: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields; the table that ``like`` names has the defaults, which may inherit in turn."""
    if "like" not in fields:
        return dict(fields)
    resolved = _merge_tables(_with_inherited_fields(tables, tables[fields["like"]]), fields)
    return {name: value for name, value in resolved.items() if name != "like"}


def _parse_lines(toml: Mapping[str, Any], groups: Mapping[str, Any]) -> list[Lines]:
    return [
        _LINES_ADAPTER.validate_python(_with_inherited_fields(toml["lines"], fields))
        for fields in groups.values()
    ]


def _parse_scenario(toml: Mapping[str, Any], name: str) -> Scenario:
    fields = _with_inherited_fields(toml["scenarios"], toml["scenarios"][name])
    trainer = _parse_lines(toml, _with_inherited_fields(toml["trainers"], fields.pop("log")))

    def log(run: SimRun) -> Sequence[LineSource]:
        return [source for lines in trainer for source in lines(run)]

    run_log: RunLog = log
    if restarts := fields.pop("restarts", None):
        run_log = restarting(log, **restarts)
    saves, incidents = fields.pop("saves", None), fields.pop("incidents", {})
    return Scenario(
        curves=TypeAdapter(TrainingCurves).validate_python(fields.pop("curves")),
        log=run_log,
        load=TypeAdapter(Load).validate_python(fields.pop("load", {})),
        saves=Saves(**saves) if saves else None,
        incidents=tuple(_parse_lines(toml, toml["always"] | incidents)),
        **fields,
    )


def _demo_script() -> DemoScript:
    toml = tomllib.loads(Path(__file__).with_name("demo.toml").read_text(encoding="utf-8"))
    scenarios = {name: _parse_scenario(toml, name) for name in toml["scenarios"]}
    jobs = (job | {"scenario": scenarios[job["scenario"]]} for job in toml["jobs"])
    return DemoScript(
        projects=tuple(ProjectPlan(name, age_days) for name, age_days in toml["projects"].items()),
        plans=tuple(map(_PLAN_ADAPTER.validate_python, jobs)),
        caches=CACHES,
    )


_LINES_ADAPTER, _PLAN_ADAPTER = TypeAdapter(Lines), TypeAdapter(JobPlan)
DEMO_SCRIPT = _demo_script()
