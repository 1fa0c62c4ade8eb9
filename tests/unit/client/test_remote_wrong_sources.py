"""A source that is wrong or half set is told of, and no later one is taken in its stead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path

import pytest
from remote_world import IN_ORDER, World, add_key, add_pair

from api_client import ConfigurationError


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


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
    add_pair(world)
    world.environ["BASETEN_TRUSS_AUTH_REMOTE_URL"] = "http://elsewhere.example"


def _spoil_pair_key(world: World) -> None:
    add_pair(world)
    world.environ["BASETEN_TRUSS_AUTH_API_KEY"] = "key of\tpair"


def _spoil_key(world: World) -> None:
    world.environ["BASETEN_API_KEY"] = "spoilt key"


def _spoil_app_url(world: World) -> None:
    add_key(world)
    world.environ["BASETEN_REMOTE_URL"] = "elsewhere.example"


def _spoil_api_url(world: World) -> None:
    add_key(world)
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
    "flag, no such name": ("key-of-flag", _spoil_flag, "no remote 'named'"),
    "flag, plain http": ("key-of-flag", _spoil_flag_section, "https"),
    "flag, no key": ("key-of-flag", _spoil_flag_key, r"\[named\]"),
    "pair, no key": ("key-of-pair", _leave_out_pair_key, "AUTH_API_KEY is not.*set both or unset"),
    "pair, no url": ("key-of-pair", _leave_out_pair_url, "AUTH_REMOTE_URL is not.*set both or unset"),
    "pair, plain http": ("key-of-pair", _spoil_pair_url, "BASETEN_TRUSS_AUTH_REMOTE_URL.*https"),
    "pair, spoilt key": ("key-of-pair", _spoil_pair_key, "BASETEN_TRUSS_AUTH_API_KEY"),
    "key, spoilt": ("key-of-variable", _spoil_key, "BASETEN_API_KEY"),
    "key, no address": ("key-of-variable", _spoil_app_url, "BASETEN_REMOTE_URL.*expected one like"),
    "key, no API": ("key-of-variable", _spoil_api_url, "API_URL_OVERRIDE.*expected one like"),
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
    add_pair(world)
    world.environ["BASETEN_MANAGEMENT_API_URL_OVERRIDE"] = "https://api.mine.example"
    assert world.resolve().api_url == "https://api.mine.example"

    add_key(world)
    world.environ["BASETEN_REMOTE_URL"] = "https://app.mine.example"
    remote = world.resolve()
    assert (remote.app_url, remote.api_url) == ("https://app.baseten.co", "https://api.baseten.co")
    assert world.key() == "key-of-pair"


def _new_world(folder: Path) -> World:
    folder.mkdir()
    return World(folder)


def _subsets(sources: list[str]) -> Iterator[tuple[str, ...]]:
    return (chosen for size in range(len(sources) + 1) for chosen in combinations(sources, size))
