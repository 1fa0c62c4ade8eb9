"""What running a command line gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """What a command line gave."""

    code: int
    out: str
    err: str


RunCli = Callable[..., Result]
