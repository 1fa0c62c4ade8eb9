"""Put the key on a request; where it is an OAuth token, renew it when it has ended.

Renewing is one form-encoded POST to the remote's own API with the refresh token (RFC 6749, section 6; the
path and the client id are the official client's: truss 0.18, truss.remote.baseten.oauth).
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Generator
from datetime import timedelta
from http import HTTPStatus

import httpx
from pydantic import SecretStr

from api_client.addresses import parse_base_url
from api_client.clock import Clock
from api_client.errors import (
    ConfigurationError,
    InvalidAnswer,
    RedirectRefused,
    RequestError,
    Unauthorized,
)
from api_client.http import failures
from api_client.http.failures import RequestLine
from api_client.remotes import OAuthLogin, OAuthTokens, Remote, check_key

TOKEN_PATH = "/v1/users/auth/device/token"
CLIENT_ID = "baseten-cli"
GRANT_TYPE = "refresh_token"
_LINE = RequestLine("POST", TOKEN_PATH)


class KeyAuth(httpx.Auth):
    """Puts the key on a request just before it leaves, so that it lies nowhere else as plain text.

    Raises RequestError where a login has ended and cannot be renewed: nothing was sent then, or the
    server has refused it.
    """

    def __init__(self, remote: Remote, user_agent: str, clock: Clock) -> None:
        self._remote = remote
        self._user_agent = user_agent
        self._clock = clock
        self._host = parse_base_url(remote.api_url, source=f"remote '{remote.name}'").netloc

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """One request, and around it what it takes to have a token that is good."""
        login = self._remote.login
        if login is None:
            self._sign(request, self._remote.key)
            yield request
            return
        if self._has_ended(login):
            async with login.renewing:
                if self._has_ended(login) and login.tokens.refresh is not None:
                    await login.adopt_kept()
                    if self._has_ended(login):
                        answer = yield self._renewal(request, login)
                        await self._take(answer, login)
        used = login.tokens.access
        self._sign(request, used)
        response = yield request
        if response.status_code != HTTPStatus.UNAUTHORIZED:
            return
        async with login.renewing:
            if login.tokens.access == used and not await login.adopt_kept():
                if login.tokens.refresh is None:
                    return
                answer = yield self._renewal(request, login)
                await self._take(answer, login)
        self._sign(request, login.tokens.access)
        yield request

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Not for synchronous clients."""
        raise NotImplementedError("the key is put on by async clients only")

    def _sign(self, request: httpx.Request, key: SecretStr | None) -> None:
        if key is not None:
            request.headers["Authorization"] = f"{self._remote.auth_scheme} {key.get_secret_value()}"

    def _has_ended(self, login: OAuthLogin) -> bool:
        return login.tokens.is_expired(self._clock.now())

    def _renewal(self, request: httpx.Request, login: OAuthLogin) -> httpx.Request:
        refresh = login.tokens.refresh
        assert refresh is not None
        return httpx.Request(
            "POST",
            f"{self._remote.api_url}{TOKEN_PATH}",
            data={
                "grant_type": GRANT_TYPE,
                "refresh_token": refresh.get_secret_value(),
                "client_id": CLIENT_ID,
            },
            headers={"User-Agent": self._user_agent, "Accept": "application/json"},
            extensions=dict(request.extensions),  # the timeouts
        )

    async def _take(self, answer: httpx.Response, login: OAuthLogin) -> None:
        """Use the renewed tokens from now on. Raises RequestError if there are none."""
        if answer.is_redirect:
            raise RedirectRefused(
                f"{self._host} redirected POST {TOKEN_PATH}; not followed, as the login belongs to it alone",
                method="POST",
                path=TOKEN_PATH,
            )
        content = await answer.aread()
        if answer.is_success:
            try:
                await login.renew(self._tokens_in(content, login))
            except ConfigurationError as problem:
                login.not_kept = str(problem)
            return
        error = failures.from_answer(answer, content, self._remote, self._host, _LINE, self._clock.now())
        if error.retryable:
            raise error
        # Somebody else may have renewed meanwhile: then our refresh token is spent, and theirs is kept.
        if not await login.adopt_kept():
            raise self._ended(error.server_message or error.code, answer.status_code)

    def _tokens_in(self, content: bytes, login: OAuthLogin) -> OAuthTokens:
        try:
            fields = json.loads(content)
            access, lifetime_s = str(fields["access_token"]), float(fields["expires_in"])
            refresh = fields.get("refresh_token")
            check_key(access, "the renewed login")
            return OAuthTokens(
                access=SecretStr(access),
                refresh=SecretStr(str(refresh)) if refresh else login.tokens.refresh,
                expires_at=self._clock.now() + timedelta(seconds=lifetime_s),
            )
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, ConfigurationError):
            pass
        message = f"{self._host} answered POST {TOKEN_PATH} with no usable access_token and expires_in"
        raise InvalidAnswer(message, method="POST", path=TOKEN_PATH)

    def _ended(self, words: str | None, status: int) -> RequestError:
        reason = failures.clean(words or "no reason given", self._remote)
        return Unauthorized(
            f"the login of remote '{self._remote.name}' (from {self._remote.key_origin}) has ended and"
            f" {self._host} does not renew it: {reason} ({status}); log in again with"
            f" 'truss login --remote {self._remote.name}', or set a key with"
            f" 'bt-tui login --remote {self._remote.name}'",
            status=status,
            method="POST",
            path=TOKEN_PATH,
        )
