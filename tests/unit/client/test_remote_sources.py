"""Which source goes first, for every pair of them; keyring, profiles and broken halves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend

from api_client import ConfigurationError, Remote, resolve_remote
from api_client.remotes.listing import list_remotes

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


class World:
    """A home with files, and an environment; ``resolve`` asks it."""

    def __init__(self, folder: Path) -> None:
        self.trussrc = folder / "trussrc"
        self.go_folder = folder / "go"
        self.environ = {
            "USER_TRUSSRC_PATH": str(self.trussrc),
            "BASETEN_CONFIG_DIR": str(self.go_folder),
            "BASETEN_TRUSS_AUTH_KEYRING_DISABLED": "1",
        }

    def add_section(self, name: str = "section", **options: str) -> None:
        lines = "".join(f"{option} = {value}\n" for option, value in options.items())
        with self.trussrc.open("a") as file:
            file.write(f"[{name}]\n{lines}")

    def add_profile(self, name: str = "profile", *, current: bool = False, **fields: object) -> None:
        path = self.go_folder / "auth.json"
        content = json.loads(path.read_text()) if path.exists() else {"version": 1, "profiles": {}}
        content["profiles"][name] = {"remote_url": "https://app.baseten.co", "auth_type": "api_key"} | fields
        if current:
            content["current"] = name
        self.go_folder.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))

    def resolve(self, name: str | None = None) -> Remote:
        return resolve_remote(name, environ=self.environ)

    def key(self, name: str | None = None) -> str:
        key = self.resolve(name).key
        assert key is not None
        return key.get_secret_value()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def _add_flag_section(world: World) -> None:
    world.add_section("named", api_key="key-of-flag")


def _add_pair(world: World) -> None:
    world.environ["BASETEN_TRUSS_AUTH_REMOTE_URL"] = "https://app.baseten.co"
    world.environ["BASETEN_TRUSS_AUTH_API_KEY"] = "key-of-pair"


def _add_key(world: World) -> None:
    world.environ["BASETEN_API_KEY"] = "key-of-variable"


def _add_profile_variable(world: World) -> None:
    world.add_profile("chosen", api_key="key-of-profile-variable")
    world.environ["BASETEN_PROFILE"] = "chosen"


def _add_section(world: World) -> None:
    world.add_section("only", api_key="key-of-section")


def _add_current_profile(world: World) -> None:
    world.add_profile("current", current=True, api_key="key-of-current-profile")


IN_ORDER = {
    "key-of-flag": _add_flag_section,
    "key-of-pair": _add_pair,
    "key-of-variable": _add_key,
    "key-of-profile-variable": _add_profile_variable,
    "key-of-section": _add_section,
    "key-of-current-profile": _add_current_profile,
}
COMBINATIONS = [chosen for size in range(1, len(IN_ORDER) + 1) for chosen in combinations(IN_ORDER, size)]


@pytest.mark.parametrize("chosen", COMBINATIONS, ids="+".join)
def test_the_first_source_of_every_combination_wins(world: World, chosen: tuple[str, ...]) -> None:
    for source in reversed(chosen):
        IN_ORDER[source](world)
    name = "named" if chosen[0] == "key-of-flag" else None

    assert world.key(name) == chosen[0]

    selected = [each for each in list_remotes(name, environ=world.environ).remotes if each.is_selected]
    assert [each.remote.key.get_secret_value() for each in selected] == [chosen[0]]


def _spoil_flag(world: World) -> None:
    """Neither section nor profile has the name."""


def _spoil_flag_section(world: World) -> None:
    world.add_section("named", remote_url="http://elsewhere.example", api_key="key-of-flag")


def _spoil_flag_key(world: World) -> None:
    world.add_section("named", api_key="spoilt key")


def _leave_out_pair_key(world: World) -> None:
    world.environ["BASETEN_TRUSS_AUTH_REMOTE_URL"] = "https://app.baseten.co"


def _leave_out_pair_url(world: World) -> None:
    world.environ["BASETEN_TRUSS_AUTH_API_KEY"] = "key-of-pair"


def _spoil_pair_url(world: World) -> None:
    _add_pair(world)
    world.environ["BASETEN_TRUSS_AUTH_REMOTE_URL"] = "http://elsewhere.example"


def _spoil_pair_key(world: World) -> None:
    _add_pair(world)
    world.environ["BASETEN_TRUSS_AUTH_API_KEY"] = "key of\tpair"


def _spoil_key(world: World) -> None:
    world.environ["BASETEN_API_KEY"] = "spoilt key"


def _spoil_app_url(world: World) -> None:
    _add_key(world)
    world.environ["BASETEN_REMOTE_URL"] = "elsewhere.example"


def _spoil_api_url(world: World) -> None:
    _add_key(world)
    world.environ["BASETEN_MANAGEMENT_API_URL_OVERRIDE"] = "ftp://elsewhere.example"


def _name_no_profile(world: World) -> None:
    world.environ["BASETEN_PROFILE"] = "gone"


def _name_empty_profile(world: World) -> None:
    world.add_profile("chosen")
    world.environ["BASETEN_PROFILE"] = "chosen"


def _add_two_sections(world: World) -> None:
    world.add_section("first", api_key="key-of-first")
    world.add_section("second", api_key="key-of-second")


def _leave_out_section_key(world: World) -> None:
    world.add_section("only")


def _spoil_provider(world: World) -> None:
    world.add_section("only", remote_provider="another", api_key="key-of-section")


def _spoil_file(world: World) -> None:
    with world.trussrc.open("a") as file:
        file.write("key-of-section stands alone\n")


def _leave_out_current_key(world: World) -> None:
    world.add_profile("current", current=True)


def _leave_out_current(world: World) -> None:
    world.add_profile("idle", api_key="key-of-idle")


WRONG: dict[str, tuple[str, Callable[[World], None], str]] = {
    "flag, no such name": ("key-of-flag", _spoil_flag, "there is no remote 'named'"),
    "flag, plain http": ("key-of-flag", _spoil_flag_section, "https"),
    "flag, no key": ("key-of-flag", _spoil_flag_key, r"\[named\]"),
    "pair, no key": ("key-of-pair", _leave_out_pair_key, "AUTH_API_KEY is not.*set both or unset"),
    "pair, no url": ("key-of-pair", _leave_out_pair_url, "AUTH_REMOTE_URL is not.*set both or unset"),
    "pair, plain http": ("key-of-pair", _spoil_pair_url, "BASETEN_TRUSS_AUTH_REMOTE_URL.*https"),
    "pair, spoilt key": ("key-of-pair", _spoil_pair_key, "BASETEN_TRUSS_AUTH_API_KEY"),
    "key, spoilt": ("key-of-variable", _spoil_key, "BASETEN_API_KEY"),
    "key, no address": ("key-of-variable", _spoil_app_url, "BASETEN_REMOTE_URL.*must look like"),
    "key, no API": ("key-of-variable", _spoil_api_url, "API_URL_OVERRIDE.*must look like"),
    "profile, none": ("key-of-profile-variable", _name_no_profile, "BASETEN_PROFILE.*unset it"),
    "profile, no key": ("key-of-profile-variable", _name_empty_profile, "baseten auth login"),
    "sections, two": ("key-of-section", _add_two_sections, "choose one with --remote"),
    "section, another's": ("key-of-section", _spoil_provider, "remote_provider"),
    "section, no key": ("key-of-section", _leave_out_section_key, "bt-tui login --remote only"),
    "section, no file": ("key-of-section", _spoil_file, "trussrc"),
    "current, no key": ("key-of-current-profile", _leave_out_current_key, "baseten auth login"),
    "current, none": ("key-of-current-profile", _leave_out_current, "idle.*choose one with --remote"),
}
"""What is wrong: the source it stands for, how it comes about, and what the message must say."""


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_source_is_an_error_and_never_passed_over_for_a_later_one(what: str, tmp_path: Path) -> None:
    source, spoil, words = WRONG[what]
    place = list(IN_ORDER).index(source)
    for number, chosen in enumerate(_subsets(list(IN_ORDER)[place + 1 :])):
        world = _new_world(tmp_path / f"after{number}")
        for each in chosen:
            IN_ORDER[each](world)
        spoil(world)
        with pytest.raises(ConfigurationError, match=f"(?s){words}") as caught:
            world.resolve("named" if place == 0 else None)
        assert "key-of" not in str(caught.value)
        assert "spoilt" not in str(caught.value)


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_source_is_not_in_the_way_of_those_before_it(what: str, tmp_path: Path) -> None:
    source, spoil, _ = WRONG[what]
    earlier = list(IN_ORDER)[: list(IN_ORDER).index(source)]
    if source == "key-of-section":
        earlier.remove("key-of-flag")  # a section too, of the same file: they are tried above
    for number, chosen in enumerate(_subsets(earlier)):
        if chosen:
            world = _new_world(tmp_path / f"before{number}")
            for each in chosen:
                IN_ORDER[each](world)
            spoil(world)
            assert world.key("named" if chosen[0] == "key-of-flag" else None) == chosen[0]


def test_the_pair_s_key_never_goes_to_the_address_of_the_key_alone(world: World) -> None:
    _add_pair(world)
    world.environ["BASETEN_MANAGEMENT_API_URL_OVERRIDE"] = "https://api.mine.example"
    assert world.resolve().api_url == "https://api.mine.example"

    _add_key(world)
    world.environ["BASETEN_REMOTE_URL"] = "https://app.mine.example"
    remote = world.resolve()
    assert (remote.app_url, remote.api_url) == ("https://app.baseten.co", "https://api.baseten.co")
    assert world.key() == "key-of-pair"


def _new_world(folder: Path) -> World:
    folder.mkdir()
    return World(folder)


def _subsets(sources: list[str]) -> Iterator[tuple[str, ...]]:
    return (chosen for size in range(len(sources) + 1) for chosen in combinations(sources, size))


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


def test_a_profile_of_the_environment_that_does_not_exist(world: World) -> None:
    world.add_profile("one", api_key="k1")
    world.add_section(api_key="k2")
    world.environ["BASETEN_PROFILE"] = "two"

    with pytest.raises(ConfigurationError, match=r"BASETEN_PROFILE.*'two'.*one.*unset it"):
        world.resolve()


def test_an_unknown_name_lists_sections_and_profiles(world: World) -> None:
    world.add_section("one", api_key="k1")
    world.add_profile("two", api_key="k2")

    with pytest.raises(ConfigurationError, match=r"'three'.*one.*two"):
        world.resolve("three")


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
        entries.kept[SERVICE, "acme"] = json.dumps({"auth_type": "api_key", "api_key": SECRET})

        assert world.key() == SECRET
        assert world.resolve().key_origin == "system keyring (baseten-truss)"

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

    def test_it_is_not_asked_for_a_section_that_does_not_say_so(
        self, world: World, entries: MemoryKeyring
    ) -> None:
        world.add_section("acme")
        entries.kept[SERVICE, "acme"] = json.dumps({"auth_type": "api_key", "api_key": "kept"})

        with pytest.raises(ConfigurationError, match="no api_key"):
            world.resolve()

    def test_it_may_be_forbidden(self, world: World, entries: MemoryKeyring) -> None:
        world.add_section("acme", auth_type="api_key")
        entries.kept[SERVICE, "acme"] = json.dumps({"auth_type": "api_key", "api_key": "kept"})
        world.environ["BASETEN_TRUSS_AUTH_KEYRING_DISABLED"] = "TRUE"

        with pytest.raises(ConfigurationError, match=r"BASETEN_TRUSS_AUTH_KEYRING_DISABLED.*bt-tui login"):
            world.resolve()

    def test_without_an_entry_the_variable_s_key_is_sent(self, world: World, entries: MemoryKeyring) -> None:
        world.add_section("acme", auth_type="api_key")
        with pytest.raises(ConfigurationError, match="keyring neither"):
            world.resolve("acme")
        world.environ["BASETEN_API_KEY"] = "of-variable"
        assert world.key("acme") == "of-variable"

    def test_a_locked_one_says_so(self, world: World, entries: MemoryKeyring) -> None:
        world.add_section("acme", auth_type="oauth")
        entries.is_locked = True

        with pytest.raises(ConfigurationError, match="unlock it"):
            world.resolve()

    @pytest.mark.parametrize(
        "entry",
        [
            SECRET,
            f'["{SECRET}"]',
            f'{{"auth_type": "oauth", "api_key": "{SECRET}"}}',
            '{"auth_type": "api_key"}',
            "[" * 100_000,
        ],
    )
    def test_an_entry_that_is_none_is_not_quoted(
        self, world: World, entries: MemoryKeyring, entry: str
    ) -> None:
        world.add_section("acme", auth_type="api_key")
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


def test_a_profile_without_its_secret_says_what_to_do(world: World) -> None:
    world.add_profile("plain", current=True)

    with pytest.raises(ConfigurationError, match=r"holds no api_key.*baseten auth login"):
        world.resolve()


def test_every_problem_is_listed_beside_what_works(world: World) -> None:
    world.environ["BASETEN_TRUSS_AUTH_API_KEY"] = SECRET
    world.add_section("good", api_key=SECRET)
    world.add_section("bad", remote_url="http://elsewhere.example", api_key=SECRET)

    listing = list_remotes(environ=world.environ)

    problems = {each.name: each.problem for each in listing.remotes}
    assert "BASETEN_TRUSS_AUTH_REMOTE_URL" in str(problems["<environment>"])
    assert problems["good"] is None
    assert "https" in str(problems["bad"])
    assert SECRET not in str(listing)
    assert [each.name for each in listing.remotes if each.is_selected] == ["<environment>"]


def test_files_that_others_may_read_are_warned_of(world: World) -> None:
    world.add_section("one", api_key="k1")
    world.trussrc.chmod(0o640)
    assert any("chmod 600" in warning for warning in list_remotes(environ=world.environ).warnings)

    world.trussrc.chmod(0o600)
    assert list_remotes(environ=world.environ).warnings == ()
