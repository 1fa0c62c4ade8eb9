"""Pictures of the screens on the demo world, at four sizes, in dark, light and without color, to look at.

``PYTHONPATH=.:tests python tests/docs/gallery.py FOLDER [WORD …]`` takes those with all these words in their
names, such as ``home``, ``sick-live``, ``80x24`` or ``no-color``. rsvg-convert makes PNGs of them.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import chdir
from dataclasses import replace
from html import escape, unescape
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from docs.pictures import FONT, FONT_FACES, SICK_RUNS, sick
from rich.cells import cell_len
from textual.pilot import Pilot

from api_client.emulator.processes import EmulatorChild
from support.dashboard import job_view, settle, text_of
from support.remotes import remote_of
from support.sick_runs import sick_run
from support.waiting import until
from tui.actions.table import JOB_TABS
from tui.app import BtTuiApp
from tui.forms.deployment import ALL_QUESTION_IDS
from tui.screens.deploy.screen import DeployScreen
from tui.screens.dialogs import ConfirmScreen
from tui.screens.home.screen import HomeScreen

SIZES = ((60, 20), (80, 24), (120, 36), (200, 50))
COLORS = (("bt-dark", "bt-light"), ("no-color",))
"""The themes of each run of the app; the last one runs with NO_COLOR."""
JOBS = {
    "sick": "longctx",
    "one-gpu": "qwen3-8b-ablate-lr",
    "rl": "qwen3-grpo-5",
    "ended": "llama-8b-lora-r16",
    "failed": "llama-70b-sft-v1",
    "stalled": "qwen3-grpo-7",
}
"""Words that only one job of the demo world has."""
FIND = {name: ("slash", *words, "enter") for name, words in JOBS.items()}
Step = tuple[tuple[str, ...], str]
"""Keys, and a word that is on the screen once what they do is complete."""
PAGES: dict[str, tuple[Step, ...]] = {
    "home": (((), "running"),),
    **{
        f"{name}-{tab}": (((*find, "enter", str(number)), "Details"),)
        for name, find in FIND.items()
        for number, tab in enumerate(JOB_TABS, 1)
    },
    "why": (((*FIND["sick"], "enter", "exclamation_mark"), "lost so far"),),
    "why-failed": (((*FIND["failed"], "enter", "exclamation_mark"), "first error"),),
    "compare": (
        (("slash", *"llama-8b-lora", "enter"), "2 of 51"),
        (("g", "space", "space"), "2 marked"),
        (("c",), "Compare"),
    ),
    **{
        f"deploy-{question}": (((*FIND["ended"], "d"), "step"),)
        for question in ("review", *sorted(ALL_QUESTION_IDS - {"secrets"}))
    },
    "files": (((*FIND["ended"], "enter", "4"), "★ best"), (("enter",), "safetensors")),
    "new-job-folder": ((("n",), "new project"), (("enter",), "in which folder")),
    "new-job-review": (
        (("n",), "new project"),
        (("enter",), "in which folder"),
        (("enter",), "Overrides"),
    ),
    "new-job": ((("n",), "config files"),),
    "capacity": ((("Q",), "waiting"),),
    "cache": (((*FIND["rl"], "C"), "huggingface"),),
    "stop": (((*FIND["sick"], "s"), "Unsaved work"),),
    "download": (((*FIND["ended"], "enter", "4"), "★ best"), (("D",), "Runs in the background")),
    "downloads": (
        ((*FIND["ended"], "enter", "4"), "★ best"),
        (("D",), "Runs in the background"),
        (("enter", "T"), "copy folder"),
    ),
    "theme": ((("colon",), "Search jobs"), ((*"theme", "enter"), "Search themes")),
    "palette": ((("colon",), "Search jobs"),),
    "help": ((("question_mark",), "Keyboard"),),
}
"""The steps that lead to each page from Home."""
TEXTS = re.compile(
    r'<text (?P<attributes>class="[^"]*") x="(?P<x>[^"]*)" y="(?P<y>[^"]*)" textLength[^>]*>'
    r"(?P<content>.*?)</text>",
    re.DOTALL,
)
CELL, BRAILLE = 12.2, 0x2800
DOTS = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))
"""Column and row of the dot that each bit of a braille character stands for."""
UNREAD = ("reading", "Reading", "Loading", "Connecting")


async def take_page(pilot: Pilot[Any], folder: Path, names: Iterable[str]) -> None:
    """Take the pictures of these names, which end with the size and the theme, of the page that is shown."""
    app = pilot.app
    for name in names:
        *_, size, theme = name.rsplit("--", 2)
        if theme in app.available_themes:
            app.theme = theme
        await pilot.resize_terminal(*map(int, size.split("x")))
        await settle(pilot)
        await pilot.pause(0.5)
        save(app.export_screenshot(title=name), folder / f"{name}.svg")


def save(svg: str, target: Path) -> None:
    drawn = TEXTS.sub(cell_by_cell, FONT_FACES.sub("", svg).replace("Fira Code", FONT))
    target.write_text(drawn, encoding="utf-8")
    if program := shutil.which("rsvg-convert"):
        subprocess.run([program, "-o", target.with_suffix(".png"), target], check=True)
        target.unlink()


def cell_by_cell(text: re.Match[str]) -> str:
    """Return a text in the SVG with each character in its cell: rsvg-convert ignores the length of a text.

    Braille is drawn as dots, as terminals do; its letters in the font are wider than a cell.
    """
    attributes, x, y = text["attributes"], float(text["x"]), float(text["y"])
    parts = []
    for character in unescape(text["content"]):
        dots = ord(character) - BRAILLE
        if 0 <= dots < 256:
            for bit, (column, row) in enumerate(DOTS):
                if dots >> bit & 1:
                    left, top = x + 1.5 + 6.1 * column, y - 17.5 + 6.1 * row
                    parts.append(f'<rect {attributes} x="{left}" y="{top}" width="3.4" height="3.4"/>')
        elif not character.isspace():
            parts.append(f'<text {attributes} x="{x}" y="{y}">{escape(character)}</text>')
        x += CELL * cell_len(character)
    return "".join(parts)


async def take_demo(folder: Path, themes: Sequence[str], words: Sequence[str]) -> None:
    """Walk through the pages of the demo world, and take each in all sizes and ``themes``."""
    wanted = {page: names for page in PAGES if (names := names_of(page, themes, words))}
    if not wanted:
        return
    with EmulatorChild() as emulator, TemporaryDirectory() as folder_of_user, chdir(folder_of_user):
        app = BtTuiApp(replace(remote_of(emulator), name="demo"), demo=True)
        async with app.run_test(size=SIZES[-1]) as pilot:
            await until(pilot, lambda: sick(text_of(app)) == SICK_RUNS)
            for page, names in wanted.items():
                await pilot.resize_terminal(*SIZES[-1])
                for keys, word in PAGES[page]:
                    await pilot.press(*keys)
                    await until(pilot, lambda word=word: word in text_of(app))  # type: ignore[misc]
                if isinstance(app.screen, DeployScreen):
                    question = page.removeprefix("deploy-")
                    app.screen._feed.show(replace(app.screen._feed.form, selected_id=question))
                await until(pilot, lambda: not any(word in text_of(app) for word in UNREAD))
                await take_page(pilot, folder, names)
                await go_home(pilot)


async def go_home(pilot: Pilot[Any]) -> None:
    while (
        not isinstance(pilot.app.screen, HomeScreen)
        or pilot.app.screen.query_text
        or pilot.app.screen.marked_ids
    ):
        await pilot.press("y" if isinstance(pilot.app.screen, ConfirmScreen) else "escape")
        await settle(pilot)


async def take_welcome(folder: Path, themes: Sequence[str], words: Sequence[str]) -> None:
    """Take what is shown without a remote."""
    why = "no remote is configured: BASETEN_API_KEY is not set, ~/.trussrc not found"
    for page, keys in (("welcome", ()), ("welcome-key", ("G", "enter"))):
        if names := names_of(page, themes, words):
            app = BtTuiApp(None, why_no_remote=why)
            async with app.run_test(size=SIZES[0]) as pilot:
                await pilot.press(*keys)
                await take_page(pilot, folder, names)


async def take_many_nodes(folder: Path, themes: Sequence[str], words: Sequence[str]) -> None:
    """Take a run of 64 nodes, which the demo world has not."""
    for tab in JOB_TABS:
        if names := names_of(f"64-nodes-{tab}", themes, words):
            app = job_view(sick_run("straggler", nodes=64), tab=tab)
            async with app.run_test(size=SIZES[0]) as pilot:
                await take_page(pilot, folder, names)


def names_of(page: str, themes: Sequence[str], words: Sequence[str]) -> list[str]:
    names = [f"{page}--{width}x{height}--{theme}" for (width, height), theme in product(SIZES, themes)]
    return [name for name in names if all(word in name for word in words)]


async def main(folder: Path, words: Sequence[str]) -> None:
    for themes in COLORS:
        if themes == COLORS[-1]:
            os.environ["NO_COLOR"] = "1"
        await take_welcome(folder, themes, words)
        await take_demo(folder, themes, words)
        await take_many_nodes(folder, themes, words)


if __name__ == "__main__":
    pictures = Path(sys.argv[1]).resolve()
    pictures.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(pictures, sys.argv[2:]))
