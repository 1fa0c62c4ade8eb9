"""Track the delivered lines of each millisecond, so that rereads for late lines return no line twice."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable

from api_client.models.logs import MS_PER_S, NS_PER_MS, LogLine

LINE_BYTES = 100  # estimated size of a record's other fields in a response


class LineDeduplicator:
    """Returns only those lines of repeated reads that were not delivered before.

    Lines may be identical, so each millisecond is a multiset of the lines' 64-bit hashes: 8 bytes per line,
    compared only within a millisecond. Each multiset is one ``bytes`` object, which the garbage collector
    skips; it would visit tens of thousands of arrays of a busy log.

    The input must be whole milliseconds, as RangeReader returns them. ``line_count`` and ``size_bytes`` are
    the line count and the estimated size of a response with all tracked lines.
    """

    def __init__(self) -> None:
        self.line_count = 0
        self.size_bytes = 0
        self._seconds: dict[int, dict[int, bytes]] = {}
        self._sizes_bytes: Counter[int] = Counter()

    def new_lines(self, lines: list[LogLine]) -> list[LogLine]:
        """Return the new lines among ``lines`` (ascending, whole milliseconds), and track them."""
        fresh: list[LogLine] = []
        hashes = memoryview(array("q", map(hash, lines)))
        times_ms = [line.timestamp_ns // NS_PER_MS for line in lines]
        begin = 0
        while begin < len(lines):
            ms, end = times_ms[begin], begin + 1
            while end < len(lines) and times_ms[end] == ms:
                end += 1
            new, new_hashes = lines[begin:end], hashes[begin:end]
            begin = end
            hashes_by_ms = self._seconds.setdefault(ms // MS_PER_S, {})
            seen = hashes_by_ms.get(ms)
            if seen is None:
                hashes_by_ms[ms] = new_hashes.tobytes()
            elif seen == new_hashes.tobytes():
                continue
            else:
                missing = Counter(new_hashes)
                missing.subtract(memoryview(seen).cast("q"))
                new = _select_missing(new, new_hashes, missing)
                hashes_by_ms[ms] = seen + array("q", map(hash, new)).tobytes()
            self._count(ms, new)
            fresh += new
        return fresh

    def _count(self, ms: int, new: list[LogLine]) -> None:
        size_bytes = sum([len(line.message) + LINE_BYTES for line in new])
        self._sizes_bytes[ms // MS_PER_S] += size_bytes
        self.size_bytes += size_bytes
        self.line_count += len(new)

    def forget_before(self, ms: int) -> None:
        """Stop tracking lines before the second that ``ms`` is in."""
        for second in [key for key in self._seconds if key < ms // MS_PER_S]:
            self.line_count -= sum(map(len, self._seconds.pop(second).values())) // 8
            self.size_bytes -= self._sizes_bytes.pop(second, 0)


def _select_missing(lines: list[LogLine], line_hashes: Iterable[int], missing: Counter[int]) -> list[LogLine]:
    selected = []
    for line, fingerprint in zip(lines, line_hashes, strict=True):
        if missing[fingerprint] > 0:
            missing[fingerprint] -= 1
            selected.append(line)
    return selected
