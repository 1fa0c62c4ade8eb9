"""Where to connect and with whose key."""

from __future__ import annotations

from pathlib import Path

import pytest

from api_client import ConfigurationError, Remote, RemoteNotConfigured, resolve_remote
from api_client.remotes import rest_url

KEY = "sk-very-secret-0123456789"


@pytest.fixture
def trussrc(tmp_path: Path) -> Path:
    return tmp_path / "trussrc"


def resolve(trussrc: Path, name: str | None = None, **environ: str) -> Remote:
    return resolve_remote(name, environ=environ, trussrc_path=trussrc)


def key_of(remote: Remote) -> str | None:
    return remote.key.get_secret_value() if remote.key else None


def test_nothing_at_all(trussrc: Path) -> None:
    with pytest.raises(RemoteNotConfigured, match="BASETEN_API_KEY"):
        resolve(trussrc)
    trussrc.write_text("")
    with pytest.raises(RemoteNotConfigured):
        resolve(trussrc, BASETEN_API_KEY="", BASETEN_TRUSS_AUTH_API_KEY=" ")


def test_a_key_in_the_environment_is_enough(trussrc: Path) -> None:
    remote = resolve(trussrc, BASETEN_API_KEY=f"  {KEY}\n")
    assert remote.name == "<environment>"
    assert (remote.app_url, remote.api_url) == ("https://app.baseten.co", "https://api.baseten.co")
    assert key_of(remote) == KEY
    assert remote.key_origin == "BASETEN_API_KEY"
    assert remote.auth_scheme == "Bearer"


def test_the_environment_names_app_and_api(trussrc: Path) -> None:
    remote = resolve(
        trussrc,
        BASETEN_API_KEY=KEY,
        BASETEN_REMOTE_URL="http://127.0.0.1:8765",
        BASETEN_MANAGEMENT_API_URL_OVERRIDE="http://127.0.0.1:9999/base/",
    )
    assert remote.app_url == "http://127.0.0.1:8765"
    assert remote.api_url == "http://127.0.0.1:9999/base"


def test_an_override_alone_leaves_the_default_app(trussrc: Path) -> None:
    remote = resolve(
        trussrc, BASETEN_API_KEY=KEY, BASETEN_MANAGEMENT_API_URL_OVERRIDE="http://127.0.0.1:9999"
    )
    assert (remote.app_url, remote.api_url) == ("https://app.baseten.co", "http://127.0.0.1:9999")


def test_the_pair_of_truss_goes_before_the_key_alone(trussrc: Path) -> None:
    remote = resolve(
        trussrc,
        BASETEN_API_KEY="other",
        BASETEN_TRUSS_AUTH_REMOTE_URL="https://app.staging.baseten.co",
        BASETEN_TRUSS_AUTH_API_KEY=KEY,
    )
    assert key_of(remote) == KEY
    assert remote.api_url == "https://api.staging.baseten.co"
    assert remote.key_origin == "BASETEN_TRUSS_AUTH_API_KEY"


@pytest.mark.parametrize("variable", ["BASETEN_TRUSS_AUTH_REMOTE_URL", "BASETEN_TRUSS_AUTH_API_KEY"])
def test_half_of_the_pair_is_an_error(trussrc: Path, variable: str) -> None:
    value = "https://app.baseten.co" if variable.endswith("URL") else KEY
    with pytest.raises(ConfigurationError, match="set both or unset") as caught:
        resolve(trussrc, **{variable: value})
    assert KEY not in str(caught.value)


def test_the_only_section_of_the_file(trussrc: Path) -> None:
    trussrc.write_text(
        f"[baseten]\nremote_provider = baseten\nremote_url = https://app.baseten.co/\n"
        f"api_key = {KEY}\nteam = vision\n"
    )
    remote = resolve(trussrc)
    assert (remote.name, remote.app_url) == ("baseten", "https://app.baseten.co")
    assert key_of(remote) == KEY
    assert remote.team == "vision"
    assert str(trussrc) in remote.key_origin
    assert "baseten" in remote.key_origin


def test_percent_signs_in_a_file_are_plain_characters(trussrc: Path) -> None:
    trussrc.write_text("[a]\napi_key = a%(b)s%%c\n")
    assert key_of(resolve(trussrc)) == "a%(b)s%%c"


def test_several_sections_need_a_choice(trussrc: Path) -> None:
    trussrc.write_text(f"[one]\napi_key={KEY}\n[two]\napi_key=k2\n")
    with pytest.raises(ConfigurationError, match="one, two"):
        resolve(trussrc)
    assert resolve(trussrc, "two").name == "two"
    with pytest.raises(ConfigurationError, match=r"'three'.*one, two"):
        resolve(trussrc, "three")


def test_a_named_section_wins_over_the_environment(trussrc: Path) -> None:
    trussrc.write_text("[two]\nremote_url=https://app.staging.baseten.co\napi_key=section-key\n")
    remote = resolve(
        trussrc,
        "two",
        BASETEN_API_KEY=KEY,
        BASETEN_REMOTE_URL="https://app.elsewhere.example",
        BASETEN_MANAGEMENT_API_URL_OVERRIDE="https://api.elsewhere.example",
    )
    assert key_of(remote) == "section-key"
    assert remote.api_url == "https://api.staging.baseten.co"


