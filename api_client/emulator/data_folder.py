"""The emulator's data folder: its files, and the lock that allows only one emulator at a time.

Files with secrets are readable by their owner only. A folder with files of something else is refused.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from api_client.files import PRIVATE_FILE_MODE, PRIVATE_FOLDER_MODE, make_private_folder, write_private


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
KEY_BYTES = 24
SIGNING_KEY_BYTES = 32


class EmulatorStartError(Exception):
    """The emulator cannot start here; the message says why and what to do."""


class DataFolder:
    """An open data folder. Opening raises ``EmulatorStartError`` if it is in use or holds foreign files."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.database_path = self.path / "emulator.db"
        self.log_path = self.path / "emulator.log"
        self.key_path = self.path / "key"
        self._address_path = self.path / ADDRESS_NAME
        self._reject_foreign_folder()
        try:
            make_private_folder(self.path)
        except OSError as error:
            raise EmulatorStartError(f"cannot use the data folder {self.path}: {error.strerror}") from error
        self._lock = os.open(self.path / LOCK_NAME, os.O_RDWR | os.O_CREAT, PRIVATE_FILE_MODE)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise EmulatorStartError(
                f"another emulator is already using {self.path}; use it, stop it, or choose another data "
                f"folder"
            ) from error
        self._address_path.unlink(missing_ok=True)

    def api_key(self, given: str | None) -> str:
        """Return the key that clients must send: the given one, else the stored one, else a new one."""
        kept = self.key_path.read_text().strip() if self.key_path.is_file() else ""
        key = given or kept or secrets.token_urlsafe(KEY_BYTES)
        if key != kept:
            write_private(self.key_path, f"{key}\n".encode())
        return key

    def signing_key(self) -> bytes:
        """Return the secret that signs presigned URLs; it never leaves the emulator."""
        path = self.path / "signing_key"
        if not path.is_file():
            write_private(path, secrets.token_bytes(SIGNING_KEY_BYTES))
        return path.read_bytes()

    def publish(self, address: Mapping[str, Any]) -> None:
        write_private(self._address_path, json.dumps(address).encode())

    def close(self) -> None:
        self._address_path.unlink(missing_ok=True)
        os.close(self._lock)

    def _reject_foreign_folder(self) -> None:
        """Raise if the folder is used for something else, so that it stays untouched."""
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise EmulatorStartError(f"{self.path} is not a folder")
        is_ours = (self.path / LOCK_NAME).exists()
        if not is_ours and any(self.path.iterdir()):
            raise EmulatorStartError(
                f"{self.path} contains other files; choose an empty or new folder for the emulator"
            )


def running_address(path: Path) -> dict[str, Any] | None:
    """Return the address of the emulator running on that folder, or None if there is none."""
    try:
        lock = os.open(path / LOCK_NAME, os.O_RDWR)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except OSError:
        pass
    finally:
        os.close(lock)
    try:
        address: dict[str, Any] = json.loads((path / ADDRESS_NAME).read_bytes())
        return address
    except (OSError, ValueError):
        return None
