"""The small parts behind the emulator's routes, each by its own door."""

from __future__ import annotations

from pathlib import Path

import pytest

from api_client.emulator.routes.files import UnsatisfiableRange, parse_range
from api_client.emulator.store.blobs import BlobStore


@pytest.mark.parametrize(
    ("header", "span"),
    [("0-0", (0, 1)), ("2-", (2, 10)), ("2-100", (2, 10)), ("-3", (7, 10)), ("-30", (0, 10))]
    + [(odd, None) for odd in ("5-4", "-", "0-1,3-4", "1-2 lines", "٣-٤", "9" * 5000 + "-")],
)
def test_single_ranges(header: str, span: tuple[int, int] | None) -> None:
    assert parse_range(f"bytes={header}", 10) == span
    for outside in ("bytes=10-", "bytes=99-100", "bytes=-0"):
        with pytest.raises(UnsatisfiableRange):
            parse_range(outside, 10)


def test_objects_cannot_leave_their_folder_and_are_there_once_whole(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "blobs")
    for key in ("../../escape", "/etc/passwd", "a/../../b", "\x00", "x" * 5000):
        with store.receive("bucket", key) as incoming:
            incoming.write(b"content")
            incoming.commit()
        path = store.path("bucket", key)
        assert path is not None
        assert path.resolve().is_relative_to(tmp_path / "blobs")
    with store.receive("bucket", "key") as incoming:
        incoming.write(b"half of it")
    assert store.path("bucket", "key") is None, "it was not finished"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["blobs"]
    assert store.receive_part("../../x", 1) is None
    assert not store.abort_upload("..")