def test_a_section_without_key_falls_back_to_the_environment(trussrc: Path) -> None:
    trussrc.write_text("[two]\nremote_url=https://app.staging.baseten.co\n")
    remote = resolve(trussrc, "two", BASETEN_API_KEY=KEY)
    assert (remote.name, key_of(remote), remote.key_origin) == ("two", KEY, "BASETEN_API_KEY")
    assert remote.api_url == "https://api.staging.baseten.co"


@pytest.mark.parametrize("variable", ["BASETEN_REMOTE_URL", "BASETEN_MANAGEMENT_API_URL_OVERRIDE"])
@pytest.mark.parametrize("name", [None, "one"])
def test_a_key_of_the_file_never_goes_to_an_address_of_the_environment(
    trussrc: Path, variable: str, name: str | None
) -> None:
    trussrc.write_text(f"[one]\napi_key={KEY}\n")
    with pytest.raises(ConfigurationError, match=variable) as caught:
        resolve(trussrc, name, **{variable: "https://evil.example"})
    assert KEY not in str(caught.value)


def test_an_address_without_any_key_says_what_is_missing(trussrc: Path) -> None:
    with pytest.raises(ConfigurationError, match="BASETEN_API_KEY"):
        resolve(trussrc, BASETEN_REMOTE_URL="https://app.baseten.co")


def test_an_inline_oauth_token(trussrc: Path) -> None:
    trussrc.write_text(f"[one]\nauth_type=oauth\napi_key=old\noauth_access_token={KEY}\n")
    remote = resolve(trussrc)
    assert (key_of(remote), remote.auth_scheme) == (KEY, "Bearer")


def test_a_section_with_neither_key_nor_token(trussrc: Path) -> None:
    trussrc.write_text("[one]\nauth_type=oauth\n")
    with pytest.raises(ConfigurationError, match="keyring"):
        resolve(trussrc)
    trussrc.write_text("[one]\nremote_url=https://app.baseten.co\n")
    with pytest.raises(ConfigurationError, match="no api_key"):
        resolve(trussrc)


def test_another_provider(trussrc: Path) -> None:
    trussrc.write_text(f"[one]\nremote_provider=other\napi_key={KEY}\n")
    with pytest.raises(ConfigurationError, match="remote_provider"):
        resolve(trussrc)


@pytest.mark.parametrize(
    "content",
    [
        f"api_key = {KEY}\n",
        f"[one]\n{KEY}\n",
        f"[one]\napi_key = {KEY}\n[one]\n",
        f"[one]\napi_key = {KEY}\napi_key = {KEY}\n",
        f"[one]\napi_key = {KEY}\n  {KEY}\n",
        f"[one]\napi_key = {KEY} {KEY}\n",
        f"[one]\napi_key = {KEY}ä\n",
    ],
)
def test_broken_files_are_errors_that_quote_nothing(trussrc: Path, content: str) -> None:
    trussrc.write_text(content)
    with pytest.raises(ConfigurationError) as caught:
        resolve(trussrc)
    error: BaseException | None = caught.value
    while error is not None:
        assert KEY not in str(error)
        assert KEY not in repr(error)
        error = error.__context__


def test_unreadable_files(trussrc: Path) -> None:
    trussrc.mkdir()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        resolve(trussrc)
    trussrc.rmdir()
    trussrc.write_bytes(b"[one]\napi_key=\xff\n")
    with pytest.raises(ConfigurationError, match="UTF-8"):
        resolve(trussrc)


def test_the_path_of_the_file_may_be_set(trussrc: Path) -> None:
    trussrc.write_text(f"[one]\napi_key={KEY}\n")
    assert resolve_remote(environ={"USER_TRUSSRC_PATH": str(trussrc)}).name == "one"


@pytest.mark.parametrize("key", ["a\nb", "a b", "schlüssel", "a\x00b"])
def test_keys_that_no_header_can_carry(trussrc: Path, key: str) -> None:
    with pytest.raises(ConfigurationError, match="BASETEN_API_KEY") as caught:
        resolve(trussrc, BASETEN_API_KEY=key)
    assert key not in str(caught.value)


@pytest.mark.parametrize("variable", ["BASETEN_REMOTE_URL", "BASETEN_MANAGEMENT_API_URL_OVERRIDE"])
def test_plain_http_to_another_machine_is_refused(trussrc: Path, variable: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{variable}.*https"):
        resolve(trussrc, **{"BASETEN_API_KEY": KEY, variable: "http://example.com"})


def test_no_repr_shows_a_key(trussrc: Path) -> None:
    assert KEY not in repr(resolve(trussrc, BASETEN_API_KEY=KEY))


@pytest.mark.parametrize(
    ("app_url", "api_url"),
    [
        ("https://app.baseten.co", "https://api.baseten.co"),
        ("https://app.staging.baseten.co", "https://api.staging.baseten.co"),
        ("https://app.dev.baseten.co/", "https://api.mc-dev.baseten.co"),
        ("http://localhost:8000", "http://api.localhost:8000"),
        ("http://localhost:8765", "http://localhost:8765"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("https://app.example.com:8443", "https://api.example.com:8443"),
        ("https://baseten.example.com", "https://api.baseten.example.com"),
        ("https://api.example.com", "https://api.example.com"),
        ("https://10.1.2.3", "https://10.1.2.3"),
    ],
)
def test_the_rest_base_of_an_app_host(app_url: str, api_url: str) -> None:
    assert rest_url(app_url) == api_url
