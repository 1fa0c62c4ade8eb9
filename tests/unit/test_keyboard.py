"""Keyboard input that no decoder and no parser of textual takes."""

import pytest
from hypothesis import assume, given, strategies as st
from textual.events import Key, MouseEvent, Paste, Resize

from tui.system.keyboard import MAX_CELLS, PASTE_SILENCE_S, Keyboard

UP = b"\x1b[A"
START, END = b"\x1b[200~", b"\x1b[201~"

PIECES = st.one_of(
    st.binary(max_size=8),
    st.sampled_from([b"\x1b", b"\x1b[", b"\x1b]", b"\x1b[M", b"\x1b[<", b"\x1b[48;", b"\x1bO", START, END]),
    st.from_regex(rb"\A[0-9:;]{1,12}[~A-Zmtuy$]\Z"),
)


def pressed(keyboard: Keyboard, data: bytes) -> list[str]:
    return [event.key for event in keyboard.feed(data) if isinstance(event, Key)]


def pasted(keyboard: Keyboard, *chunks: bytes) -> list[str]:
    events = [event for chunk in chunks for event in keyboard.feed(chunk)]
    assert not any(isinstance(event, Key) for event in events)
    return [event.text for event in events if isinstance(event, Paste)]


@given(st.lists(PIECES, max_size=12))
def test_after_any_bytes_the_next_key_is_received(chunks: list[bytes]) -> None:
    keyboard = Keyboard()
    for chunk in chunks:
        list(keyboard.feed(chunk))
    assert pressed(keyboard, END + UP)[-1] == "up"


@given(st.lists(PIECES, max_size=12))
def test_a_paste_never_becomes_keys(chunks: list[bytes]) -> None:
    assume(END not in b"".join(chunks))
    keyboard = Keyboard()
    for chunk in (START, *chunks):
        assert pressed(keyboard, chunk) == []


@pytest.mark.parametrize(
    "data",
    [
        b"\xe9",  # é in Latin-1
        b"\xc0\xaf\xe0\x80\xaf",  # a slash, overlong
        bytes(range(0x80, 0xA0)),  # C1
        b"\x1b[M \xc0!",  # a click in column 160, as old terminals report it
        b"\x1b[M \xc3\xa9",  # one in column 163 and row 137, which is é in UTF-8
        b"\x1b[1114112u",  # kitty keys beyond Unicode
        b"\x1b[55296u",
        b"\x1b[48;0;0;0;0t\x1b[<0;1;1M",  # a terminal without cells, and a click there
        b"\x1b[48;-1;80;1;1t",  # parameters that no sequence has
        b"\x1b[<-1;-1;-1M",
        b"\x1b]11;rgb:1c1c/1c1c/1c1c\x1b\\",  # answers to questions of a program that ran before
        b"\x1bP>|tmux 3.3a\x1b\\",
        b"\x1b]0;quit\x07",
    ],
)
def test_what_cannot_be_read_is_no_key(data: bytes) -> None:
    keyboard = Keyboard()
    assert pressed(keyboard, data + b"j") == ["j"]
    assert pressed(keyboard, data + UP) == ["up"]


def test_characters_and_sequences_may_arrive_in_pieces_and_a_click_after_a_paste_in_pixels() -> None:
    keyboard = Keyboard()
    data = "éЖj".encode() + UP
    assert [key for byte in data for key in pressed(keyboard, bytes([byte]))] == ["é", "Ж", "j", "up"]
    list(keyboard.feed(b"\x1b[48;24;80;480;800t" + START + END))
    (click,) = [event for event in keyboard.feed(b"\x1b[<0;101;41M") if isinstance(event, MouseEvent)]
    assert (click.x, click.y) == (10, 2)


@pytest.mark.parametrize("columns", [0, MAX_CELLS + 1, 10**9])
def test_no_report_makes_the_screen_larger_than_screens_are(columns: int) -> None:
    report = f"\x1b[48;24;{columns};480;800t".encode()
    assert [event for event in Keyboard().feed(report) if isinstance(event, Resize)] == []


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"two\r\nlines\rand more\n", "two\nlines\nand more\n"),
        (b"\xff\xfeh\x00e\x00", "he"),  # UTF-16
        (b"caf\xe9 \x9b31m", "caf 31m"),
        (b"red \x1b[31mqqq\x1b", "red [31mqqq"),
        ("tab\tno-break\xa0space\u202egnol".encode(), "tab no-break spacegnol"),
        (START + b"again", "[200~again"),
        (b"\x1b[20\x1b[Mabc1~q", "[20[Mabc1~q"),
    ],
)
def test_a_paste_is_its_text_alone(content: bytes, text: str) -> None:
    data = START + content + END
    assert pasted(Keyboard(), data) == [text]
    assert pasted(Keyboard(), *(data[at : at + 1] for at in range(len(data)))) == [text]


def test_a_paste_without_an_end_is_over_after_a_silence() -> None:
    now_s = 0.0
    keyboard = Keyboard(clock=lambda: now_s)
    assert pasted(keyboard, START + b"cut o", b"ff") == []
    now_s += PASTE_SILENCE_S
    assert list(keyboard.tick()) == []
    now_s += 1
    assert [event.text for event in keyboard.tick() if isinstance(event, Paste)] == ["cut off"]
    assert pressed(keyboard, b"j") == ["j"]
