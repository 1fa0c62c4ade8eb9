"""Questions at a terminal, answered with bytes that are not UTF-8."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import pytest

from support.cli import RunCli
from support.fake_baseten import Answer, FakeBaseten
from support.terminal import AtTerminal

WIPE = b"\x15"


Start = Callable[..., AtTerminal]


def test_a_secret_whose_bytes_are_not_understood_is_not_kept(
    at_terminal: Start, baseten: FakeBaseten
) -> None:
    baseten.on("POST", "/v1/secrets", Answer({"name": "s", "created_at": "2025-03-01T12:00:00Z"}))
    with at_terminal("secrets", "set", "s") as someone:
        bad, good = b"pass\xf0\x9fword\r", WIPE + b"password\r"
        someone.answers(("value of s, hidden:", bad), ("not UTF-8", good))
        assert someone.end() == 0
    assert [asked.body["value"] for asked in baseten.asked if asked.method == "POST"] == ["password"]


def test_a_yes_or_no_is_asked_again(at_terminal: Start, baseten: FakeBaseten) -> None:
    with at_terminal("secrets", "delete", "s") as someone:
        someone.answers(("[y/N]", b"\xe9\r"), ("[y/N]", b"n\r"))
        assert someone.end() == 130
    assert baseten.asked == []


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_what_is_piped_in_must_be_utf_8(
    cli: RunCli, baseten: FakeBaseten, monkeypatch: pytest.MonkeyPatch, errors: str
) -> None:
    for command in ("secrets set s", "login --api-key-stdin"):
        piped = io.TextIOWrapper(io.BytesIO(b"pass\xe9word\n"), encoding="utf-8", errors=errors)
        monkeypatch.setattr(sys, "stdin", piped)
        result = cli(command)
        assert (result.code, result.out, baseten.asked) == (2, "", [])
        assert "standard input is not UTF-8" in result.err
