"""Run a config file, and explain failures.

Uses only the standard library, and no syntax newer than Python 3.8, because the interpreters of other
environments also import this file (``in_interpreter.py``).
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

_SANDBOX_MODULES = ("truss", "truss_train")
_LONGEST_VALUE = 80
_LONGEST_MESSAGE = 2000
_INTERPRETER_HINT = "if it is installed in another environment, pass that environment's Python with --python"


class ConfigFailure(Exception):
    """A config file that does not yield a config: the reason and, if known, the line (counted from 1)."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


def execute(path: str) -> ModuleType:
    """Run the file as the official SDK does and return its module (API facts, 3.4).

    The module is named after the file but not registered, and the file's folder is not added to the
    import path. Raises ConfigFailure whatever the file raises, except for KeyboardInterrupt.
    """
    file = Path(path).absolute()
    if not file.is_file():
        reason = "is a folder" if file.is_dir() else "does not exist"
        raise ConfigFailure(f"it {reason}; give the Python file that defines the config")
    path = str(file)
    spec = importlib.util.spec_from_file_location(file.stem, path)
    if spec is None or file.suffix != ".py":
        raise ConfigFailure("not a Python file; a config's name ends in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        exec(compile(file.read_bytes(), path, "exec", dont_inherit=True), module.__dict__)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the file may raise anything, including SystemExit
        raise describe(error, path) from error
    return module


def only_one(module: ModuleType, wanted: type) -> Any:
    """Return the module's only instance of a class.

    An object with two names counts as two, as in the official SDK.
    """
    names = [name for name, value in vars(module).items() if issubclass(type(value), wanted)]
    if len(names) == 1:
        return vars(module)[names[0]]
    if not names:
        raise ConfigFailure(f"it defines no {wanted.__name__}; assign one to a name at the top level")
    listed = ", ".join(sorted(names))
    raise ConfigFailure(f"it defines {len(names)} {wanted.__name__} objects: {listed}; define only one")


def refuse_to_push(*_args: object, **_options: object) -> None:
    """Replace ``push`` while a file is only read."""
    raise RuntimeError(
        "push() was called while this file was loaded as a config, so nothing was sent; "
        'call it in a separate script, or below if __name__ == "__main__":'
    )


def describe(error: BaseException, path: str) -> ConfigFailure:
    """Describe the error raised by a file, in one message."""
    if isinstance(error, ConfigFailure):
        return error
    if isinstance(error, SyntaxError) and error.filename == path:
        return ConfigFailure(f"{type(error).__name__}: {error.msg}", error.lineno)
    line, elsewhere = _place(error.__traceback__, path)
    if isinstance(error, SystemExit):
        return ConfigFailure(f"it called exit({error.code!r}) while loading", line)
    return ConfigFailure(_explain(error) + elsewhere, line)


def _explain(error: BaseException) -> str:
    findings = getattr(error, "errors", None)
    if callable(findings) and hasattr(error, "title"):
        try:
            return _explain_findings(str(error.title), findings())
        except Exception:  # noqa: BLE001, S110 -- some other class with such a method; its text will do
            pass
    message = _one_line(error)
    if isinstance(error, ImportError):
        return f"{message}; {_import_hint(error)}"
    return message


def _explain_findings(title: str, findings: list[dict[str, Any]]) -> str:
    lines = []
    for finding in findings:
        place = ".".join([title, *(str(step) for step in finding["loc"])])
        text = str(finding["msg"])
        text = text.removeprefix("Value error, ")
        value = finding.get("input")
        # Objects and groups of fields are left out: they are too long, and the location names them.
        is_short = isinstance(value, (str, int, float, bool)) or value is None
        got = f" (got {_clipped(repr(value), _LONGEST_VALUE)})" if is_short and finding["loc"] else ""
        lines.append(f"{place}: {text}{got}")
    return lines[0] if len(lines) == 1 else "\n  ".join(["several fields are invalid:", *lines])


def _import_hint(error: ImportError) -> str:
    name = (error.name or "").partition(".")[0]
    if name in _SANDBOX_MODULES:
        return "only truss's training config names are available here; " + _INTERPRETER_HINT
    return _INTERPRETER_HINT


def _place(trace: TracebackType | None, path: str) -> tuple[int | None, str]:
    """Return the last line run in the config file, and the origin of the error if that is another file."""
    line, deepest = None, ""
    folder = Path(path).parent
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file == path:
            line, deepest = trace.tb_lineno, ""
        elif not file.startswith("<") and Path(file).absolute().parent == folder:
            deepest = f" (raised in {Path(file).name}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return line, deepest


def _one_line(error: BaseException) -> str:
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 -- an exception of the user's own, with a broken __str__
        text = ""
    return _clipped(f"{name}: {text}" if text else name, _LONGEST_MESSAGE)


def _clipped(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
