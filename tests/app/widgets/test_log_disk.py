"""Older lines go to a file; where it has no room, the oldest make place, and nothing else is lost."""

import errno
import os
from collections.abc import Sequence

import pytest
from log_lines import lines

from api_client.models.logs import LogEntry
from tui.analysis.logs.pattern import LogPattern
from tui.widgets.log_view.model import LogModel
from tui.widgets.log_view.options import LogOptions
from tui.widgets.log_view.store import LogStore

IN_MEMORY = 256
BATCH = 100


class Disk:
    """A disk of so many bytes: writing beyond them fails as on a full one, after a part was written."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self._write = os.pwrite

    def pwrite(self, descriptor: int, data: bytes, offset: int) -> int:
        room = self.size_bytes - offset
        if room <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._write(descriptor, data[:room], offset)


def fill(store: LogStore, entries: Sequence[LogEntry]) -> None:
    for begin in range(0, len(entries), BATCH):
        store.append(entries[begin : begin + BATCH])


@pytest.mark.parametrize("size_bytes", [0, 20_000])
@pytest.mark.proves("docs/logs.md", "Memory")
def test_a_full_disk_drops_the_oldest_lines_and_keeps_all_others(
    size_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(size_bytes)
    monkeypatch.setattr(os, "pwrite", disk.pwrite)
    store, given = LogStore(IN_MEMORY), lines(0, 4_000)
    model = LogModel(store)
    fill(store, given)
    assert store.spilled_bytes <= size_bytes
    assert len(store) - store.spilled_lines <= IN_MEMORY + BATCH
    assert bool(store.spilled_lines) is bool(size_bytes)
    assert 0 < store.dropped == len(given) - len(store)
    assert list(model.entries(filtered=False)) == given[store.dropped :]
    # What is left is found and filtered as before …
    model.options = LogOptions(nodes=frozenset({"node-1"}), pattern=LogPattern("9", case=True))
    while not model.rows.build(lambda: False):
        pass
    wanted = [one for one in given[store.dropped :] if one.replica == "node-1" and "9" in one.message]
    assert list(model.entries(filtered=True)) == wanted
    # … and where there is room again, nothing more is dropped.
    disk.size_bytes, dropped = 1 << 30, store.dropped
    later = lines(4_000, 8_000)
    fill(store, later)
    assert store.dropped == dropped
    assert list(model.entries(filtered=False)) == [*given, *later][dropped:]


def test_a_file_that_cannot_be_made_drops_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_options: object) -> object:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    store = LogStore(IN_MEMORY)
    fill(store, lines(0, 1_000))
    assert len(store) <= IN_MEMORY + BATCH
    assert store.dropped == 1_000 - len(store)


@pytest.mark.proves("docs/logs.md", "Memory")
def test_the_file_of_older_lines_has_no_name_and_is_its_owners_alone() -> None:
    store = LogStore(IN_MEMORY)
    store.append(lines(0, 5000))
    assert store.spilled_lines > 4000
    descriptor = store._file._file.fileno()  # type: ignore[union-attr]
    status = os.fstat(descriptor)
    assert status.st_nlink == 0
    assert status.st_mode & 0o077 == 0
