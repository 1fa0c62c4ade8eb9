"""The settings: one TOML file, environment variables and flags.

This module has only the path of the file, because the settings themselves are slow to import.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import platformdirs

from api_client.files import user_path

CONFIG_VARIABLE = "BT_TUI_CONFIG"


def config_path(environ: Mapping[str, str]) -> Path:
    """Return the settings file: ``BT_TUI_CONFIG``, else ``config.toml`` in the platform's config folder."""
    path = environ.get(CONFIG_VARIABLE, "").strip()
    if path:
        return user_path(path)
    return platformdirs.user_config_path("bt-tui") / "config.toml"
