"""Garbage collection that does not delay keys.

With a recording of 64 nodes in memory, a full collection visits 1.2 million objects and takes 160 ms, longer
than a key may take. By default, Python runs a full collection after many allocations, thus while the user
works: 66 times while visiting 60 moments of that recording. Here a full collection runs only if there are
many new objects and the last key has been painted; the longer a collection takes, the longer a pause in
typing must be. With very many new objects a collection does not wait: at a key every 0.7 s, closed screens
fill 60 MiB a minute.

After a collection, free memory is returned to the system: after an hour of visiting jobs, 46 of 213 MiB.
"""

from __future__ import annotations

import gc
from contextlib import suppress
from functools import cache, lru_cache, partial
from time import thread_time
from typing import Any

import textual.strip
from textual._styles_cache import StylesCache

CHECK_INTERVAL_S = 0.5
"""Interval of checks for idleness. A check takes a microsecond; a longer interval misses most pauses."""
PAINT_TIME_S = 0.25
"""Time after a key within which its changes are painted."""
MIN_YOUNG_COLLECTIONS = 20
"""Minimum number of collections of the young generation before a full collection."""


def collect_only_when_idle() -> None:
    """Leave full collections to an ``IdleCollector``; exempt all objects that exist now (``gc.freeze``).

    The young generations are collected after 4,000 new objects; a page of a log has 1,000.
    """
    gc.freeze()
    gc.set_threshold(4_000, 0, 1_000_000)


class _EmptyCache:
    def get(self, _key: object) -> None:
        return None

    def __setitem__(self, _key: object, _value: object) -> None:
        pass


def disable_line_caches() -> None:
    """Disable the caches that Textual creates for each ``Strip``, so that lines are freed once replaced.

    One of its seven caches mostly contains the strip itself, a reference cycle: eight keys on a log left 750
    KiB of garbage for the collector, and 31 KiB without the caches. The caches save no measurable time.
    """
    cache = _EmptyCache()
    module: Any = textual.strip
    module.FIFOCache = lambda _size: cache


@cache
def cache_styles_without_widgets() -> None:
    """Key one of Textual's caches by colors only, because its default key keeps 1,024 removed widgets alive.

    Each removed widget holds the lines that it drew last: 35 MiB after visiting jobs for ten minutes.
    """
    original: Any = StylesCache.get_inner_outer
    cached = lru_cache(original.cache_parameters()["maxsize"])(partial(original.__wrapped__, None))
    StylesCache.get_inner_outer = staticmethod(cached)  # type: ignore[method-assign,assignment]


class IdleCollector:
    """Runs full garbage collections while no key is pressed; a longer collection waits for a longer pause."""

    def __init__(self) -> None:
        # high enough for a first list of 10,000 jobs: many new objects, but no garbage
        self._duration_s, self._full_collection_size = 0.1, 5 * MIN_YOUNG_COLLECTIONS

    def collect_if_idle(self, idle_s: float) -> None:
        """Run a full collection if there are many new objects and no key was pressed for ``idle_s``."""
        young_collection_count = gc.get_count()[2]
        fullness = young_collection_count / self._full_collection_size
        # The pause is 20 times as long as a collection takes: three seconds in a large recording.
        pause_s = max(PAINT_TIME_S, 20 * self._duration_s * (1 - fullness)) if fullness < 4 else 0.0
        if young_collection_count >= MIN_YOUNG_COLLECTIONS and idle_s >= pause_s:
            began_s = thread_time()
            gc.collect()
            _return_memory()
            self._duration_s = thread_time() - began_s
            # Estimate the objects from the time (2.4 million a second): counting would add a sixth to it.
            self._full_collection_size = max(MIN_YOUNG_COLLECTIONS, int(150 * self._duration_s))


def _return_memory() -> None:
    """Return free memory to the system, which takes a millisecond; by default, glibc keeps most of it."""
    with suppress(ImportError, AttributeError):  # a Python without ctypes, or a C library other than glibc
        from ctypes import CDLL

        CDLL(None).malloc_trim(0)
