"""The pictures of README.md and docs/health.md: the dashboard on the demo world, as it is.

``PYTHONPATH=.:tests python tests/docs/pictures.py`` takes them again, with Chromium and the font DejaVu Sans
Mono. What is in them is of that moment, so no test compares them: look at them before they are committed.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from textual.pilot import Pilot

from api_client.emulator.processes import EmulatorChild
from support.chromium import chromium
from support.dashboard import settle, text_of
from support.remotes import remote_of
from support.waiting import until
from tui.app import BtTuiApp
from tui.settings.model import Configuration, Loaded, ThemeName, ThemeSettings
from tui.widgets.row_table import RowTable

DOCUMENTS = Path(__file__).parents[2] / "docs"
FONT = "DejaVu Sans Mono"
SICK_RUNS = 9
SIZE_OF_SVG = re.compile(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"')
FONT_FACES = re.compile(r"@font-face\s*\{[^}]*\}")


async def live_run(app: BtTuiApp, pilot: Pilot[Any]) -> None:
    """A run of four nodes one of which is slow, once log, metrics and findings are there."""
    await until(pilot, lambda: "need attention" in text_of(app))
    await pilot.press("slash", *"longctx", "enter", "enter")
    await until(pilot, lambda: all(words in text_of(app) for words in ("lags behind", " lost", "3,000")))
    await until(pilot, lambda: "GPU use" in text_of(app) and "following" in text_of(app))
    await until(pilot, lambda: "reading" not in text_of(app))
    await until(pilot, lambda: " lost" in text_of(app) and "▲─" in text_of(app))  # the onset is known at last


def sick(screen: str) -> int:
    counts = re.search(r"✗ (\d+) ▲ (\d+) need attention", screen)
    return sum(map(int, counts.groups())) if counts else 0


async def fleet(app: BtTuiApp, pilot: Pilot[Any]) -> None:
    """All jobs, once each that is sick has been looked at."""
    await until(pilot, lambda: sick(text_of(app)) == SICK_RUNS and "step" in text_of(app))
    await until(pilot, lambda: "⋯" not in text_of(app))
    await pilot.press("down")
    await until(pilot, lambda: app.screen.query_one("#jobs", RowTable).cursor_row.preview.log_read)
    await settle(pilot)


Go = Callable[[BtTuiApp, Pilot[Any]], Awaitable[None]]
PICTURES: dict[str, tuple[ThemeName, int, Go]] = {
    "live.png": ("bt-dark", 36, live_run),
    "home-light.png": ("bt-light", 30, fleet),
}
"""The theme, the lines of the terminal, and the way to what is shown."""


async def drawn(theme: ThemeName, lines: int, go: Go) -> str:
    """The screen as SVG."""
    settings = Loaded(Configuration(theme=ThemeSettings(name=theme)))
    with EmulatorChild() as emulator:
        app = BtTuiApp(replace(remote_of(emulator), name="demo"), demo=True, settings=settings)
        async with app.run_test(size=(120, lines)) as pilot:
            await go(app, pilot)
            return app.export_screenshot(title="bt-tui")


def photographed(program: str, svg: str, target: Path) -> None:
    """Draw the SVG with the font of this machine, whose blocks and dots fit together."""
    svg = FONT_FACES.sub("", svg).replace("Fira Code", FONT)
    found = SIZE_OF_SVG.search(svg)
    if found is None:
        raise ValueError("the picture has no size")
    width, height = (round(float(number)) for number in found.groups())
    with TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        style = "<style>body{margin:0}svg{display:block}</style>"
        page.write_text(f'<meta charset="utf-8">{style}{svg}', encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", "--default-background-color=00000000"]
        options += [f"--user-data-dir={folder}/profile", f"--window-size={width},{height}"]
        command = [program, *options, f"--screenshot={target}", page.as_uri()]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    chromium_path = chromium() or sys.exit("Chromium is not installed")
    for name, how in PICTURES.items():
        photographed(chromium_path, asyncio.run(drawn(*how)), DOCUMENTS / name)
