"""Track the delivered lines of each millisecond, so that rereads for late lines return no line twice."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable

from api_client.models.logs import MS_PER_S, NS_PER_MS, LogLine

LINE_BYTES = 100  # estimated size of a record in a response, without its message


class LineDeduplicator:
    """Returns only the lines of repeated reads that were not delivered before.

    Lines may be identical, so each millisecond is a multiset of the lines' 64-bit hashes: 8 bytes per line,
    compared only within a millisecond. Each multiset is one ``bytes`` object, which the garbage collector
    skips; it would visit tens of thousands of arrays of a busy log.

    The input must contain all lines of a millisecond, as batches of RangeReader do. ``line_count`` and
    ``size_bytes`` are the count of the tracked lines and the estimated size of a response with them.
    """

    def __init__(self) -> None:
        self.line_count = 0
        self.size_bytes = 0
        self._hashes_by_second: dict[int, dict[int, bytes]] = {}
        self._bytes_by_second: Counter[int] = Counter()

    def new_lines(self, lines: list[LogLine]) -> list[LogLine]:
        """Return the new lines among ``lines`` (ascending, whole milliseconds), and track them."""
        all_new: list[LogLine] = []
        hashes = memoryview(array("q", map(hash, lines)))
        times_ms = [line.timestamp_ns // NS_PER_MS for line in lines]
        begin = 0
        while begin < len(lines):
            ms, end = times_ms[begin], begin + 1
            while end < len(lines) and times_ms[end] == ms:
                end += 1
            ms_lines, ms_hashes = lines[begin:end], hashes[begin:end]
            begin = end
            hashes_by_ms = self._hashes_by_second.setdefault(ms // MS_PER_S, {})
            known_hashes = hashes_by_ms.get(ms)
            if known_hashes is None:
                hashes_by_ms[ms] = ms_hashes.tobytes()
            elif known_hashes == ms_hashes.tobytes():
                continue
            else:
                new_counts = Counter(ms_hashes)
                new_counts.subtract(memoryview(known_hashes).cast("q"))
                ms_lines = _select_counted(ms_lines, ms_hashes, new_counts)
                hashes_by_ms[ms] = known_hashes + array("q", map(hash, ms_lines)).tobytes()
            self._add_to_totals(ms, ms_lines)
            all_new += ms_lines
        return all_new

    def _add_to_totals(self, ms: int, lines: list[LogLine]) -> None:
        size_bytes = sum([len(line.message) + LINE_BYTES for line in lines])
        self._bytes_by_second[ms // MS_PER_S] += size_bytes
        self.size_bytes += size_bytes
        self.line_count += len(lines)

    def forget_before(self, ms: int) -> None:
        """Stop tracking lines before the second that ``ms`` is in."""
        for second in [key for key in self._hashes_by_second if key < ms // MS_PER_S]:
            self.line_count -= sum(map(len, self._hashes_by_second.pop(second).values())) // 8
            self.size_bytes -= self._bytes_by_second.pop(second, 0)


def _select_counted(lines: list[LogLine], line_hashes: Iterable[int], counts: Counter[int]) -> list[LogLine]:
    selected = []
    for line, fingerprint in zip(lines, line_hashes, strict=True):
        if counts[fingerprint] > 0:
            counts[fingerprint] -= 1
            selected.append(line)
    return selected
