"""Where to connect and with whose key."""

from pathlib import Path

import pytest

from api_client import ConfigurationError, Remote, RemoteNotConfigured, resolve_remote
from api_client.remotes import rest_url

KEY = "sk-very-secret-0123456789"


@pytest.fixture
def trussrc(tmp_path: Path) -> Path:
    return tmp_path / "trussrc"


def resolve(trussrc: Path, name: str | None = None, **environ: str) -> Remote:
    return resolve_remote(name, environ={**environ, "USER_TRUSSRC_PATH": str(trussrc)})


def key_of(remote: Remote) -> str | None:
    assert KEY not in repr(remote)
    return remote.key.get_secret_value() if remote.key else None


def test_nothing_at_all(trussrc: Path) -> None:
    with pytest.raises(RemoteNotConfigured, match="BASETEN_API_KEY"):
        resolve(trussrc)
    trussrc.write_text("")
    with pytest.raises(RemoteNotConfigured):
        resolve(trussrc, BASETEN_API_KEY="", BASETEN_TRUSS_AUTH_API_KEY=" ")
    with pytest.raises(ConfigurationError, match="set BASETEN_API_KEY"):
        resolve(trussrc, BASETEN_REMOTE_URL="https://app.baseten.co")


HERE, THERE = "http://127.0.0.1:8765", "http://127.0.0.1:9999/base"


@pytest.mark.parametrize(
    ("environ", "app_url", "api_url"),
    [
        ({}, "https://app.baseten.co", "https://api.baseten.co"),
        ({"BASETEN_REMOTE_URL": HERE}, HERE, HERE),
        ({"BASETEN_REMOTE_URL": HERE, "BASETEN_MANAGEMENT_API_URL_OVERRIDE": f"{THERE}/"}, HERE, THERE),
        ({"BASETEN_MANAGEMENT_API_URL_OVERRIDE": THERE}, "https://app.baseten.co", THERE),
    ],
)
def test_a_key_in_the_environment_is_enough_and_variables_name_app_and_api(
    trussrc: Path, environ: dict[str, str], app_url: str, api_url: str
) -> None:
    remote = resolve(trussrc, BASETEN_API_KEY=f"  {KEY}\n", **environ)
    assert (remote.name, key_of(remote), remote.key_origin) == ("<environment>", KEY, "BASETEN_API_KEY")
    assert (remote.app_url, remote.api_url) == (app_url, api_url)
    assert remote.auth_scheme == "Bearer"


def test_the_only_section_of_the_file(trussrc: Path) -> None:
    trussrc.write_text(
        f"[baseten]\nremote_provider = baseten\nremote_url = https://app.baseten.co/\n"
        f"api_key = {KEY}%(b)s%%c\nteam = vision\n"
    )
    remote = resolve(trussrc)
    assert (remote.name, remote.app_url, remote.team) == ("baseten", "https://app.baseten.co", "vision")
    assert key_of(remote) == f"{KEY}%(b)s%%c"
    assert remote.key_origin == f"api_key of {trussrc} [baseten]"


def test_a_named_section_wins_over_the_environment(trussrc: Path) -> None:
    trussrc.write_text("[two]\nremote_url=https://app.staging.baseten.co\napi_key=section-key\n[one]\n")
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


def test_an_inline_oauth_token(trussrc: Path) -> None:
    trussrc.write_text(f"[one]\nauth_type=oauth\napi_key=old\noauth_access_token={KEY}\n")
    remote = resolve(trussrc)
    assert (key_of(remote), remote.auth_scheme) == (KEY, "Bearer")


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
        b"[one]\napi_key=%s\xff\n" % KEY.encode(),
    ],
)
def test_broken_files_are_errors_that_quote_nothing(trussrc: Path, content: str | bytes) -> None:
    trussrc.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigurationError) as caught:
        resolve(trussrc)
    error: BaseException | None = caught.value
    while error is not None:
        assert KEY not in str(error)
        assert KEY not in repr(error)
        error = error.__context__


def test_a_file_that_cannot_be_read(trussrc: Path) -> None:
    trussrc.mkdir()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        resolve(trussrc)


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
