"""Find the remote to use, and its key.

Sources, first match wins:

1. ``--remote NAME``: the section of ``~/.trussrc`` with that name, else the Go CLI's profile with that name
2. ``BASETEN_TRUSS_AUTH_REMOTE_URL`` and ``BASETEN_TRUSS_AUTH_API_KEY``, if both are set
3. ``BASETEN_API_KEY``, with ``BASETEN_REMOTE_URL`` and ``BASETEN_MANAGEMENT_API_URL_OVERRIDE``
4. ``BASETEN_PROFILE``: the Go CLI's profile with that name (its folder: ``BASETEN_CONFIG_DIR``)
5. the only section of ``~/.trussrc`` (another path: ``USER_TRUSSRC_PATH``)
6. without any section, the Go CLI's current profile

A section's own key comes from the file, else from the system's keyring (service ``baseten-truss``), else
from ``BASETEN_API_KEY``. A key from a file or a keyring is only ever sent to that remote's own hosts.
"""

from api_client.remotes.remote import (
    DEFAULT_APP_URL as DEFAULT_APP_URL,
    ENVIRONMENT_REMOTE as ENVIRONMENT_REMOTE,
    AuthScheme as AuthScheme,
    Environment as Environment,
    KeyMissing as KeyMissing,
    OAuthLogin as OAuthLogin,
    OAuthTokens as OAuthTokens,
    Remote as Remote,
    RemoteNotConfigured as RemoteNotConfigured,
    check_key as check_key,
    rest_url as rest_url,
)
from api_client.remotes.resolution import resolve_remote as resolve_remote
