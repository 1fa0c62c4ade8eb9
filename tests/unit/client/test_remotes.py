"""Where to connect and with whose key: variables, the file, profiles, the keyring, and which goes first."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import keyring
import pytest
from hypothesis import given, strategies as st
from keyring.backend import KeyringBackend
from pydantic import SecretStr
from remote_world import APP, IN_ORDER, Change, World, profile, section, subsets

from api_client import ConfigurationError, Remote, RemoteNotConfigured
from api_client.remotes import rest_url
from api_client.remotes.resolution import list_remotes

SERVICE, PROFILE_SERVICE = "baseten-truss", "baseten-profile"
SECRET = "sk-nobody-may-see-this-77"
HERE, THERE = "http://127.0.0.1:8765", "http://127.0.0.1:9999/base"
STAGING, STAGING_API = "https://app.staging.baseten.co", "https://api.staging.baseten.co"
API_URL = "BASETEN_MANAGEMENT_API_URL_OVERRIDE"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_nothing_at_all(world: World) -> None:
    with pytest.raises(RemoteNotConfigured, match="BASETEN_API_KEY"):
        world.resolve()
    world.trussrc.write_text("")
    world.environ |= {"BASETEN_API_KEY": "", "BASETEN_TRUSS_AUTH_API_KEY": " "}
    with pytest.raises(RemoteNotConfigured):
        world.resolve()
    world.environ["BASETEN_REMOTE_URL"] = APP
    with pytest.raises(ConfigurationError, match="set BASETEN_API_KEY"):
        world.resolve()


@pytest.mark.parametrize(
    ("environ", "app_url", "api_url"),
    [
        ({}, APP, "https://api.baseten.co"),
        ({"BASETEN_REMOTE_URL": HERE}, HERE, HERE),
        ({"BASETEN_REMOTE_URL": HERE, API_URL: f"{THERE}/"}, HERE, THERE),
        ({API_URL: THERE}, APP, THERE),
    ],
)
def test_a_key_in_the_environment_is_enough_and_variables_name_app_and_api(
    world: World, environ: dict[str, str], app_url: str, api_url: str
) -> None:
    world.environ |= {"BASETEN_API_KEY": f"  {SECRET}\n"} | environ
    remote = world.resolve()
    assert (remote.name, remote.key_origin, world.key()) == ("<environment>", "BASETEN_API_KEY", SECRET)
    assert (remote.app_url, remote.api_url, remote.auth_scheme) == (app_url, api_url, "Bearer")
    assert SECRET not in repr(remote)


@pytest.mark.parametrize("chosen", subsets(IN_ORDER), ids="+".join)
@pytest.mark.proves("README.md", "On your own workspace")
def test_the_first_source_of_every_combination_wins(tmp_path: Path, chosen: tuple[str, ...]) -> None:
    world = World(tmp_path, *reversed(chosen))
    name = "named" if chosen[0] == "key-of-flag" else None
    assert world.key(name) == chosen[0]
    selected = [each for each in list_remotes(name, environ=world.environ).remotes if each.is_selected]
    assert [each.remote.key.get_secret_value() for each in selected] == [chosen[0]]


def test_a_section_has_its_own_address_team_and_key_or_the_variable_s_key(world: World) -> None:
    world.add_section("one", remote_url=f"{APP}/", api_key=f"{SECRET}%(b)s%%c", team="vision")
    one = world.resolve()
    assert (one.name, one.app_url, one.team) == ("one", APP, "vision")
    assert (world.key(), one.key_origin) == (f"{SECRET}%(b)s%%c", f"api_key of {world.trussrc} [one]")
    world.add_section("two", remote_url=STAGING, api_key="section-key")
    world.add_section("three", remote_url=STAGING)
    world.environ["BASETEN_API_KEY"] = SECRET
    assert (world.key("three"), world.resolve("three").key_origin) == (SECRET, "BASETEN_API_KEY")
    world.environ |= {"BASETEN_REMOTE_URL": HERE, API_URL: THERE}
    assert (world.key("two"), world.resolve("two").api_url) == ("section-key", STAGING_API)


def test_a_profile_may_be_named_as_a_remote_and_a_section_of_that_name_goes_first(world: World) -> None:
    world.add_profile("both", api_key="of-profile")
    world.add_profile("staging", api_key="of-staging", remote_url=STAGING)
    world.add_section("both", api_key="of-section")
    assert (world.key("both"), world.key("staging")) == ("of-section", "of-staging")
    staging = world.resolve("staging")
    assert (staging.api_url, "auth.json" in staging.key_origin) == (STAGING_API, True)


def test_an_unknown_name_lists_sections_and_profiles(world: World) -> None:
    world.add_section("one", api_key="k1")
    world.add_profile("two", api_key="k2")
    with pytest.raises(ConfigurationError, match=r"'three'.*one.*two"):
        world.resolve("three")
    with pytest.raises(ConfigurationError, match=r"'local'.*one.*two.*the emulator.*BASETEN_REMOTE_URL"):
        world.resolve("local")


@pytest.mark.parametrize("variable", ["BASETEN_REMOTE_URL", API_URL])
@pytest.mark.parametrize("name", [None, "one"])
@pytest.mark.parametrize(
    "source", [section("one", api_key=SECRET), profile("one", api_key=SECRET, current=True)]
)
def test_a_key_of_the_file_never_goes_to_an_address_of_the_environment(
    world: World, variable: str, name: str | None, source: Change
) -> None:
    source(world)
    world.environ[variable] = "https://evil.example"
    with pytest.raises(ConfigurationError, match=variable) as caught:
        world.resolve(name)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        *("api_key = KEY\n", "[one]\nKEY\n", "[one]\napi_key = KEY\napi_key = KEY\n"),
        *("[one]\napi_key = KEY\n  KEY\n", "[one]\napi_key = KEY KEY\n", "[one]\napi_key = KEYä\n"),
        "[one]\napi_key=KEY\udcff\n",
    ],
)
def test_broken_files_are_errors_that_quote_nothing(world: World, content: str) -> None:
    world.trussrc.write_bytes(content.replace("KEY", SECRET).encode(errors="surrogateescape"))
    with pytest.raises(ConfigurationError) as caught:
        world.resolve()
    error: BaseException | None = caught.value
    while error is not None:
        assert SECRET not in f"{error} {error!r}"
        error = error.__context__
    world.trussrc.unlink()
    world.trussrc.mkdir()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        world.resolve()


@pytest.mark.parametrize("content", ["{", "[]", '"text"', "\x00", "[" * 100_000])
def test_a_broken_auth_json_is_named_unless_nobody_asks_it(world: World, content: str) -> None:
    world.go_folder.mkdir()
    (world.go_folder / "auth.json").write_text(content)
    with pytest.raises(ConfigurationError, match=r"auth\.json cannot be read"):
        world.resolve()
    assert any("auth.json" in warning for warning in list_remotes(environ=world.environ).warnings)
    world.add_section(api_key="k1")
    assert world.key() == "k1"


class MemoryKeyring(KeyringBackend):
    priority = 1

    def __init__(self) -> None:
        super().__init__()
        self.kept = {(SERVICE, "acme"): json.dumps({"auth_type": "api_key", "api_key": SECRET})}
        self.is_locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.is_locked:
            raise keyring.errors.KeyringLocked("locked")
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password


@pytest.fixture
def entries(world: World) -> Iterator[MemoryKeyring]:
    """The system's keyring, which may be asked, and has a key of ``acme``."""
    del world.environ["BASETEN_TRUSS_AUTH_KEYRING_DISABLED"]
    before, mine = keyring.get_keyring(), MemoryKeyring()
    keyring.set_keyring(mine)
    yield mine
    keyring.set_keyring(before)


