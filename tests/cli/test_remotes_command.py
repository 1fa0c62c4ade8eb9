"""``bt-tui remotes``, ``login`` and ``logout`` as a person and a script use them."""

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.cli import Result, RunCli
from support.fake_baseten import Answer, FakeBaseten
from support.terminal import AtTerminal

ONE = "# mine\n[one]\nremote_provider = baseten\nremote_url = {url}\napi_key = {key}\nteam = vision\n"
TWO = "# mine\n[one]\napi_key = a\n\n[two]\napi_key = b\n"
LogIn = Callable[..., Result]
PipeIn = Callable[[str], None]


@pytest.fixture
def log_in(cli: RunCli, baseten: FakeBaseten, pipe_in: PipeIn) -> LogIn:
    """Log in to the fake server with a piped key, by default the right one."""
    user = {"email": "ada@example.com", "workspace_name": "acme"}
    baseten.on("GET", "/v1/users/me", Answer(user))

    def run(options: str = "", *, key: str = baseten.key, url: str = baseten.url, code: int = 0) -> Result:
        pipe_in(key)
        return cli(f"login --remote-url {url} --api-key-stdin {options}", environ={}, code=code)

    return run


@pytest.mark.proves("README.md", "On your own workspace")
def test_each_remote_with_the_origin_of_its_values(cli: RunCli, baseten: FakeBaseten, trussrc: Path) -> None:
    trussrc.write_text(ONE.format(url=baseten.url, key=baseten.key) + "[two]\nremote_url=http://a.b\n")
    result = cli("remotes -o json --remote one")
    environment, one, two, local = result.json
    assert environment["name"] == "<environment>"
    assert environment["credential"]["origin"] == "BASETEN_API_KEY"
    assert environment["app_url"] == {"value": baseten.url, "origin": "BASETEN_REMOTE_URL"}
    assert environment["api_url"]["origin"] == "BASETEN_MANAGEMENT_API_URL_OVERRIDE"
    assert [each["selected"] for each in (environment, one, two)] == [False, True, False]
    origin = f"api_key of {trussrc} [one]"
    assert one["credential"] == {"kind": "api_key", "origin": origin, "expires_at": None}
    assert one["team"] == {"value": "vision", "origin": f"team of {trussrc} [one]"}
    assert "https" in two["problem"]
    assert (local["name"], local["source"], local["app_url"]) == ("local", "emulator", None)
    assert baseten.key not in result.out + result.err


def test_what_a_person_must_do_is_said(cli: RunCli, trussrc: Path) -> None:
    trussrc.write_text(TWO)
    trussrc.chmod(0o644)
    unclear, unknown = cli("remotes", environ={}), cli("remotes --remote three", environ={}, code=2)
    assert "three" in unknown.err
    assert "--remote NAME" in unclear.err and "chmod 600" in unclear.err
    trussrc.write_text("")
    none = cli("remotes", environ={})
    assert "bt-tui login" in none.err
    assert "▸" not in unclear.out + unknown.out + none.out


def test_the_emulator_is_always_one_and_is_not_started_for_being_shown(cli: RunCli, trussrc: Path) -> None:
    result = cli("remotes --remote local", environ={})
    assert "▸ local" in " ".join(result.out.split())
    assert "not running" in result.out
    cli("emulator status", environ={}, code=7)
    trussrc.write_text("[local]\napi_key = a\n")
    assert "not running" not in cli("remotes", environ={}).out


@pytest.mark.proves("docs/commands.md", "`remotes`")
def test_the_key_is_verified_and_kept(cli: RunCli, log_in: LogIn, baseten: Any, trussrc: Path) -> None:
    trussrc.write_text("# mine\n[other]\napi_key = k\n")
    result = log_in("--remote acme", key=f"{baseten.key}\n")
    assert result.out == ""
    assert "ada@example.com" in result.err
    assert baseten.key not in result.err
    assert trussrc.read_text() == (
        "# mine\n[other]\napi_key = k\n\n[acme]\nremote_provider = baseten\n"
        f"remote_url = {baseten.url}\nauth_type = api_key\napi_key = {baseten.key}\n"
    )
    assert stat.S_IMODE(trussrc.stat().st_mode) == 0o600
    cli("projects --remote acme", environ={})


