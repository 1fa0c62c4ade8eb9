"""Where a script's push goes when it names the remote that everybody names."""

from pathlib import Path

import pytest

from api_client.errors import ConfigurationError
from api_client.programmatic import choose_remote

LOCAL = {"BASETEN_API_KEY": "k1", "BASETEN_REMOTE_URL": "http://127.0.0.1:8100"}


@pytest.fixture
def trussrc(tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "trussrc"
    path.write_text(
        "[baseten]\nremote_provider = baseten\nremote_url = https://app.baseten.co\napi_key = k2\n"
        "[staging]\nremote_provider = baseten\nremote_url = https://app.staging.baseten.co\napi_key = k3\n"
    )
    return {"USER_TRUSSRC_PATH": str(path)}


def test_the_default_is_the_section_of_that_name(trussrc: dict[str, str]) -> None:
    assert choose_remote("baseten", trussrc).app_url == "https://app.baseten.co"
    assert choose_remote("baseten", trussrc | {"BASETEN_API_KEY": "k1"}).key_origin.endswith("[baseten]")


def test_an_environment_that_points_elsewhere_goes_before_the_default(trussrc: dict[str, str]) -> None:
    assert choose_remote("baseten", trussrc | LOCAL).app_url == "http://127.0.0.1:8100"
    both = {"BASETEN_TRUSS_AUTH_REMOTE_URL": "http://127.0.0.1:8200", "BASETEN_TRUSS_AUTH_API_KEY": "k"}
    assert choose_remote("baseten", trussrc | both).app_url == "http://127.0.0.1:8200"


def test_a_name_that_was_chosen_is_obeyed(trussrc: dict[str, str]) -> None:
    assert choose_remote("staging", trussrc | LOCAL).app_url == "https://app.staging.baseten.co"
    with pytest.raises(ConfigurationError, match="no remote 'nowhere'"):
        choose_remote("nowhere", trussrc | LOCAL)


def test_a_key_alone_is_enough_without_a_file(tmp_path: Path) -> None:
    environ = {"USER_TRUSSRC_PATH": str(tmp_path / "none"), "BASETEN_API_KEY": "k1"}
    assert choose_remote("baseten", environ).app_url == "https://app.baseten.co"
