"""Every theme that the settings offer can be read."""

from typing import get_args

import pytest
from textual.color import Color

from support.dashboard import job_view, settle
from tui.configuration.model import ThemeName
from tui.widgets.row_table import RowTable

LEAST_DIFFERENCE = 0.3
"""Of perceived brightness, from 0 to 1."""


@pytest.mark.parametrize("name", ["bt-light", "textual-light", "solarized-light", "nord"])
async def test_headings_and_the_row_under_the_cursor_stand_out(name: str) -> None:
    assert name in get_args(ThemeName)
    app = job_view()
    async with app.run_test(size=(80, 24)) as pilot:
        app.theme = name
        await settle(pilot)
        table = app.screen.query_one("#node-table", RowTable)
        heading = table.get_component_rich_style("row-table--heading").color
        cursor = table.get_component_rich_style("row-table--cursor").bgcolor
        paper, ink = (Color.parse(app.theme_variables[part]) for part in ("background", "foreground"))
        footer = Color.parse(app.theme_variables["footer-description-foreground"])
    assert abs(footer.brightness - paper.brightness) > LEAST_DIFFERENCE
    assert heading is not None and cursor is not None
    assert abs(Color.from_rich_color(heading).brightness - paper.brightness) > LEAST_DIFFERENCE
    assert abs(Color.from_rich_color(cursor).brightness - ink.brightness) > LEAST_DIFFERENCE
