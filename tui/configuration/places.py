"""Where the configuration file is. Imports nothing that costs time: headless commands ask on every start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

CONFIG_VARIABLE = "BT_TUI_CONFIG"
FILE_NAME = "config.toml"
APPLICATION = "bt-tui"


def config_path(environ: Mapping[str, str]) -> Path:
    """The one file: ``BT_TUI_CONFIG``, else ``config.toml`` in the platform's place for configuration."""
    given = environ.get(CONFIG_VARIABLE, "").strip()
    if given:
        return Path(given).expanduser()
    import platformdirs

    return platformdirs.user_config_path(APPLICATION) / FILE_NAME
