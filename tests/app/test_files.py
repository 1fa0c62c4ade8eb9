"""The inside of a checkpoint: its sights, and what is told of weights that are never fetched."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from rich.text import Text
from textual.pilot import Pilot

from api_client.checkpoints import SafetensorsHeader, Tensor
from api_client.models import Checkpoint, CheckpointFile
from support.dashboard import (
    Dashboard,
    Heard,
    StubFeed,
    opened,
    pressed,
    resized,
    screen_view,
    settle,
    text_of,
)
from support.waiting import at_rest, sees
from support.worlds import JOBS, ONE_O_CLOCK
from tui.analysis.checkpoints.comparison import compare_checkpoints
from tui.analysis.checkpoints.facts import checkpoint_facts
from tui.feeds.files import FilePreview, FilesSnapshot
from tui.screens.differences import CompareCheckpointsScreen
from tui.screens.files.preview import weights_lines
from tui.screens.files.screen import FilesScreen
from tui.screens.messages import DownloadRequested
from tui.text.sanitize import cell_width
from tui.widgets.file_tree import FileTreeView
from tui.widgets.row_table import RowTable

NAME = "checkpoint-300"
WRITTEN = datetime(2026, 1, 5, 10, 0, tzinfo=UTC).isoformat()
CONFIG = '{\n  "r": 16,\n  "lora_alpha": 32,\n  "target_modules": ["q_proj"]\n}'


def file(name: str, size_bytes: int, rank: int = 0) -> CheckpointFile:
    return CheckpointFile(
        url="http://nowhere/",
        relative_file_name=name,
        node_rank=rank,
        size_bytes=size_bytes,
        last_modified=WRITTEN,
    )


FILES = (
    file(f"{NAME}/weights/model-1.safetensors", 3 * 2**30),
    file(f"{NAME}/weights/model-2.safetensors", 2**30),
    file(f"{NAME}/adapter_config.json", len(CONFIG)),
    file(f"{NAME}/empty", 0),
)
FULL = FilesSnapshot(False, FILES)


class StubFilesFeed(StubFeed):
    async def preview(self, file: CheckpointFile) -> FilePreview:
        if file.relative_file_name.endswith(".json"):
            return FilePreview(file, len(CONFIG), text=CONFIG)
        return FilePreview(file, error="HTTP 403: the link has \x1b[31mexpired")


def files_view(*said: FilesSnapshot) -> Dashboard:
    checkpoint = Checkpoint(checkpoint_id=NAME, checkpoint_type="lora", base_model="Qwen/Qwen3-8B")
    feed: Any = partial(StubFilesFeed, *said)
    return screen_view(lambda: FilesScreen(JOBS[0], checkpoint, feed, now_s=ONE_O_CLOCK.timestamp))


@pytest.mark.proves("README.md", "What is in this checkpoint?")
async def test_directory_shows_its_size_a_file_why_it_is_unreadable_and_marks_are_downloaded() -> None:
    app, heard = files_view(FULL), Heard(DownloadRequested)
    async with app.run_test(size=(100, 30), message_hook=heard) as pilot:
        await at_rest(pilot)
        await sees(pilot, "2 files, 4.00 GiB", after=("G",))
        assert "✓ 1 marked" in await pressed(pilot, "space", "D")
        await pilot.press("enter")
        await at_rest(pilot)
        await sees(pilot, "Can't read the file.", after=("j",))
        text = text_of(app)
        assert "the link has expired" in text and "Press r to retry" in text and "\x1b" not in text
    (message,) = heard.messages
    assert [one.relative_file_name.rpartition("/")[2] for one in message.request.files] == [
        "model-1.safetensors",
        "model-2.safetensors",
    ]
    assert message.request.size_bytes == 4 * 2**30


def test_names_of_tensors_are_whole_and_columns_aligned() -> None:
    names = ["w", "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight", "模型.权重"]
    tensors = tuple(Tensor(name, "BF16", (8, 16), 256) for name in names)
    lines = weights_lines(SafetensorsHeader(tensors, {}, 96, 768))
    text = "".join(text for line in lines for text, _ in line)  # type: ignore[misc]
    assert "384 parameters in 3 tensors" in text and "BF16 384" in text and "96 B (header only)" in text
    rows = ["".join(text for text, _ in line) for line in lines[-3:] if not isinstance(line, str | Text)]
    assert [row.split()[0] for row in rows] == names
    assert len({cell_width(row[: row.index(" BF16")]) for row in rows}) == 1


async def test_two_checkpoints_stand_side_by_side_a_property_a_line() -> None:
    long = {"base": "organisation-with-a-long-name/model-with-a-long-name-too-" * 3}
    left, right = checkpoint_facts(
        [
            Checkpoint(checkpoint_id=f"{name}-" * 20, checkpoint_type="lora", lora_adapter_config=long)
            for name in ("left", "right")
        ]
    )

    async def no_files(_checkpoint: str) -> list[CheckpointFile]:
        return []

    app = Dashboard(lambda: CompareCheckpointsScreen(left, right, no_files))
    async with opened(app, (60, 24)) as pilot:
        for width in (60, 80, 81, 120):
            await resized(pilot, width, 24)
            table: RowTable[Any] = app.screen.query_one(RowTable)
            rows = [table.render_line(y).text.rstrip() for y in range(table.size.height)]
            assert "left-" in rows[0] and "right-" in rows[0]
            compared = [row for row in rows[1:] if row]
            assert len(compared) == len(compare_checkpoints(left, right, left_files=[], right_files=[]))
            assert any(row.count("organisation") == 2 and row.endswith("…") for row in compared)


async def on_the_config(pilot: Pilot[Any]) -> None:
    await at_rest(pilot)
    tree = pilot.app.screen.query_one(FileTreeView)
    await pilot.press("g")
    while not (tree.cursor_path or "").endswith("adapter_config.json"):
        await sees(pilot, "rank r", after=("j",))
    await settle(pilot)


@pytest.mark.parametrize("size", [(80, 24), (60, 20)])
def test_the_looks_of_the_inside(snap_compare: Callable[..., bool], size: tuple[int, int]) -> None:
    assert snap_compare(files_view(FULL), terminal_size=size, run_before=on_the_config)
