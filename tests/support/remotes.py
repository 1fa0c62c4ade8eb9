"""The remote that an emulator is."""

from __future__ import annotations

from pydantic import SecretStr

from api_client.emulator.child import EmulatorChild
from api_client.remotes import Remote


def remote_of(emulator: EmulatorChild) -> Remote:
    url, key = emulator.url, SecretStr(emulator.key)
    return Remote(name="here", app_url=url, api_url=url, key=key, key_origin="the test")
