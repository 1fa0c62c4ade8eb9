"""The data folder: what is damaged in it is named and left as it is."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from api_client.emulator.data_folder import DataFolder, EmulatorStartError
from api_client.emulator.server import EmulatorOptions, serve
from api_client.emulator.store.database import Database
from api_client.emulator.store.stores import Stores


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder that an emulator has used."""
    path = tmp_path / "data"
    used = DataFolder(path)
    database = Database(used.database_path)
    Stores(database, path).teams.ensure("Research", datetime(2026, 1, 1, tzinfo=UTC))
    database.close()
    used.close()
    return path


def garbage(folder: Path) -> None:
    (folder / "emulator.db").write_bytes(b"no database at all" * 1000)


def truncated(folder: Path) -> None:
    path = folder / "emulator.db"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def folder_for_file(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).mkdir()

    return damage


def file_for_folder(folder: Path) -> None:
    (folder / "blobs" / "objects").rmdir()
    (folder / "blobs" / "objects").write_bytes(b"")


def changed_record(text: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        with closing(sqlite3.connect(folder / "emulator.db")) as database, database:
            database.execute("UPDATE teams SET record = ?", (text,))

    return damage


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        pytest.param(garbage, "emulator.db: file is not a database", id="garbage"),
        pytest.param(truncated, "emulator.db: ", id="truncated"),
        pytest.param(folder_for_file("emulator.db"), "emulator.db: unable to open", id="folder"),
        pytest.param(changed_record("{"), "a record of teams can't be read", id="no JSON"),
        pytest.param(changed_record('{"id": []}'), "a record of teams can't be read", id="other shape"),
        pytest.param(folder_for_file("lock"), "lock: Is a directory", id="lock"),
        pytest.param(folder_for_file("address.json"), "address.json: ", id="address"),
        pytest.param(folder_for_file("key"), "key: Is a directory", id="key"),
        pytest.param(folder_for_file("signing_key"), "signing_key: Is a directory", id="signing key"),
        pytest.param(folder_for_file("emulator.log"), "emulator.log: Is a directory", id="log"),
        pytest.param(file_for_folder, "objects: File exists", id="objects"),
    ],
)
@pytest.mark.proves("docs/emulator.md", "The emulator")
def test_damaged_data_folder_is_refused_and_left_alone(
    folder: Path, damage: Callable[[Path], None], named: str
) -> None:
    damage(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(EmulatorStartError) as refused:
        serve(EmulatorOptions(data_dir=folder, port=0, world="empty"))
    message = str(refused.value)
    assert message.startswith(f"cannot use the data folder {folder} (")
    assert named in message
    assert message.endswith(f"; choose another data folder, or move {folder} away")
    assert {path: content for path, content in before.items() if path.read_bytes() != content} == {}


@pytest.mark.parametrize("left", [b"", secrets.token_bytes(31)], ids=["empty", "short"])
def test_short_signing_key_is_replaced(folder: Path, left: bytes) -> None:
    (folder / "signing_key").write_bytes(left)
    with closing(DataFolder(folder)) as opened:
        key = opened.signing_key()
        assert len(key) == 32
        assert opened.signing_key() == key
    assert (folder / "signing_key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("left", [b"", b"\xff\xfe", b"\0" * 32], ids=["empty", "no text", "zeros"])
def test_unusable_key_is_replaced(folder: Path, left: bytes) -> None:
    (folder / "key").write_bytes(left)
    with closing(DataFolder(folder)) as opened:
        key = opened.api_key(None)
        assert len(key) == 32
        assert opened.api_key(None) == key


def test_key_outlives_a_restart_until_its_file_is_deleted(folder: Path) -> None:
    def key_of_a_start() -> str:
        data = DataFolder(folder)
        try:
            return data.api_key(None)
        finally:
            data.close()

    key = key_of_a_start()
    assert key_of_a_start() == key
    (folder / "key").unlink()
    assert key_of_a_start() != key
