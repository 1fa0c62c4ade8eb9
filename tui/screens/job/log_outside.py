"""Show lines of a log in the person's own pager or editor."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

Program = Literal["pager", "editor"]

_ASKED: dict[Program, tuple[str, ...]] = {"pager": ("PAGER",), "editor": ("VISUAL", "EDITOR")}
_ELSE: dict[Program, tuple[str, ...]] = {
    "pager": ("less", "more"),
    "editor": ("nano", "vim", "vi"),
}


def program_of(kind: Program, environ: Mapping[str, str]) -> list[str] | None:
    """The command with its arguments: what the environment names, else what this machine has; or None."""
    for name in _ASKED[kind]:
        try:
            words = shlex.split(environ.get(name, ""))
        except ValueError:
            continue  # a quote without its end
        if words:
            return words
    return next(([name] for name in _ELSE[kind] if shutil.which(name)), None)


def show_in(command: list[str], rows: Iterable[str], name: str) -> int:
    """Give the rows to a program in a file that only this person can read, gone afterwards.

    Blocks until the program ends, as it has the terminal; returns its exit status. The rows must be
    inert: a pager such as ``less -R`` passes escape sequences on. Raises OSError if it cannot be started.
    """
    folder = tempfile.mkdtemp(prefix="bt-tui-")  # mode 0700
    path = Path(folder) / f"{name}.log"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(f"{row}\n" for row in rows)
        return subprocess.run([*command, str(path)], check=False).returncode
    finally:
        shutil.rmtree(folder, ignore_errors=True)
