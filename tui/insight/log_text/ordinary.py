"""Many lines looked at as one: most of what a job prints needs nothing looked for line by line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from tui.insight import log_levels
from tui.insight.log_text import progress_bars, repeats, tracebacks

LARGEST = 1 << 22
"""Characters of lines that are looked at as one; more of them are looked at one by one."""

_LEVEL_BEGINNING = r"\n(?:\[|.\d{4}|..\d{4})"
_TIME_BEGINNING = r"\n[\d\[]"


class LinesAsOne:
    """What may be among some lines. A yes may be wrong, a no never is."""

    def __init__(self, lines: Sequence[str]) -> None:
        text = "\n".join(("", *lines))
        if len(text) > LARGEST:
            self._text: bytes | None = None
            self._is_ordinary = False
        else:
            self._text = text.encode("utf-8", "replace")
            self._is_ordinary = _anything().search(self._text) is None

    @property
    def may_tell_levels(self) -> bool:
        """Whether a line may tell its level."""
        return self._may_hold(_levels)

    @property
    def may_begin_tracebacks(self) -> bool:
        """Whether a traceback may begin."""
        return self._may_hold(_tracebacks)

    @property
    def may_hold_bars(self) -> bool:
        """Whether a line may be a progress bar's state."""
        return self._may_hold(_bars)

    @property
    def may_name_speakers(self) -> bool:
        """Whether a line may begin with a time or name a rank, so that it is not its own banner's key."""
        return self._may_hold(_speakers)

    def _may_hold(self, signs: Any) -> bool:
        if self._is_ordinary:
            return False
        return self._text is None or signs().search(self._text) is not None


def _compiled(signs: Iterable[str], *expressions: str) -> Any:
    import re2  # type: ignore[import-untyped]  # one pass for all signs, however many

    return re2.compile("|".join((*map(re2.escape, signs), *expressions)).encode())


@lru_cache(maxsize=1)
def _levels() -> Any:
    return _compiled(log_levels.SIGNS, _LEVEL_BEGINNING)


@lru_cache(maxsize=1)
def _tracebacks() -> Any:
    return _compiled(tracebacks.SIGNS)


@lru_cache(maxsize=1)
def _bars() -> Any:
    return _compiled(progress_bars.SIGNS)


@lru_cache(maxsize=1)
def _speakers() -> Any:
    return _compiled(repeats.SIGNS, _TIME_BEGINNING)


@lru_cache(maxsize=1)
def _anything() -> Any:
    signs = (*log_levels.SIGNS, *tracebacks.SIGNS, *progress_bars.SIGNS, *repeats.SIGNS)
    return _compiled(signs, _LEVEL_BEGINNING, _TIME_BEGINNING)
