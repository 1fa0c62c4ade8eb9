"""Completion of words in shells."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_names_program_and_variable(cli, shell):
    result = cli("completion", shell)

    assert result.code == 0
    assert "bt-tui" in result.out
    assert f"_BT_TUI_COMPLETE={shell}_complete" in result.out


def test_what_the_script_asks_for(clean_environ, pytestconfig):
    asked = {"_BT_TUI_COMPLETE": "bash_complete", "COMP_WORDS": "bt-tui remo", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "tui"],
        env=clean_environ | asked,
        cwd=pytestconfig.rootpath,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert "plain,remotes" in done.stdout.split()
