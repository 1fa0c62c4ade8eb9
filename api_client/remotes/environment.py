"""The environment variables that define a remote."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import SecretStr

from api_client.addresses import parse_base_url
from api_client.errors import ConfigurationError
from api_client.remotes.remote import (
    DEFAULT_APP_URL,
    ENVIRONMENT_REMOTE,
    Remote,
    remote_at,
    secret,
)

API_KEY_VARIABLE = "BASETEN_API_KEY"
APP_URL_VARIABLE = "BASETEN_REMOTE_URL"
API_URL_VARIABLE = "BASETEN_MANAGEMENT_API_URL_OVERRIDE"
PROFILE_VARIABLE = "BASETEN_PROFILE"
TRUSS_URL_VARIABLE = "BASETEN_TRUSS_AUTH_REMOTE_URL"
TRUSS_KEY_VARIABLE = "BASETEN_TRUSS_AUTH_API_KEY"


class Environment:
    """Relevant environment variables; an empty one counts as unset."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.variables = environ
        self.app_url = self._value(APP_URL_VARIABLE)
        self.api_url = self._value(API_URL_VARIABLE)
        self.profile = self._value(PROFILE_VARIABLE)
        self.truss_url = self._value(TRUSS_URL_VARIABLE)

    @property
    def api_key(self) -> SecretStr | None:
        """``BASETEN_API_KEY``. Raises ConfigurationError if invalid in a header."""
        return self._secret(API_KEY_VARIABLE)

    @property
    def truss_key(self) -> SecretStr | None:
        """Key of the truss CLI's pair of variables. Raises ConfigurationError if invalid in a header."""
        return self._secret(TRUSS_KEY_VARIABLE)

    @property
    def holds_a_remote(self) -> bool:
        """True if there is a key or half of the pair; these take precedence over every file."""
        variables = (TRUSS_URL_VARIABLE, TRUSS_KEY_VARIABLE, API_KEY_VARIABLE)
        return any(self._value(variable) for variable in variables)

    @property
    def address_variables(self) -> list[str]:
        """Names of the set variables that hold addresses (not keys)."""
        values = {APP_URL_VARIABLE: self.app_url, API_URL_VARIABLE: self.api_url}
        return [name for name, value in values.items() if value]

    def remote(self) -> Remote | None:
        """Return the remote that the variables describe, or None if they hold no key.

        Raises ConfigurationError for half of the truss CLI's pair and for unusable addresses.
        """
        if self.truss_url is not None or self.truss_key is not None:
            if self.truss_url is None or self.truss_key is None:
                missing = TRUSS_URL_VARIABLE if self.truss_url is None else TRUSS_KEY_VARIABLE
                present = TRUSS_KEY_VARIABLE if self.truss_url is None else TRUSS_URL_VARIABLE
                raise ConfigurationError(
                    f"{present} is set but {missing} is not; set both or unset {present}"
                )
            # If BASETEN_API_KEY is set as well, the override is for that key: this one goes to its own host.
            is_only_key = self._value(API_KEY_VARIABLE) is None
            return self._remote(self.truss_url, TRUSS_URL_VARIABLE, TRUSS_KEY_VARIABLE, is_only_key)
        if self.api_key is None:
            return None
        return self._remote(self.app_url or "", APP_URL_VARIABLE, API_KEY_VARIABLE, True)

    def _remote(self, url: str, url_variable: str, key_variable: str, is_overridden: bool) -> Remote:
        key, api = self._secret(key_variable), self.rest_base() if is_overridden else None
        return remote_at(ENVIRONMENT_REMOTE, url, url_variable, key=key, key_origin=key_variable, api=api)

    def rest_base(self) -> tuple[str, str] | None:
        """Return the REST base that the override sets, and its origin. Raises ConfigurationError."""
        if self.api_url is None:
            return None
        return str(parse_base_url(self.api_url, source=API_URL_VARIABLE)), API_URL_VARIABLE

    def reject_foreign_addresses(self, where: str, url: str) -> None:
        """Raise ConfigurationError if the environment would send a key of ``where`` to another host."""
        if self.address_variables and self.api_key is None:
            raise ConfigurationError(
                f"{' and '.join(self.address_variables)} is set without {API_KEY_VARIABLE}, but the key of "
                f"{where} is for {url or DEFAULT_APP_URL}: set {API_KEY_VARIABLE} too, or unset the address"
            )

    def _value(self, variable: str) -> str | None:
        return self.variables.get(variable, "").strip() or None

    def _secret(self, variable: str) -> SecretStr | None:
        value = self._value(variable)
        return None if value is None else secret(value, variable)
