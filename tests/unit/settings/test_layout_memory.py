"""The memory of layouts is private, small, and never in the way."""

import json
from pathlib import Path

import pytest

from tui.settings.remembered import LARGEST_BYTES, Memory


def test_what_was_put_is_there_the_next_time(tmp_path: Path) -> None:
    file = tmp_path / "state" / "layout.json"
    memory = Memory(file)
    memory.put("home", {"sort": "age", "filter": "status:running"})
    memory.save()
    assert Memory(file).table("home") == {"sort": "age", "filter": "status:running"}
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"home": 3}', b" " * (LARGEST_BYTES + 9)]
)
def test_a_file_that_makes_no_sense_counts_as_empty(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "layout.json"
    file.write_bytes(content)
    memory = Memory(file)
    assert memory.table("home") == {}
    memory.put("home", {"a": 1})
    memory.save()
    assert json.loads(file.read_text()) == {"home": {"a": 1}}


def test_what_cannot_be_written_or_is_too_much_is_done_without(tmp_path: Path) -> None:
    blocked, file = tmp_path / "file", tmp_path / "layout.json"
    blocked.write_text("")
    for memory, text in ((Memory(blocked / "layout.json"), "x"), (Memory(file), "x" * LARGEST_BYTES)):
        memory.put("home", {"filter": text})
        memory.save()
    assert not file.exists()
