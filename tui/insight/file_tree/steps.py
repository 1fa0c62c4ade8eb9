"""Work in steps: a generator that pauses often and returns its result."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

Result = TypeVar("Result")

Steps = Generator[float, None, Result]
"""Yields how much is done, from 0 to 1, every few milliseconds; returns the result."""

STEP_ITEMS = 500
"""Items between two pauses: a few milliseconds of the slowest kind of work here."""


def finish(steps: Steps[Result]) -> Result:
    """Run all steps and return the result, for callers that nobody waits for."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result
