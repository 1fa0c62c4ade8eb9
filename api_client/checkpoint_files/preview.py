"""The beginning of a text file."""

from __future__ import annotations

from dataclasses import dataclass

PREVIEW_BYTES = 1024 * 1024
"""Most of a file that is fetched to show it."""

_CONTROLS_OF_TEXT = frozenset(b"\t\n\r\f\b\x1b")
_LOOKED_AT_BYTES = 8192
_FOREIGN_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Preview:
    """``text`` is not inert, None where the file is no text; ``bytes_read`` of ``size_bytes`` were read."""

    text: str | None
    bytes_read: int
    size_bytes: int

    @property
    def is_whole(self) -> bool:
        """Whether all of the file was read."""
        return self.bytes_read >= self.size_bytes


def preview(content: bytes, size_bytes: int) -> Preview:
    """What those first bytes of a file of that size show; broken letters become U+FFFD."""
    is_whole = len(content) >= size_bytes
    text = None if _is_binary(content) else _decoded(content, is_whole)
    return Preview(text=text, bytes_read=len(content), size_bytes=max(size_bytes, len(content)))


def _is_binary(content: bytes) -> bool:
    head = content[:_LOOKED_AT_BYTES]
    if b"\0" in head:
        return True
    controls = sum(byte < 0x20 and byte not in _CONTROLS_OF_TEXT for byte in head)
    return controls > _FOREIGN_SHARE * len(head)


def _decoded(content: bytes, is_whole: bool) -> str:
    text = content.decode("utf-8-sig", errors="replace")
    # A letter cut in two by the limit is not the file's fault.
    return text if is_whole else text.removesuffix("\ufffd")
