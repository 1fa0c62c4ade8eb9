"""Served models and their deployments.

A deployment is stored as decided: its configuration, whether it will fail, and the changes requested since.
Its status follows from when these happened, so it changes with the clock even while no emulator is running.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from api_client.emulator.formats import new_id
from api_client.emulator.store.database import Database, Records


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
class Change:
    """A change that was requested: start again (built again or not), or stop."""

    at: datetime
    kind: Literal["retry", "activate", "deactivate"]


@dataclass(frozen=True, slots=True)
class StoredDeployment:
    """A deployment of a model. A model's first deployment is its production deployment."""

    id: str
    model_id: str
    number: int
    created_at: datetime
    is_production: bool
    plan: DeploymentPlan
    changes: tuple[Change, ...] = ()

    @property
    def name(self) -> str:
        return f"deployment-{self.number}"


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model: a name within a team, and its deployments, the newest first."""

    id: str
    team_id: str
    name: str
    created_at: datetime
    deployments: tuple[StoredDeployment, ...] = ()
    deployments_made: int = 0

    @property
    def production(self) -> StoredDeployment | None:
        return next((deployment for deployment in self.deployments if deployment.is_production), None)


class DeploymentStore:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._models = Records(database, "served_models", StoredModel)

    def add(self, model_name: str, team_id: str, plan: DeploymentPlan, now: datetime) -> StoredDeployment:
        with self._database.transaction():  # one deployment at a time
            models = {(model.team_id, model.name): model for model in self._models.all()}
            model = models.get((team_id, model_name)) or StoredModel(new_id(), team_id, model_name, now)
            number = model.deployments_made + 1
            made = StoredDeployment(new_id(), model.id, number, now, model.production is None, plan)
            self.put(replace(model, deployments=(made, *model.deployments), deployments_made=number))
        return made

    def put(self, model: StoredModel) -> None:
        self._models.put(model.id, model)

    def models(self) -> list[StoredModel]:
        """Return all models, the newest first."""
        return self._models.all()[::-1]

    def model(self, model_id: str) -> StoredModel | None:
        return self._models.get(model_id)

    def delete_model(self, model_id: str) -> None:
        self._models.delete(model_id)

    def change(self, model_id: str, changed: Callable[[StoredDeployment], StoredDeployment | None]) -> None:
        """Replace each deployment of the model by what ``changed`` returns; None deletes it."""
        with self._database.transaction():
            if (model := self._models.get(model_id)) is not None:
                self.put(replace(model, deployments=tuple(filter(None, map(changed, model.deployments)))))
