"""Run a config file and print its definition as JSON; explain failures.

::

    python execution.py CONFIG TrainingProject|DeployCheckpointsConfig

The interpreters of other environments run this script, so it uses only the standard library, and no syntax
newer than Python 3.8. If the official SDK is installed in that environment, it builds the payload, so that
the result is exactly its payload. Otherwise bt-tui's definitions are used, which need pydantic. Output of the
config goes to stderr. stdout gets one document: either ``{"definition": …}`` or ``{"failure": {"message",
"line"}}``.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import stat
import sys
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

_INTERPRETER_HINT = "if it is installed in another environment, pass that environment's Python with --python"


class ConfigFailure(Exception):
    """A config file that defines no valid config: the reason and, if known, the line (from 1)."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


def execute(path: str) -> ModuleType:
    """Run the file as the official SDK does and return its module.

    The module is named after the file but not registered, and the file's folder is not added to the
    import path. Raises ConfigFailure, except for KeyboardInterrupt.
    """
    file = Path(path).absolute()
    path = str(file)
    try:
        mode = file.stat().st_mode
        # Reading a pipe would wait for a writer.
        if file.suffix != ".py" or not stat.S_ISREG(mode):
            raise ConfigFailure("not a Python file; a config is a file such as config.py")
        content = file.read_bytes()
    except OSError as error:
        raise ConfigFailure(f"it can't be read: {error.strerror}") from None
    spec = importlib.util.spec_from_file_location(file.stem, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    try:
        exec(compile(content, path, "exec", dont_inherit=True), module.__dict__)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the file may raise anything, including SystemExit
        raise describe(error, path) from error
    return module


def only_instance(module: ModuleType, kind: type) -> Any:
    """Return the module's only instance of the class ``kind``. Raises ConfigFailure.

    An object with two names counts as two objects, as in the official SDK.
    """
    names = [name for name, value in vars(module).items() if issubclass(type(value), kind)]
    if len(names) == 1:
        return vars(module)[names[0]]
    if not names:
        raise ConfigFailure(f"it defines no {kind.__name__}; assign one to a name at the top level")
    names_text = ", ".join(sorted(names))
    raise ConfigFailure(f"it defines {len(names)} {kind.__name__} objects: {names_text}; define only one")


def raise_on_push(*_args: object, **_options: object) -> None:
    """Raise RuntimeError; replaces ``push`` while a config is loaded."""
    raise RuntimeError(
        "push() was called while this file was loaded as a config, so nothing was sent; "
        'call it in a separate script, or below if __name__ == "__main__":'
    )


def describe(error: BaseException, path: str) -> ConfigFailure:
    """Describe an exception that the file raised, in one message."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return ConfigFailure(f"{type(error).__name__}: {error.msg}", error.lineno)
    line, other_file_note = _locate(error.__traceback__, path)
    if isinstance(error, SystemExit):
        return ConfigFailure(f"it called exit({error.code!r}) while loading", line)
    return ConfigFailure(_explain(error) + other_file_note, line)


def _explain(error: BaseException) -> str:
    if type(error).__name__ == "ValidationError" and hasattr(error, "title"):
        return _explain_findings(error.title, error.errors())  # type: ignore[attr-defined]  # pydantic's
    name, text = type(error).__name__, str(error)
    message = _truncate(f"{name}: {text}" if text else name, 2000)
    if isinstance(error, ImportError):
        return f"{message}; {_import_hint(error)}"
    return message


def _explain_findings(title: str, findings: list[dict[str, Any]]) -> str:
    lines = []
    for finding in findings:
        location = ".".join([title, *(str(step) for step in finding["loc"])])
        text = str(finding["msg"])
        text = text.removeprefix("Value error, ")
        value = finding.get("input")
        # Values that are objects or lists are left out: they are long, and the location is enough.
        is_short = isinstance(value, (str, int, float, bool)) or value is None
        value_note = f" (got {_truncate(repr(value), 80)})" if is_short and finding["loc"] else ""
        lines.append(f"{location}: {text}{value_note}")
    return lines[0] if len(lines) == 1 else "\n  ".join(["several fields are invalid:", *lines])


def _import_hint(error: ImportError) -> str:
    name = (error.name or "").partition(".")[0]
    if name in ("truss", "truss_train"):
        return "only truss's training config names are available here; " + _INTERPRETER_HINT
    return _INTERPRETER_HINT


def _locate(trace: TracebackType | None, path: str) -> tuple[int | None, str]:
    """Return the last line executed in the config file, and a note if another file raised the error."""
    line, other_file_note = None, ""
    folder = Path(path).parent
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file == path:
            line, other_file_note = trace.tb_lineno, ""
        elif not file.startswith("<") and Path(file).absolute().parent == folder:
            other_file_note = f" (raised in {Path(file).name}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return line, other_file_note


def _truncate(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


_HERE = Path(__file__).absolute().parent
TRAINING = "TrainingProject"


def main(arguments: list[str]) -> None:
    """Load the config named by the arguments."""
    # Don't import from the script's own folder; the official command has no such path entry either.
    sys.path[:] = [entry for entry in sys.path if Path(entry).absolute() != _HERE]
    # Redirect the descriptor, because compiled code may write to it, too; stdout is only for the document.
    output = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    path, kind = str(Path(arguments[0]).absolute()), arguments[1]
    try:
        document = {"definition": _document(path, kind)}
        text = json.dumps(document)
    except ConfigFailure as failure:
        text = json.dumps({"failure": {"message": failure.message, "line": failure.line}})
    except (TypeError, ValueError) as error:
        text = json.dumps({"failure": {"message": f"it cannot be written as JSON: {error}", "line": None}})
    sys.stdout.flush()
    with output:
        output.write(text)


def _document(path: str, kind: str) -> Any:
    has_truss = importlib.util.find_spec("truss_train") is not None
    definitions = _official_definitions() if has_truss else _own_definitions()
    definition = only_instance(execute(path), getattr(definitions, kind))
    if kind == TRAINING:
        return {**definition.model_dump(exclude_none=True), "job": definition.job.model_dump()}
    return _deployment_document(definition)


def _official_definitions() -> Any:
    try:
        # Loading a config must not submit a job.
        for name in ("truss_train", "truss_train.public_api"):
            vars(importlib.import_module(name))["push"] = raise_on_push
        return importlib.import_module("truss_train.definitions")
    except Exception as error:
        raise ConfigFailure(f"truss is broken in {sys.executable}: {error}") from error


def _own_definitions() -> Any:
    try:
        # Import the package from here, without adding its folder to the import path.
        package = _HERE.parents[1]
        spec = importlib.util.spec_from_file_location(
            "api_client", str(package / "__init__.py"), submodule_search_locations=[str(package)]
        )
        assert spec is not None and spec.loader is not None
        sys.modules["api_client"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["api_client"])
        from api_client import definitions
        from api_client.submission.config_file.stand_ins import official_modules

        sys.modules.update(official_modules(raise_on_push))
    except Exception as error:
        raise ConfigFailure(
            f"{sys.executable} has no truss and can't use bt-tui's definitions (they need Python 3.11 and "
            f"pydantic 2): {error}"
        ) from error
    return definitions


def _deployment_document(config: Any) -> dict[str, Any]:
    # serialize_as_any includes the fields that subclasses of Checkpoint add.
    document: dict[str, Any] = config.model_dump(serialize_as_any=True)
    if config.compute is not None:
        document["compute"] = config.compute.model_dump()
    return document


if __name__ == "__main__":
    main(sys.argv[1:])
