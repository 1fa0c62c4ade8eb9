"""Writing one section of the credentials file: what is not meant stays as it is, byte for byte."""

import os
import stat
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from api_client import ConfigurationError
from api_client.remotes import trussrc
from api_client.remotes.trussrc import read_sections, remove_section, set_section

FILE = b"""# my remotes
; kept too

[one]
remote_provider = baseten
api_key : old-key
# a remark about one
Team=vision

[two]   # the other
api_key = k2
    continued
x=1
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trussrc"


def options(path: Path, section: str) -> dict[str, str]:
    parser = ConfigParser(interpolation=None)
    parser.read(path)
    return dict(parser[section])


def test_a_new_file_is_for_its_owner_alone(path: Path) -> None:
    set_section(path, "acme", {"remote_provider": "baseten", "api_key": "k"})
    assert path.read_text() == "[acme]\nremote_provider = baseten\napi_key = k\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_section_is_added_and_a_file_that_others_could_read_is_tightened(path: Path) -> None:
    real = path.with_name("dotfile")
    real.write_bytes(FILE)
    real.chmod(0o644)
    path.symlink_to(real)
    set_section(path, "three", {"api_key": "k3"})
    assert path.is_symlink()
    assert real.read_bytes() == FILE + b"\n[three]\napi_key = k3\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o600


def test_line_ends_and_the_mark_of_the_encoding_stay(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbf[one]\r\napi_key = a\r\n[two]\r\napi_key = b")
    set_section(path, "two", {"api_key": "c", "team": "t"})
    set_section(path, "one", {"api_key": "d"})
    assert path.read_bytes() == (b"\xef\xbb\xbf[one]\r\napi_key = d\r\n[two]\r\napi_key = c\r\nteam = t\r\n")


def test_a_section_goes_and_comments_stay(path: Path) -> None:
    path.write_bytes(FILE)
    assert remove_section(path, "one")
    assert not remove_section(path, "one")
    left = path.read_bytes()
    assert left.startswith(b"# my remotes\n; kept too\n\n# a remark about one\n[two]   # the other\n")
    assert left.endswith(FILE[FILE.index(b"[two]") :])
    assert b"old-key" not in left


@pytest.mark.parametrize("content", [b"api_key = k\n", b"[one]\napi_key = \xff\n", b"[one]\n[one]\n"])
def test_a_file_that_cannot_be_read_is_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(ConfigurationError):
        set_section(path, "one", {"api_key": "k"})
    with pytest.raises(ConfigurationError):
        remove_section(path, "one")
    assert path.read_bytes() == content
    assert sorted(path.parent.iterdir()) == [path]


SECOND_LOGIN = """
import sys, time
from pathlib import Path
from api_client.remotes.trussrc import set_section

time.sleep = lambda _seconds: print("waiting", flush=True)
set_section(Path(sys.argv[1]), "second", {"api_key": "k2"})
print("done", flush=True)
"""


@pytest.mark.parametrize("is_link", [False, True])
def test_second_login_at_the_same_time_loses_no_section(
    path: Path, monkeypatch: pytest.MonkeyPatch, is_link: bool
) -> None:
    if is_link:
        path.symlink_to(path.with_name("dotfile"))
    others: list[subprocess.Popen[str]] = []
    parse = trussrc.sections_of

    def parse_while_another_logs_in(content: bytes, at: Path) -> dict[str, dict[str, str]]:
        if not others:
            command = [sys.executable, "-c", SECOND_LOGIN, str(path)]
            others.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            assert others[0].stdout is not None
            others[0].stdout.readline()
        return parse(content, at)

    monkeypatch.setattr(trussrc, "sections_of", parse_while_another_logs_in)
    set_section(path, "first", {"api_key": "k1"})
    assert others[0].communicate()[0].endswith("done\n")
    assert read_sections(path) == {"first": {"api_key": "k1"}, "second": {"api_key": "k2"}}
    assert path.is_symlink() == is_link


def test_login_keeps_what_truss_writes_meanwhile(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parse = trussrc.sections_of

    def parse_while_truss_writes(content: bytes, at: Path) -> dict[str, dict[str, str]]:
        if not path.exists():
            path.write_bytes(FILE)
        return parse(content, at)

    monkeypatch.setattr(trussrc, "sections_of", parse_while_truss_writes)
    set_section(path, "three", {"api_key": "k3"})
    assert path.read_bytes() == FILE + b"\n[three]\napi_key = k3\n"


def test_pipe_in_place_of_the_file_is_refused(path: Path) -> None:
    os.mkfifo(path)
    for use in (
        lambda: read_sections(path),
        lambda: set_section(path, "one", {}),
        lambda: remove_section(path, "one"),
    ):
        with pytest.raises(ConfigurationError, match="cannot be read: it is not a regular file"):
            use()
    assert path.is_fifo()


@pytest.mark.parametrize("line", ["a" + " " * 900_000 + "b", "[" * 900_000, "a" + " \t" * 400_000 + "= b"])
def test_a_line_of_almost_a_megabyte_is_parsed_in_linear_time(path: Path, line: str) -> None:
    path.write_text(f"[one]\nkey = value\n{line}\n")
    try:
        set_section(path, "two", {"api_key": "k"})
    except ConfigurationError:
        return
    assert list(read_sections(path)) == ["one", "two"]


@pytest.mark.parametrize("name", ["", " a", "a]", "[a", "a\nb", "DEFAULT", "<environment>", "a\x00"])
def test_names_that_no_section_can_have(path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="name"):
        set_section(path, name, {"api_key": "k"})
    assert not path.exists()


NAMES = st.sampled_from(["one", "two", "three"])
SOME = ["# remark", "; remark", "", "   ", "api_key = a", "API_KEY: b", "team=t", "  going on", "x", "  # in"]
LINES = st.lists(st.sampled_from(SOME), max_size=6)


@given(
    st.lists(st.tuples(NAMES, LINES), max_size=3, unique_by=lambda each: each[0]),
    NAMES,
    st.dictionaries(st.sampled_from(["api_key", "remote_url", "team"]), st.just("new"), min_size=1),
)
def test_whatever_the_file_the_others_stay(
    tmp_path_factory: pytest.TempPathFactory,
    sections: list[tuple[str, list[str]]],
    name: str,
    values: dict[str, str],
) -> None:
    path = tmp_path_factory.getbasetemp() / "trussrc"
    text = "".join(f"[{section}]\n" + "".join(f"{line}\n" for line in lines) for section, lines in sections)
    path.write_text(text)
    try:
        before = {section: options(path, section) for section, _ in sections}
    except Exception:  # noqa: BLE001 - the parser refuses it: then so do we
        with pytest.raises(ConfigurationError):
            set_section(path, name, values)
        assert path.read_text() == text
        return
    set_section(path, name, values)
    for section, lines in sections:
        if section != name:
            assert options(path, section) == before[section]
            assert "".join(f"{line}\n" for line in lines) in path.read_text()
    assert options(path, name) == before.get(name, {}) | values
    kept = [line for line in path.read_text().splitlines() if line.startswith(("#", ";"))]
    assert kept == [line for line in text.splitlines() if line.startswith(("#", ";"))]