@pytest.mark.proves("README.md", "On your own workspace")
def test_a_key_in_the_keyring_is_used_where_the_file_says_so(world: World, entries: MemoryKeyring) -> None:
    entries.kept[SERVICE, "silent"] = entries.kept[SERVICE, "acme"]
    world.add_section("acme", auth_type="api_key", remote_url=APP)
    world.add_section("silent")
    assert world.key("acme") == SECRET
    assert world.resolve("acme").key_origin == "system keyring (baseten-truss)"
    with pytest.raises(ConfigurationError, match="no api_key"):
        world.resolve("silent")
    world.trussrc.write_text("[acme]\nauth_type = api_key\napi_key = inline\n")
    assert world.key() == "inline"
    world.trussrc.write_text(f"[acme]\nauth_type = oauth\napi_key = old\noauth_access_token = {SECRET}\n")
    assert (world.key(), world.resolve().auth_scheme) == (SECRET, "Bearer")


def expires_at_s(remote: Remote) -> float:
    assert remote.login is not None
    assert remote.login.tokens.expires_at is not None
    assert SECRET not in repr(remote) + repr(remote.login) + repr(remote.login.tokens)
    return remote.login.tokens.expires_at.timestamp()


def test_tokens_that_the_truss_cli_kept_there(world: World, entries: MemoryKeyring) -> None:
    world.add_section("acme", auth_type="oauth")
    tokens = {"oauth_access_token": SECRET, "oauth_refresh_token": "r1", "oauth_expires_at": 1_900_000_000}
    entries.kept[SERVICE, "acme"] = json.dumps({"auth_type": "oauth"} | tokens)
    assert expires_at_s(world.resolve()) == 1_900_000_000


