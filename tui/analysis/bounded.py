"""A dict of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Bounded(dict[_Key, _Value]):
    """A dict of the ``limit`` entries added last; ``make`` creates the value of a missing key."""

    def __init__(self, limit: int, make: Callable[[], _Value] | None = None) -> None:
        super().__init__()
        self._limit = limit
        self._make = make

    def __missing__(self, key: _Key) -> _Value:
        if self._make is None:
            raise KeyError(key)
        value = self[key] = self._make()
        return value

    def __setitem__(self, key: _Key, value: _Value) -> None:
        super().__setitem__(key, value)
        if len(self) > self._limit:
            del self[next(iter(self))]

    # without this, pickle would call the constructor without its arguments
    def __reduce__(self) -> tuple[Any, ...]:
        items: Iterator[tuple[_Key, _Value]] = iter(self.items())
        return Bounded, (self._limit, self._make), None, None, items
