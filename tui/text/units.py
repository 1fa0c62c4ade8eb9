"""Format quantities and hardware for display; a missing or undefined value becomes ``UNKNOWN``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from api_client.words import counted as counted  # noqa: PLC0414 - re-exported as one of the formatters
from tui.text.sanitize import sanitize

if TYPE_CHECKING:
    from api_client.models import TrainingJob

UNKNOWN = "–"

MINUTE_S = 60
HOUR_S = 60 * MINUTE_S
DAY_S = 24 * HOUR_S
SECONDS_PER_UNIT = {"s": 1, "m": MINUTE_S, "h": HOUR_S, "d": DAY_S, "w": 7 * DAY_S}
"""Number of seconds in each unit that a typed duration may have."""

BYTES_PER_MIB = 1024**2
_IEC_STEP = 1024
_IEC_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_MIN_CORES = 0.01


def _is_missing(value: float | None) -> bool:
    try:
        return value is None or not math.isfinite(value)
    except OverflowError:  # an integer from a server that is too large for a float
        return True


def significant(value: float, digits: int = 3) -> str:
    """Format a value with ``digits`` significant digits, never in scientific notation."""
    if value == 0:
        return "0"
    # Round before counting the digits: 9.996 has one digit before the point, but rounds to 10.0.
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
    last_power = len(_IEC_UNITS) - 1
    power = 0
    # Compare the rounded value: 1023.7 KiB becomes 1.00 MiB, not 1024 KiB.
    while power < last_power and (power == 0 or round(value) >= _IEC_STEP):
        value /= _IEC_STEP
        power += 1
    digits = f"{value:.0f}" if value >= 999.5 else significant(value)
    return f"{digits} {_IEC_UNITS[power]}"


def bytes_decimal(size_bytes: int) -> str:
    """Format a size as the official command line does: in decimal units, with two decimals."""
    if _is_missing(size_bytes):
        return UNKNOWN
    for unit_bytes, unit in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "KB")):
        if size_bytes > unit_bytes:
            return f"{size_bytes / unit_bytes:.2f} {unit}"
    return f"{size_bytes} B"


def percent(fraction: float | None) -> str:
    """Format a fraction in whole percents: ``0.463`` as ``46%``."""
    if fraction is None or _is_missing(fraction):
        return UNKNOWN
    return f"{fraction:.0%}"


def cores(value: float | None) -> str:
    """Format CPU cores in use: ``12.3``, ``0.25``, ``<0.01``; a whole number if 100 or more."""
    if value is None or _is_missing(value):
        return UNKNOWN
    if 0 < value < _MIN_CORES:
        return f"<{_MIN_CORES}"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return significant(value, 2 if abs(value) < 1 else 3)


def duration(seconds: float | None) -> str:
    """Format seconds in one or two units, rounded down: ``9s``, ``12m``, ``6h 12m``, ``3d 4h``."""
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
    """Format seconds in the largest unit, rounded down: ``2s``, ``12m``, ``3h``, ``5d``; at least ``0s``."""
    if seconds is None or _is_missing(seconds):
        return UNKNOWN
    whole_s = max(0, int(seconds))
    for unit_s, unit in ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "m")):
        if whole_s >= unit_s:
            return f"{whole_s // unit_s}{unit}"
    return f"{whole_s}s"


def rate(steps_per_s: float | None, like: float | None = None) -> str:
    """Format a rate of steps: ``12.3 it/s``; one below 0.1 steps per second as ``20.0 s/it``.

    ``like`` is a rate shown beside this one (in steps per second); the unit is chosen for it, so that both
    have the same.
    """
    if steps_per_s is None or _is_missing(steps_per_s) or steps_per_s <= 0:
        return UNKNOWN
    if is_slow(like or steps_per_s):
        return step_time(1 / steps_per_s)
    if steps_per_s < 1:
        return f"{significant(steps_per_s, 2)} it/s"
    return f"{significant(steps_per_s) if steps_per_s < 1000 else count(steps_per_s)} it/s"


def is_slow(steps_per_s: float) -> bool:
    """Return True if a rate is so low that it is formatted as seconds per step."""
    return steps_per_s < 0.1


def step_time(seconds: float | None) -> str:
    """Format the duration of a step: ``5.30 s/it``, ``290 ms/it``."""
    if seconds is None or _is_missing(seconds) or seconds <= 0:
        return UNKNOWN
    if seconds < 1:
        return f"{significant(seconds * 1000)} ms/it"
    return f"{significant(seconds) if seconds < 1000 else count(seconds)} s/it"


def count(value: float | None) -> str:
    """Format a number, rounded to an integer, with thousands separators: ``4,120``."""
    if value is None or _is_missing(value):
        return UNKNOWN
    return f"{round(value):,}"


def money(usd: float | None) -> str:
    """Format US dollars: ``$0.42``, ``$12.50``, ``$1,012``; without cents if $100 or more."""
    if usd is None or _is_missing(usd):
        return UNKNOWN
    if usd < 0:
        return "-" + money(-usd)
    return f"${usd:.2f}" if round(usd, 2) < 100.0 else f"${round(usd):,}"


def number(value: float | None, digits: int = 3) -> str:
    """Format a value such as a loss or learning rate: ``0.913``, ``12.4``, ``1.9e-05``, ``nan``, ``inf``."""
    if value is None:
        return UNKNOWN
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    magnitude = abs(value)
    if magnitude != 0 and (magnitude < 1e-3 or magnitude >= 1e6):
        return f"{value:.{digits}g}"
    return significant(value, digits) if magnitude < 1000 else count(value)


def thin_bar(fraction: float, cells: int) -> tuple[str, str]:
    """Return the completed and the remaining segment of a progress bar: a line of ``cells`` cells in all."""
    half_cells = round(max(0.0, min(1.0, fraction)) * cells * 2)
    full, half = divmod(half_cells, 2)
    completed = "━" * full + "╸" * half
    return completed, "─" * (cells - full - half)


def hardware(job: TrainingJob) -> str:
    """Format a job's nodes and GPUs: ``4×8 H100`` for four nodes of eight GPUs, ``8 H100`` for one node.

    An unknown number of nodes counts as one.
    """
    instance = job.instance_type
    if not instance.gpu_count and not instance.name:
        return UNKNOWN
    gpus = f"{instance.gpu_count} {sanitize(instance.gpu_type or 'GPU')}" if instance.gpu_count else "CPU"
    return node_hardware(job.node_count or 1, gpus)


def node_hardware(node_count: int, hardware_of_node: str) -> str:
    """Put the number of nodes before the hardware of each node; omit it if there is only one node."""
    return f"{node_count}×{hardware_of_node}" if node_count > 1 else hardware_of_node
