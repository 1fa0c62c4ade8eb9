"""Results that are computed again only after a change of what they depend on."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

Subject = TypeVar("Subject")
Result = TypeVar("Result")


def remembered(
    depends_on: Callable[[Subject], object],
) -> Callable[[Callable[[Subject], Result]], Callable[[Subject], Result]]:
    """Return the last result again while what it ``depends_on`` is equal.

    For what is asked of each snapshot, about once a second, and takes long where there is much of it.
    """

    def decorate(function: Callable[[Subject], Result]) -> Callable[[Subject], Result]:
        last: list[tuple[object, Result]] = []

        @wraps(function)
        def asked(subject: Subject) -> Result:
            key = depends_on(subject)
            if not last or last[0][0] != key:
                last[:] = [(key, function(subject))]
            return last[0][1]

        return asked

    return decorate
