"""The path of the settings file, and a cache of the few settings that every command needs.

Nothing slow is imported: headless commands use this at every start, and load the settings only when the file
has changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from api_client.files import make_private_folder, write_private

CONFIG_VARIABLE = "BT_TUI_CONFIG"
FILE_NAME = "config.toml"
APPLICATION = "bt-tui"


def config_path(environ: Mapping[str, str]) -> Path:
    """Return the settings file: ``BT_TUI_CONFIG``, else ``config.toml`` in the platform's config folder."""
    given = environ.get(CONFIG_VARIABLE, "").strip()
    if given:
        return Path(given).expanduser()
    import platformdirs

    return platformdirs.user_config_path(APPLICATION) / FILE_NAME


CACHE_FILE_NAME = "checked-settings.json"
LARGEST_BYTES = 16 * 1024
SCHEMA = Path(__file__).with_name("model.py")


@dataclass(frozen=True, slots=True)
class CheckedSettings:
    """The cached settings: the remote, and the origin of the read-only setting (empty if it is off)."""

    remote: str | None
    read_only_by: str


def stamp_of(environ: Mapping[str, str]) -> str | None:
    """Return a hash of the file, the relevant variables and the program; None without a file."""
    path = config_path(environ)
    try:
        file, program = path.stat(), SCHEMA.stat()
    except OSError:
        return None
    variables = sorted(
        f"{name}={value}"
        for name, value in environ.items()
        if name.startswith("BT_TUI_") and name != CONFIG_VARIABLE
    )
    parts = (
        *(str(path.absolute()), file.st_ino, file.st_size, file.st_mtime_ns, file.st_ctime_ns),
        *(program.st_size, program.st_mtime_ns, *variables),
    )
    return sha256(repr(parts).encode(errors="surrogateescape")).hexdigest()


def recall(stamp: str | None) -> CheckedSettings | None:
    """Return the settings cached for this stamp; None if there are none or they cannot be read."""
    if stamp is None:
        return None
    try:
        with _kept_path().open("rb") as file:
            kept = json.loads(file.read(LARGEST_BYTES))
        remote, reason = kept["settings"]["remote"], kept["settings"]["read_only_by"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    is_good = kept.get("stamp") == stamp and isinstance(reason, str)
    return CheckedSettings(remote, reason) if is_good and isinstance(remote, str | None) else None


def keep(stamp: str | None, settings: CheckedSettings) -> None:
    """Cache the settings if possible; ``stamp`` must be from before the file was read."""
    if stamp is None:
        return
    content = json.dumps({"stamp": stamp, "settings": asdict(settings)}).encode()
    path = _kept_path()
    with suppress(OSError):
        if len(content) <= LARGEST_BYTES:
            make_private_folder(path.parent)
            write_private(path, content)


def _kept_path() -> Path:
    import platformdirs

    return platformdirs.user_cache_path(APPLICATION) / CACHE_FILE_NAME
