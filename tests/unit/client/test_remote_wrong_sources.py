"""A source that is wrong or half set is told of, and no later one is taken in its stead."""

from pathlib import Path

import pytest
from remote_world import APP, IN_ORDER, PAIR_KEY, PAIR_URL, World, both, profile, section, subsets, variables

from api_client import ConfigurationError

HTTP = "http://elsewhere.example"
KEY = "key-of-variable"


def spoil_file(world: World) -> None:
    with world.trussrc.open("a") as file:
        file.write("key-of-section stands alone\n")


WRONG = {
    "flag, no such name": ("key-of-flag", lambda _world: None, "no remote 'named'"),
    "flag, plain http": ("key-of-flag", section("named", remote_url=HTTP, api_key="key-of-flag"), "https"),
    "flag, no key": ("key-of-flag", section("named", api_key="spoilt key"), r"\[named\]"),
    "pair, no key": ("key-of-pair", variables(**{PAIR_URL: APP}), "AUTH_API_KEY is not.*set both or unset"),
    "pair, no url": ("key-of-pair", variables(**{PAIR_KEY: "key-of-pair"}),
        "AUTH_REMOTE_URL is not.*set both or unset"),
    "pair, plain http": ("key-of-pair", variables(**{PAIR_URL: HTTP, PAIR_KEY: "key-of-pair"}),
        f"{PAIR_URL}.*https"),
    "pair, spoilt key": ("key-of-pair", variables(**{PAIR_URL: APP, PAIR_KEY: "key of\tpair"}), PAIR_KEY),
    "key, not ASCII": ("key-of-variable", variables(BASETEN_API_KEY="spoiltä"), "BASETEN_API_KEY"),
    "key, no address": ("key-of-variable", variables(BASETEN_API_KEY=KEY, BASETEN_REMOTE_URL="elsewhere"),
        "BASETEN_REMOTE_URL.*expected one like"),
    "key, no API": ("key-of-variable",
        variables(BASETEN_API_KEY=KEY, BASETEN_MANAGEMENT_API_URL_OVERRIDE="ftp://elsewhere.example"),
        "API_URL_OVERRIDE.*expected one like"),
    "profile, none": ("key-of-profile-variable", variables(BASETEN_PROFILE="gone"),
        "BASETEN_PROFILE names the profile 'gone'.*unset it"),
    "profile, no key": ("key-of-profile-variable",
        both(profile("chosen"), variables(BASETEN_PROFILE="chosen")), "has no api_key.*baseten auth login"),
    "sections, two": ("key-of-section",
        both(section("first", api_key="key-of-first"), section("second", api_key="key-of-second")),
        "first.*second.*choose one with --remote"),
    "section, another's": ("key-of-section",
        section("only", remote_provider="another", api_key="key-of-section"), "remote_provider"),
    "section, no key": ("key-of-section", section("only"), "no api_key.*bt-tui login --remote only"),
    "section, no token": ("key-of-section", section("only", auth_type="oauth"), "keyring"),
    "section, no file": ("key-of-section", spoil_file, "trussrc"),
    "current, no key": ("key-of-current-profile", profile("current", current=True), "baseten auth login"),
    "current, none": ("key-of-current-profile", profile("idle", api_key="key-of-idle"),
        "idle.*choose one with --remote"),
}  # fmt: skip
"""What is wrong: the source it stands for, how it comes about, and what the message must say."""


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_source_ends_the_search_unless_an_earlier_one_is_right(what: str, tmp_path: Path) -> None:
    source, spoil, words = WRONG[what]
    order = list(IN_ORDER)
    place = order.index(source)
    earlier, later = order[:place], order[place + 1 :]
    if source == "key-of-section":
        earlier.remove("key-of-flag")  # a section too, of the same file: they are tried above
    for number, chosen in enumerate([(), *subsets(later)]):
        world = World(tmp_path / f"after{number}", *chosen)
        spoil(world)
        with pytest.raises(ConfigurationError, match=f"(?s){words}") as caught:
            world.resolve("named" if place == 0 else None)
        assert "key-of" not in str(caught.value)
        assert "spoilt" not in str(caught.value)
    for number, chosen in enumerate(subsets(earlier)):
        world = World(tmp_path / f"before{number}", *chosen)
        spoil(world)
        assert world.key("named" if chosen[0] == "key-of-flag" else None) == chosen[0]


def test_the_pair_s_key_never_goes_to_the_address_of_the_key_alone(tmp_path: Path) -> None:
    world = World(tmp_path, "key-of-pair")
    world.environ["BASETEN_MANAGEMENT_API_URL_OVERRIDE"] = "https://api.mine.example"
    assert world.resolve().api_url == "https://api.mine.example"
    IN_ORDER["key-of-variable"](world)
    world.environ["BASETEN_REMOTE_URL"] = "https://app.mine.example"
    remote = world.resolve()
    assert (remote.app_url, remote.api_url) == (APP, "https://api.baseten.co")
    assert world.key() == "key-of-pair"
