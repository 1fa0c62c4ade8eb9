"""Replacements for the official SDK's modules, which configs and scripts import.

truss requires an older rich than textual does, so both cannot be installed in one environment.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from api_client import definitions
from api_client.definitions.deployment import DEPLOYED_CHECKPOINTS_FOLDER

_TRUSS_CONFIG_NAMES = (
    "Accelerator",
    "AcceleratorSpec",
    "DockerAuthType",
    "WeightsAuth",
    "WeightsAuthMethod",
    "WeightsSource",
)


def official_modules(push: Callable[..., Any]) -> dict[str, ModuleType]:
    """Create modules with the official names that contain our definitions and ``push``."""
    names = {
        name: value
        for name, value in vars(definitions).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    truss_config = _module(
        "truss.base.truss_config",
        DEFAULT_TRAINING_CHECKPOINT_FOLDER=DEPLOYED_CHECKPOINTS_FOLDER,
        **{name: names[name] for name in _TRUSS_CONFIG_NAMES},
    )
    base = _module("truss.base", __path__=[], truss_config=truss_config)
    truss = _module("truss", __path__=[], base=base, truss_config=truss_config)
    official_definitions = _module(
        "truss_train.definitions",
        DEFAULT_INTERACTIVE_SESSION_TIMEOUT_MINUTES=definitions.SESSION_TIMEOUT_MINUTES,
        truss_config=truss_config,
        **names,
    )
    public_api = _module("truss_train.public_api", push=push, TrainingProject=definitions.TrainingProject)
    train = _module(
        "truss_train",
        __path__=[],
        definitions=official_definitions,
        public_api=public_api,
        push=push,
        **names,
    )
    modules = (truss, base, truss_config, train, official_definitions, public_api)
    return {module.__name__: module for module in modules}


def _module(name: str, **contents: Any) -> ModuleType:
    module = ModuleType(name, "Stands in for the official module of this name.")
    vars(module).update(contents)
    return module
