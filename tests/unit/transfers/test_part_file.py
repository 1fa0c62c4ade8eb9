"""The part file of a download, between threads that outlive their tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from api_client.transfers import DownloadError
from api_client.transfers.part_file import PartFile, part_paths


def opened(folder: Path) -> PartFile:
    part = PartFile(folder / "a.bin", folder, "listed", 8)
    part.open()
    return part


def test_bytes_out_of_order_are_not_appended(tmp_path: Path) -> None:
    part = opened(tmp_path)
    part.append(4, b"5678")
    assert part.done_bytes == 0
    part.append(0, b"1234")
    part.append(0, b"1234")
    assert part_paths(part.path)[0].read_bytes() == b"1234"
    part.close()


def test_closed_part_file_is_neither_written_nor_renamed(tmp_path: Path) -> None:
    part = opened(tmp_path)
    part.append(0, b"1234")
    part.close()
    with pytest.raises(DownloadError):
        part.append(4, b"5678")
    with pytest.raises(DownloadError):
        part.digest("md5")
    with pytest.raises(DownloadError):
        part.finish(None)
    with pytest.raises(DownloadError):
        part.open()
    assert not part.path.exists()
    again = opened(tmp_path)
    assert again.done_bytes == 4
    again.close()


def test_part_file_that_is_not_kept_leaves_nothing(tmp_path: Path) -> None:
    part = opened(tmp_path)
    part.append(0, b"1234")
    part.close(keep=False)
    assert not list(tmp_path.iterdir())
