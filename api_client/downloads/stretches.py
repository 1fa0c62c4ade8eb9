"""Who fetches what of a file: stretches that are handed out once each."""

from __future__ import annotations

from api_client.downloads.part_file import PartFile
from api_client.downloads.spans import Span

STRETCH_BYTES = 32 * 1024 * 1024
"""What one request asks for of a larger file: the time of a request is little beside its bytes."""


class Stretches:
    """Hands out what is missing, and remembers who is at it."""

    def __init__(self) -> None:
        self._claimed: set[Span] = set()

    def claim(self, part: PartFile) -> Span | None:
        """The next stretch that is missing and that nobody fetches; (0, -1) for a file of unknown end."""
        size_bytes = part.size_bytes
        if size_bytes is None or size_bytes == 0:
            # Nothing is known of its end but that it comes, or is here at once: one request finds out.
            span = (part.done_bytes, -1)
            if span in self._claimed:
                return None
            self._claimed.add(span)
            return span
        taken = [(start, end if end >= 0 else size_bytes) for start, end in self._claimed]
        for start, end in part.gaps(size_bytes):
            cursor = start
            while cursor < end:
                span = (cursor, min(end, cursor + STRETCH_BYTES))
                blocking = next((each for each in taken if each[0] < span[1] and cursor < each[1]), None)
                if blocking is None:
                    self._claimed.add(span)
                    return span
                cursor = blocking[1]
        return None

    def release(self, span: Span) -> None:
        """Nobody fetches it any more."""
        self._claimed.discard(span)
