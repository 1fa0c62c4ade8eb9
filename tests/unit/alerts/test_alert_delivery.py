"""Sequences for the terminal hold one text, of bounded length, and nothing that it could obey."""

import json

from hypothesis import given, strategies as st

from support.worlds import ONE_O_CLOCK, job
from tui.alerts.alert import Alert
from tui.alerts.delivery import notification_sequence, osc_kind, title_sequence
from tui.alerts.payloads import payload
from tui.analysis.health.registry import KINDS
from tui.analysis.run.finding import HealthFinding

HOSTILE = "a\x1b]52;c;QUJD\x07b\x1b\\c\x9c\x00\n\r\u202e;d"


def controls(text: str) -> list[str]:
    return [letter for letter in text if not letter.isprintable()]


def test_what_is_sent_for_each_terminal() -> None:
    assert notification_sequence("777", "▲ a;b", "c;d", {}) == "\x1b]777;notify;▲ a,b;c,d\x07"
    # A number is not taken for a command of the terminal; tmux and screen hand on what is wrapped.
    assert notification_sequence("9", "4;1", "x", {}).startswith("\x1b]9;– 4;1")
    in_tmux = notification_sequence("9", "a", "b", {"TMUX": "/tmp/x,1,0"})
    assert in_tmux == "\x1bPtmux;\x1b\x1b]9;a: b\x07\x1b\\"
    assert notification_sequence("9", "a", "b", {"STY": "1.pts"}) == "\x1bP\x1b]9;a: b\x07\x1b\\"


def test_auto_goes_by_the_terminal() -> None:
    xterm = {"TERM": "xterm-256color"}
    assert [osc_kind("auto", one) for one in (xterm | {"TERM_PROGRAM": "iTerm.app"}, {})] == ["9", "9"]
    assert [osc_kind("auto", one) for one in (xterm | {"VTE_VERSION": "7600"}, {"TERM": "foot"})] == [
        "777",
        "777",
    ]
    assert osc_kind("auto", {"TERM": "dumb"}) == "off"
    assert osc_kind("777", {}) == "777"


@given(st.text(max_size=600))
def test_no_text_gets_out_of_its_sequence(text: str) -> None:
    for hostile in (text, HOSTILE + text):
        assert controls(title_sequence(hostile)) == ["\x1b", "\x07"]
        assert controls(notification_sequence("9", hostile, hostile, {})) == ["\x1b", "\x07"]
        sequence = notification_sequence("777", hostile, hostile, {})
        assert controls(sequence) == ["\x1b", "\x07"]
        assert sequence.count(";") == 3
        assert len(title_sequence(hostile)) < 200
        assert len(sequence) < 900


def test_an_alert_as_json_is_ascii_and_complete_and_its_words_are_inert() -> None:
    subject = job("id7", name=HOSTILE)
    found = HealthFinding(KINDS["straggler"], "warning", HOSTILE, "node-2", ONE_O_CLOCK)
    alert = Alert(subject, "warning", ONE_O_CLOCK, found)
    body = payload(alert.record(), "json")
    assert body.isascii() and b"\n" not in body
    told = json.loads(body)
    assert (told["event"], told["job"]["id"]) == ("finding", "id7")
    since = "2026-03-01T13:00:00+00:00"
    assert told["finding"] == {"kind": "straggler", "node": "node-2", "text": HOSTILE, "since": since}
    assert not controls(alert.title + alert.text + told["text"])
