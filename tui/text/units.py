"""Format quantities and hardware for display, ``UNKNOWN`` for a missing or undefined value."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from api_client.words import counted as counted  # noqa: PLC0414 - exported: part of these units
from tui.text.sanitize import sanitize

if TYPE_CHECKING:
    from api_client.models import TrainingJob

UNKNOWN = "–"

MINUTE_S = 60
HOUR_S = 60 * MINUTE_S
DAY_S = 24 * HOUR_S
UNIT_S = {"s": 1, "m": MINUTE_S, "h": HOUR_S, "d": DAY_S, "w": 7 * DAY_S}
"""Seconds per unit of a typed duration."""

BYTES_PER_MIB = 1024**2
_IEC_STEP = 1024
_IEC_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_MIN_CORES = 0.01


def _is_missing(value: float | None) -> bool:
    try:
        return value is None or not math.isfinite(value)
    except OverflowError:  # an integer from a server, beyond any float
        return True


def significant(value: float, digits: int = 3) -> str:
    """Format a value with that many significant digits, never in scientific notation."""
    if value == 0:
        return "0"
    # Round first: 9.996 has one digit before the point, but rounds to 10.0.
    rounded = float(f"{value:.{digits - 1}e}")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:.{decimals}f}"


def gpu_time(gpu_hours: float) -> str:
    """Format GPU-hours: ``198 GPU·h``, ``12,345 GPU·h``."""
    return f"{significant(gpu_hours) if gpu_hours < 1000 else count(gpu_hours)} GPU·h"


def bytes_iec(size_bytes: float | None) -> str:
    """Format ``1234567`` as ``1.18 MiB``: three significant digits, binary units; whole bytes below 1 KiB."""
    if size_bytes is None or _is_missing(size_bytes):
        return UNKNOWN
    if size_bytes < 0:
        return "-" + bytes_iec(-size_bytes)
    if round(size_bytes) < _IEC_STEP:
        return f"{round(size_bytes)} B"
    value = float(size_bytes)
    last = len(_IEC_UNITS) - 1
    power = 0
    # 1023.7 KiB is shown as 1.00 MiB: the number never reaches the next unit.
    while power < last and (power == 0 or round(value) >= _IEC_STEP):
        value /= _IEC_STEP
        power += 1
    shown = f"{value:.0f}" if value >= 999.5 else significant(value)
    return f"{shown} {_IEC_UNITS[power]}"


def bytes_decimal(size_bytes: int) -> str:
    """Format a size like the official command line: decimal units, two digits."""
    if _is_missing(size_bytes):
        return UNKNOWN
    for unit, sign in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "KB")):
        if size_bytes > unit:
            return f"{size_bytes / unit:.2f} {sign}"
    return f"{size_bytes} B"


def percent(fraction: float | None) -> str:
    """Format ``0.463`` as ``46%``; whole percents."""
    if fraction is None or _is_missing(fraction):
        return UNKNOWN
    return f"{fraction:.0%}"


def cores(value: float | None) -> str:
    """Format CPU cores in use: ``12.3``, ``0.25``, ``<0.01``; whole numbers from a hundred on."""
    if value is None or _is_missing(value):
        return UNKNOWN
    if 0 < value < _MIN_CORES:
        return f"<{_MIN_CORES}"
    return (
        significant(value, 2)
        if abs(value) < 1
        else significant(value)
        if abs(value) < 100
        else f"{value:.0f}"
    )


def duration(seconds: float | None) -> str:
    """Format seconds: ``22320`` as ``6h 12m``, ``9`` as ``9s``, ``273600`` as ``3d 4h``; rounds down."""
    if seconds is None or _is_missing(seconds):
        return UNKNOWN
    whole_s = max(0, int(seconds))
    if whole_s < MINUTE_S:
        return f"{whole_s}s"
    if whole_s < HOUR_S:
        return f"{whole_s // MINUTE_S}m"
    if whole_s < DAY_S:
        return f"{whole_s // HOUR_S}h {whole_s % HOUR_S // MINUTE_S:02d}m"
    return f"{whole_s // DAY_S}d {whole_s % DAY_S // HOUR_S}h"


def age(seconds: float | None) -> str:
    """Format ``2s``, ``12m``, ``3h``, ``5d``: only the largest unit, rounded down; the future is ``0s``."""
    if seconds is None or _is_missing(seconds):
        return UNKNOWN
    whole_s = max(0, int(seconds))
    for unit_s, sign in ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "m")):
        if whole_s >= unit_s:
            return f"{whole_s // unit_s}{sign}"
    return f"{whole_s}s"


def rate(steps_per_s: float | None, like: float | None = None) -> str:
    """Format ``0.18 it/s``, ``12.3 it/s``; below one step in ten seconds ``20.0 s/it``.

    ``like`` is a rate shown beside it, whose unit is used.
    """
    if steps_per_s is None or _is_missing(steps_per_s) or steps_per_s <= 0:
        return UNKNOWN
    if is_slow(like or steps_per_s):
        return step_time(1 / steps_per_s)
    if steps_per_s < 1:
        return f"{significant(steps_per_s, 2)} it/s"
    return f"{significant(steps_per_s) if steps_per_s < 1000 else count(steps_per_s)} it/s"


def is_slow(steps_per_s: float) -> bool:
    """Return True if seconds per step are easier to read than steps per second."""
    return steps_per_s < 0.1


def step_time(seconds: float | None) -> str:
    """Format the duration of a step: ``5.30 s/it``, ``290 ms/it``."""
    if seconds is None or _is_missing(seconds) or seconds <= 0:
        return UNKNOWN
    if seconds < 1:
        return f"{significant(seconds * 1000)} ms/it"
    return f"{significant(seconds) if seconds < 1000 else count(seconds)} s/it"


def count(value: float | None) -> str:
    """Format an integer with thousands separators: ``4,120``."""
    if value is None or _is_missing(value):
        return UNKNOWN
    return f"{round(value):,}"


def money(usd: float | None) -> str:
    """Format US dollars: ``$0.42``, ``$12.50``, ``$1,012``; without cents from a hundred on."""
    if usd is None or _is_missing(usd):
        return UNKNOWN
    if usd < 0:
        return "-" + money(-usd)
    # from here on cents no longer matter
    return f"${usd:.2f}" if round(usd, 2) < 100.0 else f"${round(usd):,}"


def number(value: float | None, digits: int = 3) -> str:
    """Format a value such as a loss or learning rate: ``0.913``, ``12.4``, ``1.9e-05``, ``nan``, ``inf``."""
    if value is None:
        return UNKNOWN
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    size = abs(value)
    if size != 0 and (size < 1e-3 or size >= 1e6):
        return f"{value:.{digits}g}"
    return significant(value, digits) if size < 1000 else count(value)


def thin_bar(fraction: float, cells: int) -> tuple[str, str]:
    """Return the done and the remaining part of a progress bar, drawn as a line."""
    halves = round(max(0.0, min(1.0, fraction)) * cells * 2)
    full, half = divmod(halves, 2)
    done = "━" * full + "╸" * half
    return done, "─" * (cells - full - half)


def hardware(job: TrainingJob) -> str:
    """Return ``4×8 H100``; ``8 H100`` for one node or an unknown number."""
    machine = job.instance_type
    if not machine.gpu_count and not machine.name:
        return UNKNOWN
    gpus = f"{machine.gpu_count} {sanitize(machine.gpu_type or 'GPU')}" if machine.gpu_count else "CPU"
    return of_nodes(job.node_count or 1, gpus)


def of_nodes(node_count: int, machine: str) -> str:
    return f"{node_count}×{machine}" if node_count > 1 else machine
