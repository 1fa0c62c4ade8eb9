"""Chance that is a function: the same seed and place always give the same value, cheaply."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import floor

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB
_UNIT_BITS = 53

TABLE_SIZE = 4096
_SEED_STRIDE = 1_297  # odd and far from a power of two: neighbouring seeds read unlike places


def mix(seed: int, index: int = 0) -> int:
    """A 64-bit number for ``(seed, index)``: SplitMix64, whose outputs pass for random."""
    value = (seed + (index + 1) * _GOLDEN) & _MASK
    value = ((value ^ (value >> 30)) * _MIX_1) & _MASK
    value = ((value ^ (value >> 27)) * _MIX_2) & _MASK
    return value ^ (value >> 31)


def uniform(seed: int, index: int = 0) -> float:
    """A number in [0, 1) for ``(seed, index)``."""
    return (mix(seed, index) >> (64 - _UNIT_BITS)) / (1 << _UNIT_BITS)


def centred(seed: int, index: int = 0) -> float:
    """A number in (-1, 1) for ``(seed, index)``, small ones likelier than large ones."""
    return uniform(seed, 2 * index) - uniform(seed, 2 * index + 1)


def smooth(seed: int, place: float) -> float:
    """A number in (-1, 1) that drifts: equal to ``centred`` at whole places, in between blended."""
    cell = floor(place)
    part = place - cell
    low, high = centred(seed, cell), centred(seed, cell + 1)
    return low + (high - low) * part * part * (3 - 2 * part)


@cache
def _table() -> tuple[float, ...]:
    return tuple(centred(0xB7, index) for index in range(TABLE_SIZE))


def track(seed: int, times_s: Sequence[float], cell_s: float) -> list[float]:
    """Noise in (-1, 1) at many times at once: a straight line between values ``cell_s`` apart.

    Made for metrics, where tens of thousands of values are asked for at once: it reads a table instead
    of hashing, so it repeats itself after ``TABLE_SIZE`` cells.
    """
    table, last = _table(), TABLE_SIZE - 1
    offset = seed * _SEED_STRIDE
    values = []
    for time_s in times_s:
        place = time_s / cell_s
        cell = int(place)
        low = table[(offset + cell) & last]
        values.append(low + (table[(offset + cell + 1) & last] - low) * (place - cell))
    return values
