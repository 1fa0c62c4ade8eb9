"""``bt-tui remotes``, ``login`` and ``logout`` as a person and a script use them."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import RunCli

from support.stranger import Answer, FakeBaseten
from support.terminal import AtTerminal

ROOT = Path(__file__).parents[2]
ONE = "# mine\n[one]\nremote_provider = baseten\nremote_url = {url}\napi_key = {key}\nteam = vision\n"


@pytest.fixture
def trussrc(clean_environ: dict[str, str]) -> Path:
    return Path(clean_environ["USER_TRUSSRC_PATH"])


def user(stranger: FakeBaseten) -> None:
    stranger.on("GET", "/v1/users/me", Answer(body={"email": "ada@example.com", "workspace_name": "acme"}))


def test_every_value_says_where_it_came_from(cli: RunCli, stranger: FakeBaseten, trussrc: Path) -> None:
    trussrc.write_text(ONE.format(url=stranger.url, key=stranger.key))
    trussrc.chmod(0o600)

    result = cli("remotes", environ={})

    assert result.code == 0
    assert result.err == ""
    for words in (
        "▸ ",
        "one",
        stranger.url,
        f"remote_url of {trussrc} [one]",
        f"api_key of {trussrc} [one]",
    ):
        assert words in result.out
    assert "vision" in result.out
    assert stranger.key[:6] not in result.out


def test_json_has_the_same(cli: RunCli, stranger: FakeBaseten, trussrc: Path) -> None:
    trussrc.write_text(ONE.format(url=stranger.url, key=stranger.key) + "[two]\nremote_url=http://a.b\n")

    result = cli("remotes", "-o", "json", "--remote", "one")

    environment, one, two, local = json.loads(result.out)
    assert environment["name"] == "<environment>"
    assert environment["credential"]["origin"] == "BASETEN_API_KEY"
    assert environment["app_url"] == {"value": stranger.url, "origin": "BASETEN_REMOTE_URL"}
    assert environment["api_url"]["origin"] == "BASETEN_MANAGEMENT_API_URL_OVERRIDE"
    assert [each["selected"] for each in (environment, one, two)] == [False, True, False]
    assert one["credential"] == {
        "kind": "api_key",
        "origin": f"api_key of {trussrc} [one]",
        "expires_at": None,
    }
    assert one["team"] == {"value": "vision", "origin": f"team of {trussrc} [one]"}
    assert "https" in two["problem"]
    assert (local["name"], local["source"], local["app_url"]) == ("local", "emulator", None)
    assert stranger.key not in result.out + result.err


def test_several_and_none_chosen(cli: RunCli, trussrc: Path) -> None:
    trussrc.write_text("[one]\napi_key = a\n[two]\napi_key = b\n")

    result = cli("remotes", environ={})

    assert result.code == 0
    assert "--remote NAME" in result.err
    assert "▸" not in result.out


def test_a_name_that_does_not_exist(cli: RunCli, trussrc: Path) -> None:
    trussrc.write_text("[one]\napi_key = a\n")

    assert cli("remotes", "--remote", "three", environ={}).code == 2


def test_the_emulator_is_always_one_and_is_not_started_for_being_shown(cli: RunCli, trussrc: Path) -> None:
    result = cli("remotes", "--remote", "local", environ={})

    assert result.code == 0
    assert "▸ local" in " ".join(result.out.split())
    assert "not running" in result.out
    assert cli("emulator", "status", environ={}).code == 7
    trussrc.write_text("[local]\napi_key = a\n")
    assert "not running" not in cli("remotes", environ={}).out


def test_none_at_all(cli: RunCli) -> None:
    result = cli("remotes", environ={})

    assert result.code == 0
    assert "bt-tui login" in result.err


def test_a_file_that_others_may_read(cli: RunCli, trussrc: Path) -> None:
    trussrc.write_text("[one]\napi_key = a\n")
    trussrc.chmod(0o644)

    assert f"chmod 600 {trussrc}" in cli("remotes", environ={}).err


def test_the_key_is_verified_and_kept_for_its_owner_alone(
    cli: RunCli, stranger: FakeBaseten, trussrc: Path, pipe_in: Callable[[str], None]
) -> None:
    user(stranger)
    trussrc.write_text("# mine\n[other]\napi_key = k\n")
    pipe_in(stranger.key + "\n")

    result = cli("login", "--remote", "acme", "--remote-url", stranger.url, "--api-key-stdin", environ={})

    assert result.code == 0
    assert result.out == ""
    assert "ada@example.com" in result.err
    assert stranger.key not in result.err
    assert trussrc.read_text() == (
        "# mine\n[other]\napi_key = k\n\n[acme]\nremote_provider = baseten\n"
        f"remote_url = {stranger.url}\nauth_type = api_key\napi_key = {stranger.key}\n"
    )
    assert stat.S_IMODE(trussrc.stat().st_mode) == 0o600
    assert cli("projects", "--remote", "acme", environ={}).code == 0


def test_a_team_that_there_is_is_kept_and_another_named(
    cli: RunCli, stranger: FakeBaseten, trussrc: Path, pipe_in: Callable[[str], None]
) -> None:
    user(stranger)
    stranger.on("GET", "/v1/teams", Answer(body={"teams": [{"id": "t1", "name": "Vision", "default": True}]}))
    for team, code in (("Visoin", 7), ("Vision", 0)):
        pipe_in(stranger.key)
        result = cli(*("login", "--remote-url", stranger.url, "--team", team, "--api-key-stdin"), environ={})
        assert result.code == code
        assert trussrc.exists() == (code == 0)
    assert "team = Vision" in trussrc.read_text()


def test_a_refused_key_is_not_kept(
    cli: RunCli, stranger: FakeBaseten, trussrc: Path, pipe_in: Callable[[str], None]
) -> None:
    pipe_in("wrong-key-55")

    result = cli("login", "--remote-url", stranger.url, "--api-key-stdin", environ={})

    assert result.code == 6
    assert "wrong-key-55" not in result.err
    assert not trussrc.exists()


def test_a_key_of_a_workspace_has_no_user(
    cli: RunCli, stranger: FakeBaseten, trussrc: Path, pipe_in: Callable[[str], None]
) -> None:
    stranger.on("GET", "/v1/users/me", Answer(403, {"message": "no user"}))
    pipe_in(stranger.key)

    assert cli("login", "--remote-url", stranger.url, "--api-key-stdin", environ={}).code == 0
    assert trussrc.exists()


def test_logging_in_again_keeps_address_team_and_comments(
    cli: RunCli, stranger: FakeBaseten, trussrc: Path, pipe_in: Callable[[str], None]
) -> None:
    before = ONE.format(url=stranger.url, key="old").replace(
        "api_key = old", "auth_type = oauth\noauth_access_token = a\noauth_refresh_token = b"
    )
    trussrc.write_text(before)
    pipe_in(stranger.key)

    assert cli("login", "--remote", "one", "--api-key-stdin", environ={}).code == 0

    text = trussrc.read_text()
    assert text.startswith(f"# mine\n[one]\nremote_provider = baseten\nremote_url = {stranger.url}\n")
    assert "team = vision" in text
    assert "oauth_" not in text
    assert f"api_key = {stranger.key}" in text


@pytest.mark.parametrize(
    "arguments",
    [["sk-in-argv"], ["--api-key", "sk-in-argv"], ["--api-key=sk-in-argv"], ["a", "sk-in-argv"]],
)
def test_a_key_on_the_command_line_is_refused_and_not_repeated(
    cli: RunCli, trussrc: Path, arguments: list[str]
) -> None:
    result = cli("login", *arguments, environ={})

    assert result.code == 2
    assert "--api-key-stdin" in result.err
    assert "sk-in-argv" not in result.out + result.err
    assert not trussrc.exists()


def test_without_a_terminal_it_says_how_scripts_do_it(cli: RunCli, pipe_in: Callable[[str], None]) -> None:
    pipe_in("")

    result = cli("login", environ={})

    assert result.code == 2
    assert "--api-key-stdin" in result.err


@pytest.mark.parametrize("text", ["", " \n", "two words", "schlüssel"])
def test_what_can_be_no_key(cli: RunCli, trussrc: Path, pipe_in: Callable[[str], None], text: str) -> None:
    pipe_in(text)

    result = cli("login", "--api-key-stdin", environ={})

    assert result.code == 2
    assert not text.strip() or text not in result.err
    assert not trussrc.exists()


def test_variables_that_go_first_are_told_of(
    cli: RunCli, stranger: FakeBaseten, pipe_in: Callable[[str], None]
) -> None:
    pipe_in(stranger.key)

    result = cli("login", "--remote-url", stranger.url, "--api-key-stdin")

    assert result.code == 0
    assert "unset" in result.err


def test_plain_http_to_another_machine_is_refused_before_the_key_is_read(
    cli: RunCli, pipe_in: Callable[[str], None]
) -> None:
    result = cli("login", "--remote-url", "http://example.com", "--api-key-stdin", environ={})

    assert result.code == 2
    assert "https" in result.err


def test_at_a_terminal_the_key_is_asked_for_and_never_shown(
    stranger: FakeBaseten, clean_environ: dict[str, str], trussrc: Path
) -> None:
    user(stranger)
    environ = clean_environ | {"TERM": "xterm"}
    with AtTerminal("login", "--remote-url", stranger.url, environ=environ) as login:
        login.sees("hidden")
        cmdline = Path(f"/proc/{login.process.pid}/cmdline").read_bytes()
        login.types(stranger.key.encode() + b"\r")
        code = login.end()

    assert code == 0, login.shown
    assert stranger.key.encode() not in login.shown + cmdline
    assert stranger.key in trussrc.read_text()
    assert stat.S_IMODE(trussrc.stat().st_mode) == 0o600


def test_the_section_goes_and_the_rest_stays(cli: RunCli, trussrc: Path) -> None:
    trussrc.write_text("# mine\n[one]\napi_key = a\n\n[two]\napi_key = b\n")

    result = cli("logout", "--remote", "one", environ={})

    assert result.code == 0
    assert trussrc.read_text() == "# mine\n[two]\napi_key = b\n"
    assert stat.S_IMODE(trussrc.stat().st_mode) == 0o600


def test_the_only_one_needs_no_name(cli: RunCli, trussrc: Path) -> None:
    trussrc.write_text("[one]\napi_key = a\n")

    assert cli("logout", environ={}).code == 0
    assert trussrc.read_text() == ""


def test_several_need_one(cli: RunCli, trussrc: Path) -> None:
    trussrc.write_text("[one]\napi_key = a\n[two]\napi_key = b\n")

    assert cli("logout", environ={}).code == 2
    assert cli("logout", "--remote", "three", environ={}).code == 7


def test_an_oauth_login_is_ended_at_the_server(cli: RunCli, stranger: FakeBaseten, trussrc: Path) -> None:
    stranger.on("POST", "/v1/users/auth/logout", Answer(200, b""))
    trussrc.write_text(
        f"[one]\nremote_url={stranger.url}\nauth_type=oauth\noauth_access_token={stranger.key}\n"
    )

    result = cli("logout", environ={})

    assert result.code == 0
    assert [asked.path for asked in stranger.asked] == ["/v1/users/auth/logout"]
    assert "still logged in on the server" not in result.err


def test_an_unreachable_server_does_not_keep_it(cli: RunCli, stranger: FakeBaseten, trussrc: Path) -> None:
    stranger.on("POST", "/v1/users/auth/logout", Answer(500, {"message": "broken"}))
    trussrc.write_text(
        f"[one]\nremote_url={stranger.url}\nauth_type=oauth\noauth_access_token={stranger.key}\n"
    )

    result = cli("logout", environ={})

    assert result.code == 0
    assert "still logged in on the server" in result.err
    assert trussrc.read_text() == ""
