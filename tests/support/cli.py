"""What running a command line gives."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Result:
    """What a command line gave; ``json``, ``ndjson`` and ``csv`` read its standard output as that."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def ndjson(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def csv(self) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.out, newline="")))


Start = Callable[..., subprocess.Popen[str]]
"""Start a command line in a process of its own."""
RunCli = Callable[..., Result]
"""Run a command line: its words, or all of it in one string, quoted as for a shell.

It has to succeed, or end with the ``code`` that is given; None is any.
"""
