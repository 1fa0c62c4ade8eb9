from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from app.widgets.widget_text import WidgetApp, full_lines
from textual.geometry import Region

from tui.tables.checkpoints import CHECKPOINT_COLUMNS
from tui.tables.column import FILL_MARKER, Column, fitted_columns, select_columns
from tui.tables.fleet import job_columns
from tui.tables.jobs import JOB_COLUMNS
from tui.widgets.cursor_rows import HEADING_LINES
from tui.widgets.row_table import RowTable


@dataclass(frozen=True)
class Planet:
    name: str
    moons: int


PLANETS = [Planet(f"planet-{number:03}", number) for number in range(200)]
COLUMNS = (
    Column[Planet]("name", "planet", lambda row: [(row.name, "plain")], width=10, flex=1, priority=2),
    Column[Planet](
        "moons",
        "moons",
        lambda row: [(str(row.moons or ""), "muted")],
        width=5,
        align="right",
        priority=1,
        needed_by=lambda row: row.moons,
        sort_key=lambda row: row.moons,
    ),
)


class TableApp(WidgetApp):
    def __init__(self, rows: Sequence[Planet], columns: Sequence[Column[Planet]] = COLUMNS) -> None:
        self.rows, self.table = rows, RowTable(columns, lambda row: row.name)
        super().__init__(self.table)

    def on_mount(self) -> None:
        self.table.set_rows(self.rows)
        self.table.focus()

    def lines(self) -> list[str]:
        return full_lines(self.table)


async def test_what_is_at_the_right_edge_of_a_cell_is_not_cut() -> None:
    cell = Column[Planet](
        "name", "planet", lambda row: [(row.name, "plain"), FILL_MARKER, (" −$60", "plain")], flex=1
    )
    lines = {}
    for width in (14, 30):
        app = TableApp(PLANETS[:1], (cell,))
        async with app.run_test(size=(width, 10)):
            lines[width] = app.lines()[HEADING_LINES]
    assert lines == {14: " planet… −$60 ", 30: f" planet-000{' ' * 13} −$60 "}


async def test_a_refresh_keeps_cursor_and_line_of_the_screen_by_key() -> None:
    app = TableApp(PLANETS)
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.press(*["pagedown"] * 4, "k", "k")
        key = app.table.cursor_key or ""
        line = [key in text for text in app.lines()]
        app.table.set_rows([Planet("newcomer", 1), Planet("another", 2), *PLANETS])
        await pilot.pause()
        assert app.table.cursor_key == key
        assert [key in text for text in app.lines()] == line


async def test_chosen_row_stays_in_view_when_rows_come_above_it() -> None:
    app = TableApp(PLANETS[-1:])
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.press("enter")
        app.table.set_rows(PLANETS)
        await pilot.pause()
        assert app.table.cursor_key == PLANETS[-1].name
        assert any(PLANETS[-1].name in text for text in app.lines())


async def test_rows_are_painted_again_only_if_their_cells_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    app = TableApp(PLANETS)
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        painted: list[Region] = []
        monkeypatch.setattr(app.table, "refresh", lambda *regions, **_: painted.extend(regions))
        app.table.set_rows([Planet(each.name, each.moons) for each in PLANETS])
        assert painted == []
        app.table.set_rows([PLANETS[0], Planet("planet-001", 9), *PLANETS[2:-1], Planet("far away", 3)])
        assert [region.y for region in painted] == [HEADING_LINES + 1]
        assert app.lines()[HEADING_LINES + 1].rstrip().endswith(" 9")


async def test_columns_that_matter_least_go_first_and_cells_are_cut_with_a_sign() -> None:
    app = TableApp(
        [Planet("a-planet-with-a-rather-long-name", 7), Planet("日本語のなまえ" * 6, 1), Planet("", 3)]
    )
    async with app.run_test(size=(16, 4)) as pilot:
        assert "moons" not in app.lines()[0]
        assert "…" in app.lines()[1]
        await pilot.resize_terminal(60, 4)
        await pilot.pause()
        assert "moons" in app.lines()[0]
        assert "a-planet-with-a-rather-long-name" in app.lines()[1]
        app.table.sort_mark = ("moons", True)
        assert app.lines()[0].rstrip().endswith(" moons▾")


@pytest.mark.parametrize(
    "columns", [job_columns(lambda: None), CHECKPOINT_COLUMNS], ids=["jobs", "checkpoints"]
)
async def test_heading_of_every_sorted_column_is_whole_at_every_width(columns) -> None:
    app = TableApp(())
    async with app.run_test(size=(60, 4)) as pilot:
        table = RowTable(columns, str)
        await app.mount(table)
        for width in range(40, 200, 7):
            await pilot.resize_terminal(width, 4)
            for column in columns:
                if column.id in table.visible_column_widths and column.sort_key is not None:
                    for descending, arrow in enumerate("▴▾"):
                        table.sort_mark = (column.id, bool(descending))
                        assert f" {column.title.strip()}{arrow}" in table.render_line(0).text


def test_every_column_of_a_job_with_a_title_has_room_on_a_screen() -> None:
    shown = [column for column in JOB_COLUMNS if column.title]
    assert [column.id for column in shown if not column.width] == []
    widths = {
        column.id: width
        for column, width in fitted_columns(select_columns(shown, "status name project age"), 80)
    }
    assert widths["status"] >= len("✓ completed") and widths["name"] >= 20


async def test_a_column_that_no_row_needs_gives_its_room_away() -> None:
    app = TableApp([Planet("venus", 0)])
    async with app.run_test(size=(40, 4)):
        assert "moons" not in app.lines()[0]
        app.table.set_rows([Planet("venus", 0), Planet("earth", 1)])
        assert "moons" in app.lines()[0]