def test_the_keyring_may_be_locked_forbidden_or_empty(world: World, entries: MemoryKeyring) -> None:
    world.add_section("acme", auth_type="api_key")
    entries.is_locked = True
    with pytest.raises(ConfigurationError, match="unlock it"):
        world.resolve()
    entries.is_locked = False
    world.environ["BASETEN_TRUSS_AUTH_KEYRING_DISABLED"] = "TRUE"
    with pytest.raises(ConfigurationError, match=r"BASETEN_TRUSS_AUTH_KEYRING_DISABLED.*bt-tui login"):
        world.resolve()
    del world.environ["BASETEN_TRUSS_AUTH_KEYRING_DISABLED"], entries.kept[SERVICE, "acme"]
    with pytest.raises(ConfigurationError, match="nor has the system keyring"):
        world.resolve("acme")
    world.environ["BASETEN_API_KEY"] = "of-variable"
    assert world.key("acme") == "of-variable"


def test_an_entry_that_is_none_is_not_quoted(world: World, entries: MemoryKeyring) -> None:
    world.add_section("acme", auth_type="api_key")
    wrong = f'{{"auth_type": "oauth", "api_key": "{SECRET}"}}'
    for entry in (SECRET, f'["{SECRET}"]', wrong, '{"auth_type": "api_key"}', "[" * 100_000):
        entries.kept[SERVICE, "acme"] = entry
        with pytest.raises(ConfigurationError, match=r"log ?in") as caught:
            world.resolve()
        assert SECRET not in str(caught.value)


def test_the_go_cli_s_secrets_are_there_too(world: World, entries: MemoryKeyring) -> None:
    world.add_profile("plain", current=True)
    world.add_profile("login", auth_type="oauth")
    entries.kept[PROFILE_SERVICE, "plain"] = "k1"
    tokens = {"access_token": SECRET, "refresh_token": "r1", "expiry": "2030-01-02T03:04:05.678+02:00"}
    entries.kept[PROFILE_SERVICE, "login"] = json.dumps(tokens)
    assert world.key() == "k1"
    assert expires_at_s(world.resolve("login")) == pytest.approx(1_893_546_245.678)


@pytest.mark.parametrize(
    ("app_url", "api_url"),
    [
        (APP, "https://api.baseten.co"),
        (STAGING, STAGING_API),
        ("https://app.dev.baseten.co/", "https://api.mc-dev.baseten.co"),
        ("http://localhost:8000", "http://api.localhost:8000"),
        ("https://baseten.example.com", "https://api.baseten.example.com"),
        *((same, same) for same in ("http://[::1]:8000", "https://api.example.com", "https://10.1.2.3")),
    ],
)
def test_the_rest_base_of_an_app_host(app_url: str, api_url: str) -> None:
    assert rest_url(app_url) == api_url


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.dictionaries(
    st.sampled_from(["remote_url", "auth_type", "api_key", "oauth_credential"]), JSON | st.just("oauth")
)
TOKENS = st.dictionaries(st.sampled_from(["access_token", "refresh_token", "expiry"]), JSON | st.just("a"))
PROFILE = st.builds(lambda fields, tokens: fields | {"oauth_credential": tokens}, FIELDS, TOKENS) | FIELDS


@given(JSON | st.fixed_dictionaries({"profiles": JSON | st.fixed_dictionaries({"me": PROFILE | JSON})}))
def test_profile_of_any_shape_is_a_remote_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, content: object
) -> None:
    world = World(tmp_path_factory.mktemp("home"))
    world.go_folder.mkdir()
    (world.go_folder / "auth.json").write_text(json.dumps(content))
    assert list_remotes(environ=world.environ)
    with suppress(ConfigurationError):
        world.resolve("me")


@pytest.mark.parametrize("expiry", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59-12:00", 253402300799, 1e300])
def test_expiry_at_the_edge_of_the_calendar_is_unknown(world: World, expiry: object) -> None:
    tokens = {"access_token": "a", "expiry": expiry}
    world.add_profile("me", auth_type="oauth", oauth_credential=tokens)
    login = world.resolve("me").login
    assert login is not None
    assert login.tokens.expires_at is None


def test_command_line_of_a_remote_has_the_options_that_reach_it() -> None:
    remote = Remote("lab", "https://a.test", "https://a.test", SecretStr("k"), "a test")
    assert remote.command_line() == "bt-tui"
    given = replace(remote, options=("--remote", "my lab", "--readonly"))
    assert given.command_line("logs", "a b") == "bt-tui --remote 'my lab' --readonly logs 'a b'"
    assert given.command_line("stop", "j", changes=True) == "bt-tui --remote 'my lab' stop j"
    assert replace(remote, options=None).command_line("logs") == ""
