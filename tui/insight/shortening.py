"""Text cut where a word ends, and shown to be cut."""

from __future__ import annotations

ELLIPSIS = "…"
_LEAST_KEPT = 0.6  # of the room: a single long word is cut anyway


def shortened(text: str, characters: int) -> str:
    """The text in at most so many characters: whole words, and an ellipsis where some are left out."""
    if len(text) <= characters:
        return text
    head = text[: max(0, characters - len(ELLIPSIS))]
    if not text[len(head)].isspace():
        start, _, _ = head.rpartition(" ")
        if len(start) >= _LEAST_KEPT * len(head):
            head = start
    return head.rstrip(" ,;:.-–(") + ELLIPSIS
