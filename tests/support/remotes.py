"""Build the remote that stands for a test server."""

from __future__ import annotations

from typing import Protocol

from pydantic import SecretStr

from api_client.remotes import Remote


class Reachable(Protocol):
    """A server of the tests, whichever."""

    @property
    def url(self) -> str:
        """Where it answers."""
        ...

    @property
    def key(self) -> str:
        """The key it wants."""
        ...


def remote_of(emulator: Reachable) -> Remote:
    url, key = emulator.url, SecretStr(emulator.key)
    return Remote(name="here", app_url=url, api_url=url, key=key, key_origin="the test")
