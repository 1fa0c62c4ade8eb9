"""The official SDK's import names, standing in for it while a config is run.

truss pins an older rich than textual needs, so the two never share an environment; configs import it all the
same.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from api_client import definitions
from api_client.definitions.deployment import DEPLOYED_CHECKPOINTS_FOLDER

OFFICIAL_ROOTS = ("truss", "truss_train")

_TRUSS_CONFIG = (
    "Accelerator",
    "AcceleratorSpec",
    "DockerAuthType",
    "WeightsAuth",
    "WeightsAuthMethod",
    "WeightsSource",
)

Push = Callable[..., Any]


def is_official(name: str) -> bool:
    """Whether a module's name belongs to the official SDK."""
    return name.partition(".")[0] in OFFICIAL_ROOTS


def official_modules(push: Push) -> dict[str, ModuleType]:
    """New modules by their official names, holding our definitions and ``push``."""
    names = {name: getattr(definitions, name) for name in definitions.__all__}
    truss_config = _module(
        "truss.base.truss_config",
        DEFAULT_TRAINING_CHECKPOINT_FOLDER=DEPLOYED_CHECKPOINTS_FOLDER,
        **{name: names[name] for name in _TRUSS_CONFIG},
    )
    base = _package("truss.base", truss_config=truss_config)
    truss = _package("truss", base=base, truss_config=truss_config)
    official_definitions = _module(
        "truss_train.definitions",
        DEFAULT_INTERACTIVE_SESSION_TIMEOUT_MINUTES=definitions.SESSION_TIMEOUT_MINUTES,
        truss_config=truss_config,
        **names,
    )
    public_api = _module("truss_train.public_api", push=push, TrainingProject=definitions.TrainingProject)
    train = _package(
        "truss_train", definitions=official_definitions, public_api=public_api, push=push, **names
    )
    modules = (truss, base, truss_config, train, official_definitions, public_api)
    return {module.__name__: module for module in modules}


def _module(name: str, **contents: Any) -> ModuleType:
    module = ModuleType(name, "Stands in for the official module of this name.")
    vars(module).update(contents)
    return module


def _package(name: str, **contents: Any) -> ModuleType:
    return _module(name, __path__=[], **contents)
