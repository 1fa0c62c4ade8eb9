"""Garbage collection that does not interrupt typing.

With a recording of 64 nodes in memory, a search of all its 1.2 million objects for garbage takes 160 ms:
longer than a key may. Python makes one whenever many objects were made, which is while the user works: 66
times while somebody went to 60 moments of that recording. Here all are searched only once many are new and a
key's picture is painted; where a search takes long, while nobody types for longer, unless half as many are
new as there were. Else, where a key comes every 0.7 s, the screens that were left would fill 60 MiB a minute,
and what is in use between them would keep that memory.

The memory of what is gone goes back to the system then: after an hour of wandering over jobs, 46 of 213 MiB.
"""

from __future__ import annotations

import gc
from contextlib import suppress
from functools import cache, lru_cache, partial
from time import thread_time
from typing import Any

import textual.strip
from textual._styles_cache import StylesCache

LOOK_EVERY_S = 0.5
"""Asking whether it is time takes a microsecond; looking seldom misses most pauses between keys."""
PAINTED_S = 0.25
"""What a key has changed is painted once it is so long ago."""
WORTHWHILE = 20
"""Searches of younger objects that make a search of all worthwhile."""


def collect_only_when_idle() -> None:
    """Leave the oldest generation to an ``IdleCollector``, and never search what exists now.

    The younger ones are searched after 8,000 new objects: a page of a log has 1,000, soon gone.
    """
    gc.freeze()
    gc.set_threshold(4_000, 0, 1_000_000)


class _EmptyCache:
    def get(self, _key: object) -> None:
        return None

    def __setitem__(self, _key: object, _value: object) -> None:
        pass


def make_no_caches_for_lines() -> None:
    """Have Textual keep nothing with each line that it draws, so that a line is gone once it is painted over.

    It makes seven caches for each, and one of them mostly holds the line itself: eight keys on a log made 750
    KiB of garbage, which only a search finds, and 31 KiB without. The caches save no time that one measures.
    """
    cache = _EmptyCache()
    module: Any = textual.strip
    module.FIFOCache = lambda _size: cache


@cache
def forget_left_widgets() -> None:
    """Have Textual cache two styles by their colors, not by the widget too, which kept 1,024 left widgets.

    Each of them has all lines that it drew last: wandering over jobs, 35 MiB in ten minutes.
    """
    by_colors: Any = StylesCache.get_inner_outer
    cached = lru_cache(by_colors.cache_parameters()["maxsize"])(partial(by_colors.__wrapped__, None))
    StylesCache.get_inner_outer = staticmethod(cached)  # type: ignore[method-assign,assignment]


class IdleCollector:
    """Searches all objects while nobody types, the longer the last search took, the longer after a key."""

    def __init__(self) -> None:
        # The first list of 10,000 jobs is new, and none of it garbage.
        self._took_s, self._many = 0.1, 5 * WORTHWHILE

    def collect_if_idle(self, unused_s: float) -> None:
        """Search all objects if many are new and the last key is long enough ago (``unused_s``)."""
        searches = gc.get_count()[2]
        part = searches / self._many
        # Nobody types for as long as 20 searches take: three seconds in a large recording.
        pause_s = max(PAINTED_S, 20 * self._took_s * (1 - part)) if part < 4 else 0.0
        if searches >= WORTHWHILE and unused_s >= pause_s:
            began_s = thread_time()
            gc.collect()
            _return_memory()
            self._took_s = thread_time() - began_s
            # It visits 2.4 million objects a second; counting them would take a sixth of the time once more.
            self._many = max(WORTHWHILE, int(150 * self._took_s))


def _return_memory() -> None:
    """Return free memory to the system, in a millisecond; glibc keeps what is free between used parts."""
    with suppress(ImportError, AttributeError):  # Pythons without ctypes, and other libraries
        from ctypes import CDLL

        CDLL(None).malloc_trim(0)
