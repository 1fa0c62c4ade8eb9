"""A bar of a few cells that shows a share, to an eighth of a cell."""

from __future__ import annotations

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_EMPTY = "·"


def share_bar(fraction: float, cells: int, *, empty: str = _EMPTY) -> str:
    """The share, 0 to 1, as ``cells`` cells; more than nothing is never shown as nothing."""
    eighths = round(max(0.0, min(1.0, fraction)) * cells * 8)
    if fraction > 0:
        eighths = max(1, eighths)
    full, part = divmod(eighths, 8)
    bar = _EIGHTHS[8] * full + (_EIGHTHS[part] if part else "")
    return bar + empty * (cells - len(bar))
