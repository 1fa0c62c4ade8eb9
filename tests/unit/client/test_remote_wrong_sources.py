"""A source that is wrong or half set is told of, and no later one is taken in its stead."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from remote_world import APP, IN_ORDER, PAIR_KEY, PAIR_URL, Change, World, both, profile, section, variables

from api_client import ConfigurationError

HTTP = "http://elsewhere.example"
KEY = "key-of-variable"


def _spoil_file(world: World) -> None:
    with world.trussrc.open("a") as file:
        file.write("key-of-section stands alone\n")


WRONG: dict[str, tuple[str, Change, str]] = {
    "flag, no such name": ("key-of-flag", lambda _world: None, "no remote 'named'"),
    "flag, plain http": ("key-of-flag", section("named", remote_url=HTTP, api_key="key-of-flag"), "https"),
    "flag, no key": ("key-of-flag", section("named", api_key="spoilt key"), r"\[named\]"),
    "pair, no key": ("key-of-pair", variables(**{PAIR_URL: APP}), "AUTH_API_KEY is not.*set both or unset"),
    "pair, no url": (
        "key-of-pair",
        variables(**{PAIR_KEY: "key-of-pair"}),
        "AUTH_REMOTE_URL is not.*set both or unset",
    ),
    "pair, plain http": (
        "key-of-pair",
        variables(**{PAIR_URL: HTTP, PAIR_KEY: "key-of-pair"}),
        "BASETEN_TRUSS_AUTH_REMOTE_URL.*https",
    ),
    "pair, spoilt key": (
        "key-of-pair",
        variables(**{PAIR_URL: APP, PAIR_KEY: "key of\tpair"}),
        "BASETEN_TRUSS_AUTH_API_KEY",
    ),
    "key, spoilt": ("key-of-variable", variables(BASETEN_API_KEY="spoilt key"), "BASETEN_API_KEY"),
    "key, not ASCII": ("key-of-variable", variables(BASETEN_API_KEY="spoiltä"), "BASETEN_API_KEY"),
    "key, no address": (
        "key-of-variable",
        variables(BASETEN_API_KEY=KEY, BASETEN_REMOTE_URL="elsewhere.example"),
        "BASETEN_REMOTE_URL.*expected one like",
    ),
    "key, plain http": (
        "key-of-variable",
        variables(BASETEN_API_KEY=KEY, BASETEN_REMOTE_URL=HTTP),
        "BASETEN_REMOTE_URL.*https",
    ),
    "key, no API": (
        "key-of-variable",
        variables(BASETEN_API_KEY=KEY, BASETEN_MANAGEMENT_API_URL_OVERRIDE="ftp://elsewhere.example"),
        "API_URL_OVERRIDE.*expected one like",
    ),
    "profile, none": (
        "key-of-profile-variable",
        variables(BASETEN_PROFILE="gone"),
        "BASETEN_PROFILE names the profile 'gone'.*unset it",
    ),
    "profile, no key": (
        "key-of-profile-variable",
        both(profile("chosen"), variables(BASETEN_PROFILE="chosen")),
        "has no api_key.*baseten auth login",
    ),
    "sections, two": (
        "key-of-section",
        both(section("first", api_key="key-of-first"), section("second", api_key="key-of-second")),
        "first.*second.*choose one with --remote",
    ),
    "section, another's": (
        "key-of-section",
        section("only", remote_provider="another", api_key="key-of-section"),
        "remote_provider",
    ),
    "section, no key": ("key-of-section", section("only"), "no api_key.*bt-tui login --remote only"),
    "section, no token": ("key-of-section", section("only", auth_type="oauth"), "keyring"),
    "section, no file": ("key-of-section", _spoil_file, "trussrc"),
    "current, no key": ("key-of-current-profile", profile("current", current=True), "baseten auth login"),
    "current, none": (
        "key-of-current-profile",
        profile("idle", api_key="key-of-idle"),
        "idle.*choose one with --remote",
    ),
}
"""What is wrong: the source it stands for, how it comes about, and what the message must say."""


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_source_is_an_error_and_never_passed_over_for_a_later_one(what: str, tmp_path: Path) -> None:
    source, spoil, words = WRONG[what]
    place = list(IN_ORDER).index(source)
    for number, chosen in enumerate(_subsets(list(IN_ORDER)[place + 1 :])):
        world = World(tmp_path / f"after{number}")
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
            world = World(tmp_path / f"before{number}")
            for each in chosen:
                IN_ORDER[each](world)
            spoil(world)
            assert world.key("named" if chosen[0] == "key-of-flag" else None) == chosen[0]


def test_the_pair_s_key_never_goes_to_the_address_of_the_key_alone(tmp_path: Path) -> None:
    world = World(tmp_path)
    IN_ORDER["key-of-pair"](world)
    world.environ["BASETEN_MANAGEMENT_API_URL_OVERRIDE"] = "https://api.mine.example"
    assert world.resolve().api_url == "https://api.mine.example"
    IN_ORDER["key-of-variable"](world)
    world.environ["BASETEN_REMOTE_URL"] = "https://app.mine.example"
    remote = world.resolve()
    assert (remote.app_url, remote.api_url) == (APP, "https://api.baseten.co")
    assert world.key() == "key-of-pair"


def _subsets(sources: list[str]) -> Iterator[tuple[str, ...]]:
    return (chosen for size in range(len(sources) + 1) for chosen in combinations(sources, size))
