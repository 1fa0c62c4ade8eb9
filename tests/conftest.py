"""What every test shares: ``tests/support`` is importable as ``support``."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

OURS = ("BASETEN_", "USER_TRUSSRC_PATH", "BT_TUI_", "NO_COLOR", "TMUX")


@pytest.fixture(autouse=True)
def _nobody_s_own_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test reads the credentials, the settings or the time zone of whoever runs it."""
    for name in list(os.environ):
        if name.startswith(OURS):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
