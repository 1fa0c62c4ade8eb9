"""Bytes that are no keys, typed at the dashboard in a pseudo-terminal."""

from __future__ import annotations

import os
import random
import shlex
from pathlib import Path

from raw_terminal import DrawnTerminal

from support.fake_baseten import FakeBaseten

HOSTILE = {
    "Latin-1": b"\xe9",
    "half of an emoji": b"\xf0\x9f",
    "a click beyond column 95": b"\x1b[M \xc0!",
    "UTF-16": b"\xff\xfe",
    "C1": bytes(range(0x80, 0xA0)),
    "overlong": b"\xc0\xaf\xe0\x80\xaf",
    "a surrogate": b"\xed\xa0\x80",
    "NUL": b"\0\0\0",
    "kitty keys beyond Unicode": b"\x1b[1114112u\x1b[97;1;99999999999u",
    "kitty keys with alternatives": b"\x1b[97:65;2u\x1b[97;1:3u",
    "no cells, and a click there": b"\x1b[48;0;0;0;0t\x1b[<0;1;1M",
    "a huge screen": b"\x1b[48;99999;99999;1;1t",
    "a far click": b"\x1b[<0;99999;99999M\x1b[<0;99999;99999m",
    "an answer to another program": b"\x1b]11;rgb:1c1c/1c1c/1c1c\x1b\\\x1bP>|quit\x1b\\\x1b[1q",
    "an unfinished sequence": b"\x1b[" + b"1;" * 40,
    "a hostile paste": b"\x1b[200~\xff\xfe\x1b[31mqqq\x1b]52;c;QUJD\x07\x1bq\x9bq\x1b[201~",
    "any bytes but ASCII": bytes(random.Random(7).randrange(0x80, 0x100) for _ in range(5000)),
}
UP, HELP, ESCAPE, LEAVE = b"\x1b[A", b"?", b"\x1b", b"q"


def dashboard(baseten: FakeBaseten, home: Path, *arguments: str, **environ: str) -> DrawnTerminal:
    known = {**os.environ, **baseten.environ(), "TERM": "xterm-256color", "HOME": str(home), **environ}
    return DrawnTerminal(*arguments, environ=known)


def opens_help(terminal: DrawnTerminal, data: bytes) -> None:
    """Type data that ends with the key for help, wait for it, and close it."""
    terminal.types(data)
    terminal.read_until_drawn(lambda picture: "Keyboard shortcuts" in picture)
    terminal.types(ESCAPE)
    terminal.read_until_drawn(lambda picture: "Keyboard shortcuts" not in picture)


def test_no_bytes_end_the_dashboard_and_the_next_key_is_received(tmp_path: Path) -> None:
    """Pasted into a field they are its text, and nothing else."""
    with FakeBaseten() as baseten, dashboard(baseten, tmp_path) as terminal:
        terminal.read_until_drawn(lambda picture: "job1" in picture)
        for data in HOSTILE.values():
            opens_help(terminal, data + UP + HELP)
        terminal.types(b"/\x1b[200~caf\xe9 \x1b]52;c;QUJD\x07\x1b[31mq\x1b[201~x")
        terminal.read_until_drawn(lambda picture: "caf ]52;c;QUJD[31mqx" in picture)
        assert b"\x1b]52" not in terminal.shown
        terminal.types(ESCAPE)
        terminal.read_until_drawn(lambda picture: "QUJD" not in picture)
        terminal.types(LEAVE)
        assert terminal.end() == 0


def test_after_a_pager_any_bytes_are_taken_as_well(tmp_path: Path) -> None:
    pager = shlex.join(["sh", "-c", "echo the pager ran"])
    with FakeBaseten() as baseten, dashboard(baseten, tmp_path, "watch", "job1", PAGER=pager) as terminal:
        terminal.read_until_drawn(lambda picture: "job1" in picture)
        terminal.types(b"2\xe9O")
        terminal.read_until(lambda shown: b"the pager ran" in shown)
        opens_help(terminal, b"\xe9\xf0\x9f" + HELP)
        terminal.types(LEAVE)
        assert terminal.end() == 0
