"""The part file of a download, between threads that outlive their tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from api_client.transfers import DownloadError
from api_client.transfers.part_file import FileIdentity, PartFile, part_paths

LISTED = FileIdentity("job1", "a.bin", 0, size_bytes=8)


def opened(folder: Path) -> PartFile:
    part = PartFile(folder / "a.bin", folder, LISTED)
    part.open()
    return part


def test_bytes_of_before_are_not_saved_after_a_new_start(tmp_path: Path) -> None:
    part = opened(tmp_path)
    starts = part.starts
    part.save(0, [b"old"], starts)
    part.start_over(LISTED)
    part.save(3, [b"old"], starts)
    assert part.missing(8) == [(0, 8)]
    assert part_paths(part.path)[0].read_bytes() == b""
    part.close()


def test_closed_part_file_is_neither_written_nor_renamed(tmp_path: Path) -> None:
    part = opened(tmp_path)
    part.save(0, [b"1234"], part.starts)
    part.close()
    with pytest.raises(DownloadError):
        part.save(4, [b"5678"], part.starts)
    with pytest.raises(DownloadError):
        part.finish(None)
    with pytest.raises(DownloadError):
        part.open()
    assert not part.path.exists()
    again = opened(tmp_path)
    assert again.missing(8) == [(4, 8)]
    again.close()


def test_ranges_that_touch_are_one_in_any_order(tmp_path: Path) -> None:
    part = opened(tmp_path)
    for offset in (6, 2, 4):
        part.save(offset, [b".."], part.starts)
    assert (part.done_bytes, part.missing(8)) == (6, [(0, 2)])
    part.close()
