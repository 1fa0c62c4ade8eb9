"""``bt-tui serve`` where the package that it needs is not installed."""

import sys

import pytest

from support.cli import RunCli


def test_what_is_missing_names_the_python_that_lacks_it(cli: RunCli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.commands.app.serve.find_spec", lambda _name: None)
    result = cli("serve", environ={})
    assert (result.code, result.out) == (2, "")
    assert f"{sys.executable} -m pip install 'textual-serve" in result.err
