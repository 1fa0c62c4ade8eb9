"""Files of checkpoints in which every name and every text means harm, through the commands and the screen."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile_answers import HARM, hidden_in
from textual.pilot import Pilot

from support.dashboard import READ_ONLY, text_of
from support.fake_object_store import JOB, FakeObjectStore, Stored
from support.remotes import remote_of
from support.waiting import until, until_quiet
from tui.app import BtTuiApp
from tui.cli import main
from tui.screens.files.screen import FilesScreen
from tui.widgets.file_tree import FileTreeView

AS_STORED = HARM.replace("\ud800", "\ufeff\U000e0041\u2028\x85\x0b\x0c")
"""Files are UTF-8: other hidden letters in place of half a one."""

IN_TEXT = AS_STORED.replace("\x00", "")
CHECKPOINT = AS_STORED.replace("/", "_")
DEEP = {AS_STORED: [AS_STORED, {AS_STORED: AS_STORED}]}
TRAINER_STATE = {
    "global_step": 3,
    "max_steps": 9,
    "best_metric": 0.5,
    "best_model_checkpoint": AS_STORED,
    "log_history": [
        {"step": step, "loss": 1 / step, f"eval_{AS_STORED}": 0.5, AS_STORED: 0.25, "x": AS_STORED}
        for step in (1, 2)
    ],
    AS_STORED: AS_STORED,
}
ADAPTER = {
    **dict.fromkeys(("r", "lora_alpha", "lora_dropout", "base_model_name_or_path", "peft_type"), AS_STORED),
    **{
        "target_modules": [AS_STORED, AS_STORED],
        "task_type": DEEP,
        AS_STORED: AS_STORED,
        "z" + AS_STORED: DEEP,
    },
}
CONFIG = dict.fromkeys(("architectures", "model_type", "hidden_size", "torch_dtype", AS_STORED), AS_STORED)
TEXTS = {
    **{"a.txt": "", "b.md": "# ", "c.py": "x = '", "d.yaml": "a: ", "g.html": "<b>", "k.json": "{"},
    f"m{IN_TEXT}": "",
}


def safetensors(tensors: dict[str, str], metadata: dict[str, str]) -> bytes:
    """Of tensors by name and type, each of four bytes."""
    places = {
        name: {"dtype": kind, "shape": [2], "data_offsets": [4 * place, 4 * place + 4]}
        for place, (name, kind) in enumerate(tensors.items())
    }
    head = json.dumps({"__metadata__": metadata, **places}).encode()
    return struct.pack("<Q", len(head)) + head + bytes(4 * len(tensors))


def stored() -> list[Stored]:
    index = {"metadata": DEEP, "weight_map": {AS_STORED: f"gone{AS_STORED}.safetensors"}}
    weights = {AS_STORED: "BF16", f"second{AS_STORED}": AS_STORED, "x" * 5000: "F32"}
    files: dict[str, bytes] = {
        "adapter_config.json": json.dumps(ADAPTER).encode(),
        "config.json": json.dumps(CONFIG, ensure_ascii=False).encode(),
        "trainer_state.json": json.dumps(TRAINER_STATE).encode(),
        "tokenizer_config.json": json.dumps(DEEP, ensure_ascii=False).encode(),
        "model.safetensors": safetensors(weights, {AS_STORED: AS_STORED, "format": AS_STORED}),
        "cut.safetensors": safetensors(weights, {})[:-2],
        "no.safetensors": struct.pack("<Q", 40) + json.dumps({AS_STORED: 1}).encode()[:40],
        "model.safetensors.index.json": json.dumps(index).encode(),
        "bytes.bin": bytes(range(256)),
        "latin-1": b"caf\xe9 \x9b31m",
        **{name: f"{begin}{IN_TEXT * 3}\n{IN_TEXT}".encode() for name, begin in TEXTS.items()},
    }
    return [Stored(f"{CHECKPOINT}/{name}", content) for name, content in files.items()]


@pytest.fixture(scope="module")
def store() -> Iterator[FakeObjectStore]:
    with FakeObjectStore(*stored()) as running:
        running.no_checkpoints = {"."}
        yield running


COMMANDS = (
    *[(command, kind) for command in ("files", "list") for kind in ("table", "json", "csv")],
    *[(command, kind) for command in ("show", "download") for kind in ("table", "json")],
)


@pytest.mark.parametrize(("command", "output_format"), COMMANDS)
def test_no_command_lets_any_of_it_out(
    command: str,
    output_format: str,
    store: FakeObjectStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in store.environ().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    named = (CHECKPOINT,) if command in ("show", "files") else ()
    code = main(("checkpoints", command, "--job-id", JOB, "-o", output_format, "--", *named))
    said = capsys.readouterr()
    assert code == (1 if command == "download" else 0)  # one name would lead out of the folder
    assert len(said.out) > 100
    assert hidden_in(said.out + said.err) == []


async def seen_to(pilot: Pilot[Any], holds: Callable[[], bool]) -> None:
    """Wait for that; nothing hidden is on the screen then."""
    await until(pilot, holds)
    assert hidden_in(text_of(pilot.app)) == []  # type: ignore[arg-type]


async def test_no_sight_of_a_file_lets_any_of_it_out(store: FakeObjectStore) -> None:
    app = BtTuiApp(remote_of(store.api), settings=READ_ONLY, job_id=JOB, tab="checkpoints")
    async with app.run_test(size=(120, 40)) as pilot:
        await seen_to(pilot, lambda: "[blink]FORN" in text_of(app))
        await pilot.press("down", "enter")
        await seen_to(pilot, lambda: isinstance(app.screen, FilesScreen) and "adapter_config" in text_of(app))
        tree = app.screen.query_one(FileTreeView)
        await until_quiet(pilot, tree)
        await pilot.press("g")
        passed: list[str | None] = []
        while tree.cursor_path not in passed:
            passed.append(tree.cursor_path)
            await seen_to(pilot, lambda: "reading…" not in text_of(app))
            await pilot.press("tab", "G")
            await seen_to(pilot, lambda: True)
            await pilot.press("shift+tab", "j")
        assert len(passed) >= len(store.files)
        await pilot.press("y")
        await until(pilot, lambda: bool(app.clipboard))
    assert hidden_in(app.clipboard) == []
