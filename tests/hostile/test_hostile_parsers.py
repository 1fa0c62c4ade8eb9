"""Whatever a person, a file or a server writes: parsers answer, or raise the error that they promise."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

from api_client.definitions import AcceleratorSpec
from api_client.errors import ConfigurationError
from api_client.remotes.trussrc import sections_of
from api_client.servable import check_rank, rank_for
from support.fake_baseten import Answer, FakeBaseten
from tui.cli import main
from tui.commands.support.output import ExitCode
from tui.settings.loading import check_file
from tui.text.times import parse_duration


def text_of(*pieces: str) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(pieces) | st.text(max_size=4), max_size=30).map("".join)


TOML = text_of("[", "]", "[[", "=", "\n", '"', "'", ".", "readonly", "true", "health", "{", "}", "1e999")
SECTIONS = text_of("[", "]", "=", ":", "\n ", "\r", "remote_url", "api_key", "%(", ")s", "#", "\x00")
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
DEEP = b"[" * 10_000
NESTED = b'{"a":' * 10_000 + b"1" + b"}" * 10_000


@given(content=TOML.map(lambda text: text.encode(errors="replace")) | st.binary(max_size=60))
@settings(max_examples=60)
def test_settings(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "settings.toml"
    file.write_bytes(content)
    for problem in check_file(file):
        assert str(problem).startswith(str(file))


@given(content=SECTIONS.map(lambda text: text.encode(errors="replace")) | st.binary(max_size=60))
def test_trussrc(content: bytes) -> None:
    try:
        sections = sections_of(content, Path("trussrc"))
    except ConfigurationError as error:
        assert "trussrc" in str(error)
    else:
        assert all(isinstance(value, str) for section in sections.values() for value in section.values())


@given(JSON_VALUES | st.from_regex(r"[A-Z0-9]{0,6}:?[0-9]{0,30}", fullmatch=True))
def test_accelerators(value: object) -> None:
    try:
        spec = AcceleratorSpec.model_validate(value)
    except ValidationError:
        return
    assert spec.count >= 0


@given(st.lists(JSON_VALUES, max_size=3), JSON_VALUES)
def test_ranks(adapter_ranks: list[object], value: object) -> None:
    advice = rank_for(adapter_ranks)
    assert (advice.default is None) == bool(advice.refusal)
    if not check_rank(value, adapter_ranks):
        assert type(value) is int


@given(st.text(max_size=12) | st.from_regex(r"([0-9]{1,30}[smhd]){0,3}", fullmatch=True))
def test_spans_of_time(text: str) -> None:
    try:
        parse_duration(text)
    except ValueError as error:
        assert type(error) is ValueError


@pytest.mark.parametrize(
    "body", [DEEP, NESTED, b'{"training_projects":' + DEEP], ids=["lists", "objects", "in it"]
)
def test_answers_of_ten_thousand_levels_are_one_sentence(
    body: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeBaseten() as server:
        server.on("GET", "/v1/training_projects", Answer(body))
        server.on("GET", "/v1/teams", Answer(body, status=500))
        for name, value in server.environ().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("USER_TRUSSRC_PATH", str(tmp_path / "trussrc"))
        assert main(["projects"]) == ExitCode.UNEXPECTED
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert "Recursion" not in said.err
