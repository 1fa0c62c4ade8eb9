"""Log in to a remote: check its API key with the server, then store it in ~/.trussrc."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

from api_client.addresses import parse_base_url
from api_client.client import TrainingClient
from api_client.errors import BadRequest, InvalidAnswer, NotFound, Unauthorized
from api_client.http.retry import RetryPolicy
from api_client.remotes import DEFAULT_APP_URL, Remote, check_key, rest_url
from api_client.remotes.profiles import TRUSS_SERVICE, delete_entry
from api_client.remotes.trussrc import check_section_name, read_sections, set_section, trussrc_path
from api_client.secret import SecretText


def credentials_path() -> Path:
    return trussrc_path(os.environ)


def remote_without_key(name: str = "baseten", url: str | None = None) -> Remote:
    """Return a remote without its key.

    Its URL is ``url`` if given, else the URL in the section ``name`` of ~/.trussrc, else Baseten's. Raises
    ConfigurationError.
    """
    check_section_name(name)
    section = read_sections(credentials_path()).get(name, {})
    url = url or section.get("remote_url", "").strip() or DEFAULT_APP_URL
    source = "the remote's URL"
    app_url, api_url = str(parse_base_url(url, source=source)), rest_url(url, source=source)
    return Remote(name=name, app_url=app_url, api_url=api_url, key=None, key_origin="this login")


async def log_in(key: str) -> None:
    """Check a key with the default remote's server, without retries, and store it. Raises ApiClientError."""
    check_key(key, "this field")
    remote = replace(remote_without_key(), key=SecretText(key))
    async with TrainingClient(remote, retry=RetryPolicy(max_attempts=1)) as client:
        await key_owner(client)
    await asyncio.to_thread(store_key, remote)


async def key_owner(client: TrainingClient) -> str:
    """Return the key's owner as the end of a sentence: `` as ada@example.com (Acme)``; "" if unknown.

    Raises RequestError if the server rejects the key.
    """
    try:
        user = await client.account.me()
    except (NotFound, BadRequest, InvalidAnswer, Unauthorized) as error:
        # A workspace key has no user, so a 403 does not mean that it is invalid.
        if isinstance(error, Unauthorized) and error.is_key_invalid:
            raise
        await client.projects.list()
        return ""
    owner = user.email or user.name
    return (f" as {owner}" if owner else "") + (f" ({user.workspace_name})" if user.workspace_name else "")


def store_key(remote: Remote, team: str | None = None) -> Path:
    """Store the key in the remote's section of ~/.trussrc, and return the file."""
    assert remote.key is not None
    values = {
        "remote_provider": "baseten",
        "remote_url": remote.app_url,
        "auth_type": "api_key",
        "api_key": remote.key.get_secret_value(),
    }
    if team is not None:
        values["team"] = team
    path = credentials_path()
    oauth_options = ("oauth_access_token", "oauth_refresh_token", "oauth_expires_at")
    set_section(path, remote.name, values, without=oauth_options)
    # Remove the keyring entry of an earlier login: it is outdated and could only cause errors.
    delete_entry(TRUSS_SERVICE, remote.name, os.environ)
    return path
