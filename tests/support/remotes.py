"""Build the remote that stands for a test server."""

from __future__ import annotations

from typing import Protocol

from pydantic import SecretStr

from api_client.remotes import Remote


class Reachable(Protocol):
    @property
    def url(self) -> str: ...

    @property
    def key(self) -> str: ...


def remote_of(server: Reachable) -> Remote:
    url, key = server.url, SecretStr(server.key)
    return Remote(name="here", app_url=url, api_url=url, key=key, key_origin="the test")
