"""Questions at a terminal fit into its width."""

import pytest

from tui.commands.support.questions import _choice
from tui.commands.support.terminal import wrapped
from tui.forms.question import Option

LONG = "The platform reads it from the adapter; the config only records it and serves any rank below it."


@pytest.mark.parametrize("columns", [60, 80])
def test_remarks_break_at_words(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = wrapped(LONG, indent="  ").splitlines()
    assert max(map(len, lines)) < columns
    assert " ".join(lines).split() == LONG.split()


@pytest.mark.parametrize("reason", ["", "still uploading", LONG])
def test_choices_are_cut_with_an_ellipsis(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    choice = _choice(Option("a", "checkpoint-400", (LONG,), reason), 0)
    shown = f"   - {choice.title}" + (f" ({choice.disabled})" if choice.disabled else "")
    assert len(shown) < 60
    assert "…" in choice.title and bool(choice.disabled) is bool(reason)
    assert choice.disabled is None or reason.startswith(choice.disabled.removesuffix("…"))
