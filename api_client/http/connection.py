"""Create the HTTP client with its timeouts, TLS, proxies and authentication; renew expired OAuth tokens.

A renewal is one form-encoded POST to the remote's own API with the refresh token (RFC 6749, section 6). The
path and the client id are the official client's (truss 0.18, truss.remote.baseten.oauth).
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from collections.abc import AsyncGenerator, Sequence
from datetime import timedelta
from http import HTTPStatus

import httpx

from api_client.addresses import BaseUrl, parse_base_url
from api_client.clock import Clock
from api_client.errors import ConfigurationError, InvalidAnswer, RedirectRefused, RequestError, Unauthorized
from api_client.http import failures
from api_client.http.failures import RequestLine
from api_client.http.unpacking import ACCEPT_ENCODING, MAX_BYTES, UnpackingTransport
from api_client.remotes import OAuthLogin, OAuthTokens, Remote, check_key
from api_client.secret import SecretText
from api_client.version import __version__
from api_client.words import command_line

TOKEN_PATH = "/v1/users/auth/device/token"
_RENEWAL_LINE = RequestLine("POST", TOKEN_PATH)


class KeyAuth(httpx.Auth):
    """Adds the key to a request just before it is sent, so that no other object has the key as plain text.

    Raises RequestError if a login has expired and cannot be renewed. The request has had no effect then: it
    was not sent, or the server rejected it.
    """

    def __init__(self, remote: Remote, clock: Clock) -> None:
        self._remote = remote
        self._clock = clock
        self._host = parse_base_url(remote.api_url, source=f"remote '{remote.name}'").netloc

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Send a request; if necessary, renew the token before the request, or after a 401."""
        login = self._remote.login
        if login is None:
            self._sign(request, self._remote.key)
            yield request
            return
        rejected_token: SecretText | None = None
        for _ in range(2):
            async with login.renewing:
                if self._needs_renewal(login.tokens, rejected_token):
                    await login.adopt_saved_tokens()
                if self._needs_renewal(login.tokens, rejected_token):
                    if login.tokens.refresh is not None:
                        renewal_response = yield self._renewal_request(request, login)
                        await self._store_renewed_tokens(renewal_response, login)
                    elif rejected_token is not None:
                        return
            rejected_token = login.tokens.access
            self._sign(request, rejected_token)
            response = yield request
            if response.status_code != HTTPStatus.UNAUTHORIZED:
                return

    def _sign(self, request: httpx.Request, key: SecretText | None) -> None:
        if key is not None:
            request.headers["Authorization"] = f"{self._remote.auth_scheme} {key.get_secret_value()}"

    def _needs_renewal(self, tokens: OAuthTokens, rejected_token: SecretText | None) -> bool:
        return tokens.access == rejected_token or tokens.is_expired(self._clock.now())

    def _renewal_request(self, request: httpx.Request, login: OAuthLogin) -> httpx.Request:
        refresh = login.tokens.refresh
        assert refresh is not None
        return httpx.Request(
            "POST",
            f"{self._remote.api_url}{TOKEN_PATH}",
            data={
                "grant_type": "refresh_token",
                "refresh_token": refresh.get_secret_value(),
                "client_id": "baseten-cli",
            },
            headers=_default_headers(),
            extensions={**request.extensions, MAX_BYTES: 64 * 1024},
        )

    async def _store_renewed_tokens(self, response: httpx.Response, login: OAuthLogin) -> None:
        """Store the tokens of the response. Raises RequestError if the renewal failed."""
        if response.is_redirect:
            raise RedirectRefused(
                f"{self._host} redirected POST {TOKEN_PATH}; not followed, because the login is only for "
                f"this host",
                **_RENEWAL_LINE.details,
            )
        content = await response.aread()
        if response.is_success:
            try:
                await login.renew(self._tokens_in(content, login))
            except ConfigurationError as problem:
                login.save_problem = str(problem)
            return
        error = failures.from_response(
            response, content, self._remote, self._host, _RENEWAL_LINE, self._clock.now()
        )
        if error.retryable:
            raise error
        # Another process may have renewed the login, which invalidates our refresh token: use its tokens.
        if not await login.adopt_saved_tokens():
            raise self._login_expired(error.server_message or error.code, response.status_code)

    def _tokens_in(self, content: bytes, login: OAuthLogin) -> OAuthTokens:
        try:
            fields = json.loads(content)
            access, lifetime_s = str(fields["access_token"]), float(fields["expires_in"])
            refresh = fields.get("refresh_token")
            check_key(access, "the renewed login")
            return OAuthTokens(
                access=SecretText(access),
                refresh=SecretText(str(refresh)) if refresh else login.tokens.refresh,
                expires_at=self._clock.now() + timedelta(seconds=lifetime_s),
            )
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, ConfigurationError):
            pass
        message = f"{self._host} answered POST {TOKEN_PATH} with no usable access_token and expires_in"
        raise InvalidAnswer(message, **_RENEWAL_LINE.details)

    def _login_expired(self, server_reason: str | None, status: int) -> RequestError:
        reason = failures.clean(server_reason or "no reason given", self._remote)
        return Unauthorized(
            f"the login of remote '{self._remote.name}' (from {self._remote.key_origin}) has expired and "
            f"{self._host} refused to renew it: {reason} ({status}); log in again with"
            f" 'truss login --remote {self._remote.name}', or set a key with:"
            f" {command_line('login', '--remote', self._remote.name)}",
            status=status,
            **_RENEWAL_LINE.details,
        )


CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 60.0
KEEP_ALIVE_S = 30.0  # lifetime of an idle connection: longer than the time between two polls


async def connect(
    remote: Remote,
    sites: Sequence[BaseUrl],
    http_transport: httpx.AsyncBaseTransport | None,
    *,
    clock: Clock,
) -> httpx.AsyncClient:
    """Create an httpx client for the hosts of ``remote``; it opens connections on demand.

    ``clock`` is used to check if a login has expired. Raises ConfigurationError if the environment's
    certificates or proxies cannot be used.
    """
    needs_tls = http_transport is None and any(site.scheme == "https" for site in sites)
    # Loading the trusted certificates takes a tenth of a second, so don't do it on the event loop.
    context = (
        await asyncio.to_thread(create_tls_context) if needs_tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    )
    # No limit on connections: when a request is cancelled, httpcore may leak its slot in the pool. Transport
    # limits the number of concurrent requests instead.
    limits = httpx.Limits(keepalive_expiry=KEEP_ALIVE_S)
    try:
        # httpx must not read the environment: BaseUrl.proxy does, since other code must know the proxy.
        mounts = {
            f"all://{site.url_host}": UnpackingTransport(
                httpx.AsyncHTTPTransport(proxy=site.proxy, verify=context, limits=limits)
            )
            for site in sites
            if http_transport is None and site.proxy
        }
        return httpx.AsyncClient(
            auth=KeyAuth(remote, clock),
            headers=_default_headers(),
            timeout=httpx.Timeout(connect=CONNECT_TIMEOUT_S, read=READ_TIMEOUT_S, write=60.0, pool=None),
            follow_redirects=False,
            transport=UnpackingTransport(
                http_transport or httpx.AsyncHTTPTransport(verify=context, limits=limits, trust_env=False)
            ),
            trust_env=False,
            mounts=mounts,
        )
    except (ValueError, ImportError, httpx.InvalidURL) as error:
        reason = type(error).__name__
    # Quote only the type of the error: its message has the proxy's address, which may contain a password.
    raise ConfigurationError(f"unusable proxy settings in the environment ({reason})")


def _default_headers() -> dict[str, str]:
    return {
        "User-Agent": user_agent(),
        "Accept": "application/json",
        "Accept-Encoding": ACCEPT_ENCODING,
    }


def user_agent() -> str:
    """Return the User-Agent: ``bt-tui/<version> (Python/<version>; <system>)``."""
    python = ".".join(str(number) for number in sys.version_info[:3])
    return f"bt-tui/{__version__} (Python/{python}; {sys.platform})"


def create_tls_context() -> ssl.SSLContext:
    """Create a TLS context with the default certificates, or those of ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``.

    Raises ConfigurationError.
    """
    try:
        return httpx.create_ssl_context()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigurationError(f"can't read the trusted certificates (SSL_CERT_FILE?): {reason}") from error
