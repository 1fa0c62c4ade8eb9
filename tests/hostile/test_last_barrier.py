"""A widget that forgets to sanitize its text: the dashboard lets nothing of it out all the same."""

import pytest
from hostile_answers import HARM, MARK, hidden_in
from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import DataTable, Input, Static

from support.dashboard import Dashboard, text_of

AS_SEEN = HARM.replace("\r\n", " ").replace("\t", " ")
WIDE = "日本 \ue0a0 e\u0301 café"


class Forgetful(Screen[None]):
    def compose(self) -> ComposeResult:
        yield Static(Text(AS_SEEN), id="static")
        yield Static(f"{WIDE}\u00a0|", markup=False, id="wide")
        yield Input(placeholder=AS_SEEN)
        yield DataTable()

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        table.add_column(Text(AS_SEEN))
        table.add_row(Text(AS_SEEN))


@pytest.mark.parametrize("size", [(120, 30), (20, 10)])
async def test_no_segment_holds_what_a_terminal_obeys(size: tuple[int, int]) -> None:
    app = Dashboard(Forgetful)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        text = text_of(app)
        assert MARK in text
        assert hidden_in(text) == []
        assert all(cell_len(strip.text) == size[0] for strip in app.screen._compositor.render_strips())
        assert size[0] < 30 or f"{WIDE} |" in text
