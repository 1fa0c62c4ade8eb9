"""Words for people, shared by the client and the dashboard."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """Return ``1 file`` or ``1,204 files``; the second form of the words, where an s does not make it."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
