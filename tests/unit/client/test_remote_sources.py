"""Which source goes first, for every pair of them; keyring, profiles and broken halves."""

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from remote_world import IN_ORDER, World

from api_client import ConfigurationError
from api_client.remotes.resolution import list_remotes

SERVICE, PROFILE_SERVICE = "baseten-truss", "baseten-profile"
SECRET = "sk-nobody-may-see-this-77"


class MemoryKeyring(KeyringBackend):
    """A keyring as any other, but in memory."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.is_locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.is_locked:
            raise keyring.errors.KeyringLocked("locked")
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


@pytest.fixture
def entries() -> Iterator[MemoryKeyring]:
    before = keyring.get_keyring()
    mine = MemoryKeyring()
    keyring.set_keyring(mine)
    yield mine
    keyring.set_keyring(before)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


COMBINATIONS = [chosen for size in range(1, len(IN_ORDER) + 1) for chosen in combinations(IN_ORDER, size)]


@pytest.mark.parametrize("chosen", COMBINATIONS, ids="+".join)
def test_the_first_source_of_every_combination_wins(world: World, chosen: tuple[str, ...]) -> None:
    for source in reversed(chosen):
        IN_ORDER[source](world)
    name = "named" if chosen[0] == "key-of-flag" else None
    assert world.key(name) == chosen[0]
    selected = [each for each in list_remotes(name, environ=world.environ).remotes if each.is_selected]
    assert [each.remote.key.get_secret_value() for each in selected] == [chosen[0]]


def test_a_profile_may_be_named_as_a_remote_and_a_section_of_that_name_goes_first(world: World) -> None:
    world.add_profile("both", api_key="of-profile")
    world.add_profile("staging", api_key="of-staging", remote_url="https://app.staging.baseten.co")
    world.add_section("both", api_key="of-section")
    assert world.key("both") == "of-section"
    staging = world.resolve("staging")
    assert staging.key is not None
    assert (staging.key.get_secret_value(), staging.api_url) == (
        "of-staging",
        "https://api.staging.baseten.co",
    )
    assert "auth.json" in staging.key_origin


def test_an_unknown_name_lists_sections_and_profiles(world: World) -> None:
    world.add_section("one", api_key="k1")
    world.add_profile("two", api_key="k2")
    with pytest.raises(ConfigurationError, match=r"'three'.*one.*two"):
        world.resolve("three")
    with pytest.raises(ConfigurationError, match=r"'local'.*one.*two.*the emulator.*BASETEN_REMOTE_URL"):
        world.resolve("local")


@pytest.mark.parametrize("variable", ["BASETEN_REMOTE_URL", "BASETEN_MANAGEMENT_API_URL_OVERRIDE"])
def test_the_key_of_a_profile_never_goes_to_an_address_of_the_environment(
    world: World, variable: str
) -> None:
    world.add_profile("one", api_key=SECRET, current=True)
    world.environ[variable] = "https://evil.example"
    with pytest.raises(ConfigurationError, match=variable):
        world.resolve()
    with pytest.raises(ConfigurationError, match=variable):
        world.resolve("one")


@pytest.mark.parametrize("content", ["{", "[]", '"text"', "\x00", "[" * 100_000])
def test_a_broken_auth_json_names_the_file_and_quotes_nothing(world: World, content: str) -> None:
    world.go_folder.mkdir()
    (world.go_folder / "auth.json").write_text(content)
    with pytest.raises(ConfigurationError, match=r"auth\.json cannot be read"):
        world.resolve()
    assert any("auth.json" in warning for warning in list_remotes(environ=world.environ).warnings)


def test_files_that_are_not_asked_cannot_be_in_the_way(world: World) -> None:
    world.go_folder.mkdir()
    (world.go_folder / "auth.json").write_text("{")
    world.add_section(api_key="k1")
    assert world.key() == "k1"


class TestKeyring:
    @pytest.fixture(autouse=True)
    def _asked(self, world: World) -> None:
        del world.environ["BASETEN_TRUSS_AUTH_KEYRING_DISABLED"]

    def test_a_key_that_the_truss_cli_kept_there(self, world: World, entries: MemoryKeyring) -> None:
        world.add_section("acme", auth_type="api_key", remote_url="https://app.baseten.co")
        world.add_section("silent")
        for name in ("acme", "silent"):
            entries.kept[SERVICE, name] = json.dumps({"auth_type": "api_key", "api_key": SECRET})
        assert world.key("acme") == SECRET
        assert world.resolve("acme").key_origin == "system keyring (baseten-truss)"
        with pytest.raises(ConfigurationError, match="no api_key"):  # it does not say that it is there
            world.resolve("silent")

    def test_tokens_that_the_truss_cli_kept_there(self, world: World, entries: MemoryKeyring) -> None:
        world.add_section("acme", auth_type="oauth")
        entries.kept[SERVICE, "acme"] = json.dumps(
            {
                "auth_type": "oauth",
                "oauth_access_token": SECRET,
                "oauth_refresh_token": "r1",
                "oauth_expires_at": 1_900_000_000,
            }
        )
        remote = world.resolve()
        assert remote.login is not None
        assert remote.login.tokens.expires_at is not None
        assert int(remote.login.tokens.expires_at.timestamp()) == 1_900_000_000
        assert SECRET not in repr(remote) + repr(remote.login) + repr(remote.login.tokens)

    def test_what_stands_in_the_file_goes_before_it(self, world: World, entries: MemoryKeyring) -> None:
        world.add_section("acme", auth_type="api_key", api_key="inline")
        entries.kept[SERVICE, "acme"] = json.dumps({"auth_type": "api_key", "api_key": "kept"})
        assert world.key() == "inline"

    def test_it_may_be_locked_or_forbidden(self, world: World, entries: MemoryKeyring) -> None:
        world.add_section("acme", auth_type="api_key")
        entries.kept[SERVICE, "acme"] = json.dumps({"auth_type": "api_key", "api_key": "kept"})
        entries.is_locked = True
        with pytest.raises(ConfigurationError, match="unlock it"):
            world.resolve()
        entries.is_locked = False
        world.environ["BASETEN_TRUSS_AUTH_KEYRING_DISABLED"] = "TRUE"
        with pytest.raises(ConfigurationError, match=r"BASETEN_TRUSS_AUTH_KEYRING_DISABLED.*bt-tui login"):
            world.resolve()

    def test_without_an_entry_the_variable_s_key_is_sent(self, world: World, entries: MemoryKeyring) -> None:
        world.add_section("acme", auth_type="api_key")
        with pytest.raises(ConfigurationError, match="nor has the system keyring"):
            world.resolve("acme")
        world.environ["BASETEN_API_KEY"] = "of-variable"
        assert world.key("acme") == "of-variable"

    def test_an_entry_that_is_none_is_not_quoted(self, world: World, entries: MemoryKeyring) -> None:
        world.add_section("acme", auth_type="api_key")
        wrong = f'{{"auth_type": "oauth", "api_key": "{SECRET}"}}'
        for entry in (SECRET, f'["{SECRET}"]', wrong, '{"auth_type": "api_key"}', "[" * 100_000):
            entries.kept[SERVICE, "acme"] = entry
            with pytest.raises(ConfigurationError, match=r"log ?in") as caught:
                world.resolve()
            assert SECRET not in str(caught.value)

    def test_the_go_cli_s_secrets_are_there_too(self, world: World, entries: MemoryKeyring) -> None:
        world.add_profile("plain", current=True)
        world.add_profile("login", auth_type="oauth")
        entries.kept[PROFILE_SERVICE, "plain"] = "k1"
        entries.kept[PROFILE_SERVICE, "login"] = json.dumps(
            {"access_token": "a1", "refresh_token": "r1", "expiry": "2030-01-02T03:04:05.678+02:00"}
        )
        assert world.key() == "k1"
        login = world.resolve("login").login
        assert login is not None
        assert login.tokens.expires_at is not None
        assert login.tokens.expires_at.timestamp() == pytest.approx(1_893_546_245.678)
