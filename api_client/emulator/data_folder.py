"""The emulator's data folder: its files, and the lock that allows only one emulator at a time.

Files with secrets are readable only by their owner. A folder with files of other programs is refused.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import PositiveInt, TypeAdapter

from api_client.errors import ApiClientError
from api_client.files import (
    PRIVATE_FILE_MODE,
    PRIVATE_FOLDER_MODE,
    make_private_folder,
    read_small_file,
    write_private,
)


def remove_tree(path: Path) -> None:
    """Delete a folder and everything in it, even if write-protected; skip what cannot be deleted."""
    for parent, folders, _ in os.walk(path):
        for folder in (Path(parent), *(Path(parent) / name for name in folders)):
            if not folder.is_symlink():
                with contextlib.suppress(OSError):
                    folder.chmod(PRIVATE_FOLDER_MODE)
    shutil.rmtree(path, ignore_errors=True)


LOCK_NAME = "lock"
ADDRESS_NAME = "address.json"
DATABASE_NAME = "emulator.db"
SIGNING_KEY_BYTES = 32


class EmulatorStartError(ApiClientError):
    """The emulator cannot start here; the message says why and what to do."""


@contextlib.contextmanager
def translating_errors(folder: Path) -> Iterator[None]:
    """Raise ``EmulatorStartError`` for errors of reading and writing the folder's files.

    No damaged file is repaired or replaced, so that the user's data is not lost.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise _unusable_folder(folder, f"{DATABASE_NAME}: {error}") from error
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        raise _unusable_folder(folder, f"{name}{error.strerror or error}") from error


def _unusable_folder(folder: Path, reason: str) -> EmulatorStartError:
    return EmulatorStartError(
        f"cannot use the data folder {folder} ({reason}); choose another data folder, or move {folder} away"
    )


@dataclass(frozen=True)
class EmulatorAddress:
    """Address of a running emulator."""

    url: str
    key_file: str
    data_dir: str
    pid: PositiveInt


class DataFolder:
    """An open, locked data folder.

    Opening raises ``EmulatorStartError`` if another emulator uses the folder, or if it has files of other
    programs.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.database_path = self.path / DATABASE_NAME
        self.log_path = self.path / "emulator.log"
        self.key_path = self.path / "key"
        self._address_path = self.path / ADDRESS_NAME
        with translating_errors(self.path):
            self._reject_foreign_folder()
            make_private_folder(self.path)
            self._lock = self._acquire_lock()
            try:
                self._address_path.unlink(missing_ok=True)
            except OSError:
                os.close(self._lock)
                raise

    def _acquire_lock(self) -> int:
        """Return the locked lock file; raise ``EmulatorStartError`` if another emulator holds the lock."""
        lock = os.open(self.path / LOCK_NAME, os.O_RDWR | os.O_CREAT, PRIVATE_FILE_MODE)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            raise EmulatorStartError(
                f"another emulator is already using {self.path}; use it, stop it, or choose another data "
                f"folder"
            ) from error
        return lock

    def api_key(self, requested: str | None) -> str:
        """Return the key that clients must send: the requested key, else the stored one, else a new one."""
        stored_key = (
            self.key_path.read_bytes().strip().decode("ascii", "replace") if self.key_path.exists() else ""
        )
        usable_key = stored_key if stored_key.isascii() and stored_key.isprintable() else ""
        key = requested or usable_key or secrets.token_urlsafe(24)
        if key != stored_key:
            write_private(self.key_path, f"{key}\n".encode())
        return key

    def signing_key(self) -> bytes:
        """Return the secret that signs presigned URLs; it never leaves the emulator.

        A stored key that is too short is replaced: a crash or a full disk truncated it, so it could be
        guessed.
        """
        path = self.path / "signing_key"
        key = path.read_bytes() if path.exists() else b""
        if len(key) < SIGNING_KEY_BYTES:
            key = secrets.token_bytes(SIGNING_KEY_BYTES)
            write_private(path, key)
        return key

    def publish(self, address: EmulatorAddress) -> None:
        write_private(self._address_path, json.dumps(asdict(address)).encode())

    def close(self) -> None:
        self._address_path.unlink(missing_ok=True)
        os.close(self._lock)

    def _reject_foreign_folder(self) -> None:
        """Raise ``EmulatorStartError`` if the path is a file, or a folder of files that no emulator made."""
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise EmulatorStartError(f"{self.path} is not a folder")
        is_valid_signature = (self.path / LOCK_NAME).exists()
        if not is_valid_signature and any(self.path.iterdir()):
            raise EmulatorStartError(
                f"{self.path} contains other files; choose an empty or new folder for the emulator"
            )


def running_address(path: Path) -> EmulatorAddress | None:
    """Return the address of the emulator that is running on the folder, or None if none is running."""
    try:
        lock = os.open(path / LOCK_NAME, os.O_RDWR)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except OSError:
        return published_address(path)
    finally:
        os.close(lock)


def published_address(path: Path) -> EmulatorAddress | None:
    """Return the address that the folder's last emulator published; None if it has exited cleanly."""
    try:
        return TypeAdapter(EmulatorAddress).validate_json(read_small_file(path / ADDRESS_NAME))
    except (OSError, ValueError):
        return None
