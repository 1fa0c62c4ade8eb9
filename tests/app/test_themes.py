"""Every theme that the settings offer can be read."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from test_files import FULL, files_view, on_the_config
from textual.color import Color
from textual.command import CommandPalette
from textual.pilot import Pilot
from textual.theme import Theme
from textual.widgets import Input, OptionList

from support.dashboard import Dashboard, home, job_view, opened, pressed, settle, text_of
from support.sick_runs import sick_run
from support.waiting import sees, until
from tui.app.theme import THEMES
from tui.settings.loading import load
from tui.settings.model import Loaded, ThemeName
from tui.settings.remembered import Memory, ThemeState
from tui.widgets.row_table import RowTable
from tui.widgets.status_line import StatusLine

AA_CONTRAST = 4.5
"""Of text, by the Web Content Accessibility Guidelines."""
LEAST_DIFFERENCE = 0.3
"""Of perceived brightness, from 0 to 1."""


async def test_headings_and_the_row_under_the_cursor_stand_out() -> None:
    app = home()
    async with app.run_test(size=(80, 24)) as pilot:
        for name in ("bt-light", "textual-light", "solarized-light", "nord"):
            assert name in get_args(ThemeName)
            app.theme = name
            await settle(pilot)
            table = app.screen.query_one("#jobs", RowTable)
            heading = table.get_component_rich_style("rows--heading").color
            cursor = table.get_component_rich_style("rows--cursor").bgcolor
            colors = [Color.parse(app.theme_variables[part]) for part in ("background", "foreground")]
            paper, ink = (color.brightness for color in colors)
            footer = Color.parse(app.theme_variables["footer-description-foreground"])
            for on, color in (
                (paper, footer),
                (paper, Color.from_rich_color(heading)),
                (ink, Color.from_rich_color(cursor)),
            ):
                assert abs(color.brightness - on) > LEAST_DIFFERENCE, name


@pytest.mark.parametrize("theme", THEMES)
def test_words_are_legible_also_in_the_row_under_the_cursor(theme: Theme) -> None:
    def luminance(color: str) -> float:
        parts = (part / 255 for part in Color.parse(color).rgb)
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    cursor = luminance(theme.variables["block-cursor-background"])
    words = [theme.primary, theme.accent, theme.success, theme.warning, theme.error, theme.foreground]
    for word in filter(None, [*words, theme.variables["text-muted"]]):
        darker, lighter = sorted((cursor, luminance(word)))
        assert (lighter + 0.05) / (darker + 0.05) >= AA_CONTRAST, word


def ink(app: Dashboard) -> set[str]:
    """Return the colors of the words on the screen."""
    strips = app.screen._compositor.render_strips()
    styles = [segment.style for strip in strips for segment in strip if segment.text.strip()]
    return {style.color.get_truecolor().hex for style in styles if style and style.color}


async def details(pilot: Pilot[Any]) -> None:
    await sees(pilot, "findings")


@pytest.mark.parametrize(
    ("page", "ready"),
    [
        (lambda: job_view(sick_run("straggler"), tab="details"), details),
        (lambda: files_view(FULL), on_the_config),
    ],
    ids=["details", "files"],
)
async def test_words_take_the_colors_of_another_theme(
    page: Callable[[], Dashboard], ready: Callable[[Pilot[Any]], Awaitable[None]]
) -> None:
    app = page()
    async with app.run_test(size=(120, 36)) as pilot:
        await ready(pilot)
        before = ink(app)
        app.theme = "bt-light"
        await settle(pilot)
        await ready(pilot)
        await until(pilot, lambda: not before & ink(app))


async def test_cursors_are_seen_without_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = home()
    async with opened(app, (80, 24)) as pilot:
        await pressed(pilot, "colon")
        await sees(pilot, "qwen3-grpo-7")
        option = app.screen.query_one(OptionList).get_visual_style("option-list--option-highlighted")
        assert option.underline, "Textual reverses no option"
        assert app.screen.query_one(Input).get_component_rich_style("input--cursor").reverse


async def open_themes(pilot: Pilot[Any], app: Dashboard) -> None:
    await settle(pilot)
    app.themes.choose()
    await until(pilot, lambda: isinstance(app.screen, CommandPalette) and "gruvbox" in text_of(app))


async def choose(pilot: Pilot[Any], app: Dashboard, name: str) -> None:
    await open_themes(pilot, app)
    await pilot.press(*name)
    await until(pilot, lambda: app.theme == name)
    while isinstance(app.screen, CommandPalette):
        await pressed(pilot, "enter")


@pytest.mark.proves("README.md", "On your own workspace")
async def test_what_is_wrong_is_bold_without_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = job_view(sick_run("straggler"))
    async with app.run_test(size=(80, 24)):
        line = app.screen.query_one("#health", StatusLine).render()
        assert any(span.style.bold for span in line.spans if line.plain[span.start : span.end] == "▲ ")


async def test_a_theme_is_tried_on_in_its_list_and_stays_for_the_next_start_unless_the_settings_name_one(
    tmp_path: Path,
) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[theme]\nname = "dracula"\n')
    memory, named = tmp_path / "layout.json", load({"BT_TUI_CONFIG": str(file)})

    def start(settings: Loaded | None = None) -> Dashboard:
        return home(memory=Memory(memory), settings=settings)

    app = start()
    async with app.run_test(size=(80, 24)) as pilot:
        await open_themes(pilot, app)
        assert "● bt-dark" in text_of(app)
        await pilot.press(*"nord")
        await until(pilot, lambda: app.theme == "nord")
        await settle(pilot)
        assert app.screen.styles.color == Color.parse(app.theme_variables["foreground"])
        assert "needs you 1" in text_of(app), "what the theme changes stays in view"
        await pressed(pilot, "escape")
        assert app.theme == "bt-dark"
        await choose(pilot, app, "bt-light")
    assert start().theme == "bt-light"
    app = start(named)
    assert app.theme == "dracula"
    async with app.run_test(size=(80, 24)) as pilot:
        await choose(pilot, app, "nord")
        assert app.theme == "nord"
        assert any(f"{file}:2 sets the theme" in notice.message for notice in app._notifications)
    assert start(named).theme == "dracula"
    assert start().theme == "nord"


async def test_what_was_remembered_of_a_theme_that_is_no_more_is_ignored() -> None:
    memory = Memory()
    memory.put(theme=ThemeState(name="gone"))
    assert home(memory=memory).theme == "bt-dark"
