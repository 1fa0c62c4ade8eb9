"""Tables: aligned, as wide as needed when piped, fitted when not."""

import io

import pytest

from tui.commands.support.output import CommandOutput
from tui.commands.support.tables import Cell, facts_text, table_text
from tui.tables.column import Column, text_column

COLUMNS: tuple[Column[tuple[str, str, str]], ...] = (
    text_column("ID", lambda row: row[0]),
    text_column("NAME", lambda row: row[1], shrinks=True),
    text_column("AGE", lambda row: row[2], right_aligned=True),
)


def test_columns_are_aligned_by_cells_and_lines_have_no_trailing_blanks() -> None:
    rows = [("a", "short", "5d"), ("bbb", "a longer 你好", "12h")]
    assert table_text(COLUMNS, rows, CommandOutput(io.StringIO())) == (
        "ID   NAME           AGE\n"
        "a    short           5d\n"
        "bbb  a longer 你好  12h\n"
    )  # fmt: skip


@pytest.mark.parametrize("width_cells", [40, 3])
def test_on_a_terminal_only_shrinking_columns_are_clipped(
    width_cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CommandOutput, "width_cells", width_cells)
    rows = [("identifier", "n" * 80, "5d")]
    table = table_text(COLUMNS, rows, CommandOutput(io.StringIO()))
    assert max(map(len, table.splitlines())) <= max(width_cells, len("identifier  nnnnnnnn  AGE"))
    assert "identifier" in table and "…" in table


def test_facts_keep_long_values_whole() -> None:
    facts = [("id", Cell("x" * 200)), ("status", Cell("ok"))]
    assert facts_text(facts, CommandOutput(io.StringIO())) == f"id      {'x' * 200}\nstatus  ok\n"
