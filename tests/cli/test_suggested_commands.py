"""Commands that a command suggests: they work as they are, with the options that were given."""

import re
from pathlib import Path

import pytest

from api_client.emulator.processes import EmulatorChild
from support.cli import Result, RunCli
from support.fake_baseten import Answer, FakeBaseten, job

SUGGESTED = re.compile(r"(?<!^)\bbt-tui(?: [^;,\n]+?)?(?=[;,]|:?\n)", re.MULTILINE)
OPTIONS = "--remote 'my lab'"


def suggestions(result: Result) -> list[str]:
    return [line.removeprefix("bt-tui").strip() for line in SUGGESTED.findall(result.err)]


def section(name: str, url: str, key: str) -> str:
    return f"[{name}]\nremote_provider = baseten\nremote_url = {url}\napi_key = {key}\n"


@pytest.fixture
def lab(emulator: EmulatorChild, trussrc: Path) -> None:
    """The emulator as one of two remotes, so that no command reaches it without naming it."""
    environ = emulator.remote_environ()
    trussrc.write_text(
        section("my lab", environ["BASETEN_REMOTE_URL"], environ["BASETEN_API_KEY"])
        + section("other", "http://127.0.0.1:9", "k")
    )
    trussrc.chmod(0o600)


@pytest.mark.usefixtures("lab", "in_folder")
def test_suggested_commands_repeat_the_remote_and_work(cli: RunCli) -> None:
    made = cli(f"{OPTIONS} init starter", environ={})
    (push,) = suggestions(made)
    assert push == f"{OPTIONS} push starter/config.py --tail"
    cli(push, environ={})
    submitted = cli(f"push starter/config.py {OPTIONS}", environ={})
    follow, dashboard = suggestions(submitted)
    assert dashboard == OPTIONS
    cli(follow, environ={})
    assert follow.startswith(f"{OPTIONS} logs ") and follow.endswith(" --follow")
    started = cli(f"{OPTIONS} workstation --skip-checks", environ={})
    ssh, install, stop, *_ = suggestions(started)
    assert all(line.startswith(f"{OPTIONS} ") for line in (ssh, install, stop)), started.err
    cli(f"{stop} --yes", environ={})
    assert suggestions(cli(f"{OPTIONS} deployments show nothing", environ={}, code=7)) == [
        f"{OPTIONS} deployments"
    ]


def test_doubt_about_a_new_job_suggests_the_list_of_that_remote(
    cli: RunCli, baseten: FakeBaseten, trussrc: Path
) -> None:
    trussrc.write_text(section("my lab", baseten.url, baseten.key))
    baseten.jobs = [job("old", "FAILED")]
    baseten.on("POST", "/v1/.*/recreate", Answer({"message": "oops"}, status=500))
    result = cli(f"recreate old {OPTIONS}", environ={}, code=8)
    assert f"check bt-tui {OPTIONS} jobs before trying again" in result.err


def test_suggested_command_keeps_a_session_read_only(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.on("GET", "/v1/models", Answer({"models": []}))
    result = cli("--readonly deployments show nothing", code=7)
    assert suggestions(result) == ["--readonly deployments"]


def test_remote_without_key_suggests_a_quoted_login(cli: RunCli, trussrc: Path) -> None:
    trussrc.write_text("[my lab; rm]\nremote_provider = baseten\n")
    assert "set a key with: bt-tui login --remote 'my lab; rm'\n" in cli("jobs", environ={}, code=6).err


def test_lists_suggest_what_shows_progress_and_health_of_running_jobs(
    cli: RunCli, baseten: FakeBaseten, trussrc: Path
) -> None:
    trussrc.write_text(section("my lab", baseten.url, baseten.key))
    baseten.jobs = [job("runs", "RUNNING"), job("ended")]
    assert suggestions(cli("jobs", environ={})) == ["jobs --health"]
    assert suggestions(cli("job runs", environ={})) == ["summary runs"]
    for words in ("jobs -o json", "job runs -o json", "job ended", "jobs --status completed"):
        assert not suggestions(cli(words, environ={}))
