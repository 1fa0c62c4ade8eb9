"""Served models and their deployments.

A deployment is stored as decided: its configuration and whether it will fail. Its status follows from its
creation time, so it changes with the clock even while no emulator is running.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import asdict, dataclass
from datetime import datetime

from api_client.emulator.formats import iso, moment, new_id
from api_client.emulator.store.database import Database

SCHEMA = """
CREATE TABLE IF NOT EXISTS served_models (
    id TEXT PRIMARY KEY, team_id TEXT NOT NULL, name TEXT NOT NULL, created_at TEXT NOT NULL,
    deployments_made INTEGER NOT NULL DEFAULT 0, UNIQUE (team_id, name)
);
CREATE TABLE IF NOT EXISTS served_deployments (
    id TEXT PRIMARY KEY, model_id TEXT NOT NULL REFERENCES served_models (id) ON DELETE CASCADE,
    number INTEGER NOT NULL, created_at TEXT NOT NULL, is_production INTEGER NOT NULL, plan TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS served_deployments_by_model ON served_deployments (model_id, number);
"""


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model: a name within a team."""

    id: str
    team_id: str
    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class DeploymentPlan:
    """The decisions made when a deployment is requested.

    ``truss_config`` is the rendered configuration as JSON text. ``served_names`` are the model names that
    requests use. ``warnings`` go to the log. ``failure`` is the reason why it will not start, None if it
    will.
    """

    instance_type_id: str
    truss_config: str
    served_names: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class StoredDeployment:
    """A deployment of a model. A model's first deployment is its production deployment."""

    id: str
    model_id: str
    number: int
    created_at: datetime
    is_production: bool
    plan: DeploymentPlan

    @property
    def name(self) -> str:
        return f"deployment-{self.number}"


class DeploymentStore:
    """Models by id, or by name within a team; deployments by model."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.create(SCHEMA)

    def add(self, model_name: str, team_id: str, plan: DeploymentPlan, now: datetime) -> StoredDeployment:
        """Add a deployment to the team's model with that name, creating the model if necessary."""
        with self._database.transaction():
            model = self._upsert_model(model_name, team_id, now)
            deployment = StoredDeployment(
                id=new_id(),
                model_id=model["id"],
                number=model["deployments_made"] + 1,
                created_at=now,
                is_production=self._production_of(model["id"]) is None,
                plan=plan,
            )
            self._database.write(
                "UPDATE served_models SET deployments_made = ? WHERE id = ?",
                (deployment.number, deployment.model_id),
            )
            self._insert(deployment)
        return deployment

    def models(self) -> list[StoredModel]:
        rows = self._database.rows("SELECT * FROM served_models ORDER BY created_at DESC, id")
        return [_model(row) for row in rows]

    def model(self, model_id: str) -> StoredModel | None:
        row = self._database.row("SELECT * FROM served_models WHERE id = ?", (model_id,))
        return None if row is None else _model(row)

    def of(self, model_id: str) -> list[StoredDeployment]:
        rows = self._database.rows(
            "SELECT * FROM served_deployments WHERE model_id = ? ORDER BY number DESC", (model_id,)
        )
        return [_deployment(row) for row in rows]

    def get(self, model_id: str, deployment_id: str) -> StoredDeployment | None:
        row = self._database.row(
            "SELECT * FROM served_deployments WHERE model_id = ? AND id = ?", (model_id, deployment_id)
        )
        return None if row is None else _deployment(row)

    def delete_model(self, model_id: str) -> None:
        """Delete a model and its deployments."""
        self._database.write("DELETE FROM served_models WHERE id = ?", (model_id,))

    def delete(self, deployment_id: str) -> None:
        self._database.write("DELETE FROM served_deployments WHERE id = ?", (deployment_id,))

    def _upsert_model(self, name: str, team_id: str, now: datetime) -> sqlite3.Row:
        self._database.insert(
            "served_models", "IGNORE", id=new_id(), team_id=team_id, name=name, created_at=iso(now)
        )
        row = self._database.row(
            "SELECT * FROM served_models WHERE team_id = ? AND name = ?", (team_id, name)
        )
        assert row is not None
        return row

    def _production_of(self, model_id: str) -> sqlite3.Row | None:
        return self._database.row(
            "SELECT id FROM served_deployments WHERE model_id = ? AND is_production", (model_id,)
        )

    def _insert(self, deployment: StoredDeployment) -> None:
        self._database.insert(
            "served_deployments",
            id=deployment.id,
            model_id=deployment.model_id,
            number=deployment.number,
            created_at=iso(deployment.created_at),
            is_production=deployment.is_production,
            plan=json.dumps(asdict(deployment.plan)),
        )


def _model(row: sqlite3.Row) -> StoredModel:
    return StoredModel(row["id"], row["team_id"], row["name"], moment(row["created_at"]))


def _deployment(row: sqlite3.Row) -> StoredDeployment:
    plan = json.loads(row["plan"])
    lists = {name: tuple(plan[name]) for name in ("served_names", "warnings")}
    return StoredDeployment(
        id=row["id"],
        model_id=row["model_id"],
        number=row["number"],
        created_at=moment(row["created_at"]),
        is_production=bool(row["is_production"]),
        plan=DeploymentPlan(**{**plan, **lists}),
    )