def test_only_a_team_that_exists_is_kept(log_in: LogIn, baseten: FakeBaseten, trussrc: Path) -> None:
    """A key of a workspace has no user."""
    baseten.on("GET", "/v1/users/me", Answer({"message": "no user"}, status=403))
    baseten.on("GET", "/v1/teams", Answer({"teams": [{"id": "t1", "name": "Vision", "default": True}]}))
    for team, code in (("Visoin", 7), ("Vision", 0)):
        log_in(f"--team {team}", code=code)
        assert trussrc.exists() == (code == 0)
    assert "team = Vision" in trussrc.read_text()


def test_a_refused_key_is_neither_kept_nor_shown(log_in: LogIn, trussrc: Path) -> None:
    for key, where, code, said in (
        ("wrong-key-55", {}, 6, "key"),
        (" \n", {}, 2, "no key on standard input"),
        ("two words", {}, 2, "standard input"),
        ("schlüssel", {}, 2, "standard input"),
        ("fine", {"url": "http://example.com"}, 2, "https"),
    ):
        result = log_in(key=key, code=code, **where)
        assert (said in result.err, trussrc.exists()) == (True, False)
        assert key not in result.err


def test_logging_in_again_keeps_address_team_and_comments(
    cli: RunCli, baseten: FakeBaseten, trussrc: Path, pipe_in: PipeIn
) -> None:
    oauth = "auth_type = oauth\noauth_access_token = a\noauth_refresh_token = b"
    trussrc.write_text(ONE.format(url=baseten.url, key="old").replace("api_key = old", oauth))
    pipe_in(baseten.key)
    cli("login --remote one --api-key-stdin", environ={})
    text = trussrc.read_text()
    assert text.startswith(f"# mine\n[one]\nremote_provider = baseten\nremote_url = {baseten.url}\n")
    for words, is_there in (("team = vision", True), ("oauth_", False), (f"api_key = {baseten.key}", True)):
        assert (words in text) == is_there
    pipe_in(baseten.key)
    assert "unset" in cli(f"login --remote-url {baseten.url} --api-key-stdin").err


def test_a_key_on_the_command_line_is_refused(cli: RunCli, trussrc: Path, pipe_in: PipeIn) -> None:
    for arguments in ("sk-in-argv", "--api-key sk-in-argv", "--api-key=sk-in-argv", "a sk-in-argv", ""):
        pipe_in("")
        result = cli(f"login {arguments}", environ={}, code=2)
        assert ("--api-key-stdin" in result.err, trussrc.exists()) == (True, False)
        assert "sk-in-argv" not in result.out + result.err


def test_the_typed_key_is_never_shown(baseten: Any, clean_environ: dict[str, str], trussrc: Path) -> None:
    environ = clean_environ | {"TERM": "xterm"}
    with AtTerminal("login", "--remote-url", baseten.url, environ=environ) as login:
        login.sees("hidden")
        login.types(baseten.key.encode() + b"\r")
        assert login.end() == 0, login.shown
    assert baseten.key.encode() not in login.shown
    assert baseten.key in trussrc.read_text()


@pytest.mark.parametrize(
    ("file", "options", "code", "left"),
    [
        (TWO, "--remote one", 0, "# mine\n[two]\napi_key = b\n"),
        ("[one]\napi_key = a\n", "", 0, ""),
        (TWO, "", 2, TWO),
        (TWO, "--remote three", 7, TWO),
        ("", "", 7, ""),
    ],
)
@pytest.mark.proves("docs/commands.md", "`remotes`")
def test_only_its_section_goes(
    cli: RunCli, trussrc: Path, file: str, options: str, code: int, left: str
) -> None:
    trussrc.write_text(file)
    trussrc.chmod(0o600)
    result = cli(f"logout {options}", environ={}, code=code)
    assert ("choose one with --remote NAME" in result.err) == (code == 2)
    assert (trussrc.read_text(), stat.S_IMODE(trussrc.stat().st_mode)) == (left, 0o600)


@pytest.mark.parametrize("status", [200, 500])
def test_an_oauth_login_is_ended_there_too(cli: RunCli, baseten: Any, trussrc: Path, status: int) -> None:
    baseten.on("POST", "/v1/users/auth/logout", Answer(b"", status=status))
    login = f"remote_url={baseten.url}\nauth_type=oauth\noauth_access_token={baseten.key}\n"
    trussrc.write_text(f"[one]\n{login}")
    result = cli("logout", environ={})
    assert trussrc.read_text() == ""
    assert {asked.path for asked in baseten.asked} == {"/v1/users/auth/logout"}
    assert ("still logged in on the server" in result.err) == (status == 500)
