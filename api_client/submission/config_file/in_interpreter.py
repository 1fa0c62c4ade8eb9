"""Script run by another environment's interpreter: load a config there and print it as JSON.

::

    python in_interpreter.py CONFIG TrainingProject|DeployCheckpointsConfig

If the official SDK is installed there, it builds the payload, so that the result is exactly its payload.
Otherwise our definitions are used, which need pydantic. Output of the config goes to stderr. stdout gets
one document: either ``{"definition": …}`` or ``{"failure": {"message", "line"}}``.

Uses only the standard library, and no syntax newer than Python 3.8.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

_HERE = Path(__file__).absolute().parent
_PACKAGE = _HERE.parents[1]
TRAINING = "TrainingProject"


def main(arguments: list[str]) -> None:
    """Load the config named by the arguments."""
    # Don't import from the script's own folder; the official command has no such path entry either.
    sys.path[:] = [entry for entry in sys.path if Path(entry).absolute() != _HERE]
    # Even output that compiled code writes to stdout must not mix with the document.
    output = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    execution = _read_module("bt_tui_config_execution", _HERE / "execution.py")
    path, kind = str(Path(arguments[0]).absolute()), arguments[1]
    try:
        document = {"definition": _load(execution, path, kind)}
        text = json.dumps(document)
    except execution.ConfigFailure as failure:
        text = json.dumps({"failure": {"message": failure.message, "line": failure.line}})
    except (TypeError, ValueError) as error:
        text = json.dumps({"failure": {"message": f"it cannot be written as JSON: {error}", "line": None}})
    sys.stdout.flush()
    output.write(text)
    output.flush()


def _load(execution: ModuleType, path: str, kind: str) -> Any:
    has_truss = importlib.util.find_spec("truss_train") is not None
    definitions, sandbox = (_official if has_truss else _own)(execution)
    with sandbox:
        module = execution.execute(path)
    definition = execution.only_one(module, getattr(definitions, kind))
    return _training_document(definition) if kind == TRAINING else _deployment_document(definition)


def _official(execution: ModuleType) -> Any:
    """Return truss's definitions, and a context in which they are used."""
    try:
        # Reading a config never sends a request, here as in the main process.
        for name in ("truss_train", "truss_train.public_api"):
            vars(importlib.import_module(name))["push"] = execution.refuse_to_push
        return importlib.import_module("truss_train.definitions"), nullcontext()
    except Exception as error:
        raise execution.ConfigFailure(f"truss is broken in {sys.executable}: {error}") from error


def _own(execution: ModuleType) -> Any:
    """Return our definitions, and a context in which they are used."""
    try:
        _read_module("api_client", _PACKAGE / "__init__.py", [str(_PACKAGE)])
        from api_client import definitions
        from api_client.submission.config_file.module_sandbox import module_sandbox, official_modules
    except Exception as error:
        raise execution.ConfigFailure(
            f"{sys.executable} has no truss and can't use bt-tui's definitions (they need Python 3.11 and "
            f"pydantic 2): {error}"
        ) from error
    return definitions, module_sandbox(official_modules(execution.refuse_to_push))


def _training_document(project: Any) -> dict[str, Any]:
    return {**project.model_dump(exclude_none=True), "job": project.job.model_dump()}


def _deployment_document(config: Any) -> dict[str, Any]:
    document: dict[str, Any] = config.model_dump()
    if config.checkpoint_details is not None:
        # Dump them one by one: as members of a list they would lose the fields that their subclasses add.
        checkpoints = [checkpoint.model_dump() for checkpoint in config.checkpoint_details.checkpoints]
        document["checkpoint_details"]["checkpoints"] = checkpoints
    if config.compute is not None:
        document["compute"] = config.compute.model_dump()
    return document


def _read_module(name: str, path: Path, folders: list[str] | None = None) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=folders)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot read {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(sys.argv[1:])
