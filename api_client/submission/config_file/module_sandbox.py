"""Stand-ins for the official SDK's modules while a config runs.

truss pins an older rich than textual needs, so the two never share an environment, but configs import
truss anyway.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
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
    return name.partition(".")[0] in OFFICIAL_ROOTS


def official_modules(push: Push) -> dict[str, ModuleType]:
    """Create modules under their official names that hold our definitions and ``push``."""
    names = {
        name: value
        for name, value in vars(definitions).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
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


_ONE_AT_A_TIME = threading.RLock()  # the changes made here are process-wide, so files run one at a time


class _SandboxFinder(MetaPathFinder, Loader):
    """Import finder that provides the stand-in modules and records the imports of each thread."""

    def __init__(self, modules: Mapping[str, ModuleType]) -> None:
        self._modules = modules
        self._thread = threading.get_ident()
        self.found_here: set[str] = set()
        self.found_elsewhere: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        is_here = threading.get_ident() == self._thread
        (self.found_here if is_here else self.found_elsewhere).add(fullname)
        module = self._modules.get(fullname)
        if module is None:
            return None
        return ModuleSpec(fullname, self, is_package=hasattr(module, "__path__"))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._modules[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the modules are already populated."""


@contextmanager
def module_sandbox(sandbox_modules: Mapping[str, ModuleType]) -> Iterator[None]:
    """Let imports find ``sandbox_modules``; restore everything on exit.

    Restores ``sys.modules``, ``sys.meta_path``, ``sys.path`` and the working directory. Output is
    redirected to stderr, and no bytecode is written. Installed packages imported in the meantime stay
    loaded, because many of them (numpy, torch) cannot be imported twice in one process.
    """
    with _ONE_AT_A_TIME, _restore_paths(), redirect_stdout(sys.stderr):
        official = {name: module for name, module in sys.modules.items() if is_official(name)}
        for name in official:
            del sys.modules[name]
        before = set(sys.modules)
        finder = _SandboxFinder(sandbox_modules)
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            with suppress(ValueError):
                sys.meta_path.remove(finder)
            for name in _new_modules(before, finder):
                del sys.modules[name]
            sys.modules.update(official)


@contextmanager
def _restore_paths() -> Iterator[None]:
    import_path, writes_bytecode = list(sys.path), sys.dont_write_bytecode
    folder = _working_directory()
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.path[:] = import_path
        sys.dont_write_bytecode = writes_bytecode
        if folder is not None and _working_directory() != folder:
            os.chdir(folder)


def _working_directory() -> Path | None:
    try:
        return Path.cwd()
    except FileNotFoundError:  # removed by someone else
        return None


def _new_modules(before: set[str], finder: _SandboxFinder) -> list[str]:
    """Return the modules that only this thread has loaded and that can be unloaded."""
    installed = _installed_roots()
    elsewhere = finder.found_elsewhere - finder.found_here
    return [
        name
        for name in list(sys.modules)
        if name not in before and name not in elsewhere and not _stays(name, before, installed)
    ]


def _stays(name: str, before: set[str], installed: tuple[str, ...]) -> bool:
    if is_official(name):
        return False
    root = name.partition(".")[0]
    if root in before:
        # A submodule of a package that this process uses anyway.
        return root not in sys.stdlib_module_names
    module = sys.modules.get(root)
    spec = getattr(module, "__spec__", None)
    places = [getattr(spec, "origin", None), *(getattr(module, "__path__", None) or ())]
    return any(isinstance(path, str) and path.startswith(installed) for path in places)


def _installed_roots() -> tuple[str, ...]:
    folders = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()}
    if site.ENABLE_USER_SITE:
        folders.add(site.getusersitepackages())
    return tuple(folder + os.sep for folder in sorted(folders))
