"""OAuth tokens: what a login consists of, and where it is kept when it has been renewed.

The official clients log in by OAuth's device flow and leave an access token that soon expires with a
refresh token that buys the next pair (truss 0.18, truss.remote.baseten.oauth). Renewing is a request:
``api_client.http.renewal`` sends it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from pydantic import SecretStr

EXPIRY_LEEWAY = timedelta(seconds=60)
"""A token is renewed so long before its end, as the official client does."""


@dataclass(frozen=True)
class OAuthTokens:
    """A pair of tokens. Without ``expires_at`` it is renewed when the server refuses it, not before."""

    access: SecretStr
    refresh: SecretStr | None = None
    expires_at: datetime | None = None

    def is_expired(self, now: datetime) -> bool:
        """Whether the access token has ended, or is about to."""
        return self.expires_at is not None and now + EXPIRY_LEEWAY >= self.expires_at


class TokenStore(Protocol):
    """Where a login is kept between two runs. Both methods block and may raise ConfigurationError."""

    def load(self) -> OAuthTokens | None:
        """The tokens as they are kept now; another program may have renewed them."""
        ...

    def save(self, tokens: OAuthTokens) -> None:
        """Keep these instead."""
        ...


class OAuthLogin:
    """The tokens of one remote while a client uses them. Its repr shows none.

    ``not_kept`` says why renewed tokens could not be kept, if so: the next run has to log in again.
    """

    def __init__(self, tokens: OAuthTokens, store: TokenStore | None = None) -> None:
        self.tokens = tokens
        self.renewing = asyncio.Lock()
        self.not_kept: str | None = None
        self._store = store
        self._spent: list[str] = []

    def secrets(self) -> list[str]:
        """Every token that must never be shown, newest first, those replaced meanwhile included."""
        refresh = [self.tokens.refresh.get_secret_value()] if self.tokens.refresh else []
        return [self.tokens.access.get_secret_value(), *refresh, *self._spent]

    async def adopt_kept(self) -> bool:
        """Take over tokens that another program has kept since; whether there were any."""
        kept = await asyncio.to_thread(self._store.load) if self._store else None
        if kept is None or kept.access == self.tokens.access:
            return False
        self._replace(kept)
        return True

    async def renew(self, tokens: OAuthTokens) -> None:
        """Use these from now on, and keep them: the old refresh token may be worth nothing any more.

        Raises ConfigurationError if they cannot be kept; they are used all the same.
        """
        self._replace(tokens)
        if self._store is not None:
            await asyncio.to_thread(self._store.save, tokens)

    def _replace(self, tokens: OAuthTokens) -> None:
        self._spent = self.secrets()
        self.tokens = tokens
