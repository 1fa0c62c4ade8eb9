"""The preview pane of the files screen: key facts of a file, then its text, highlighted."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from rich.style import Style
from textual.app import ComposeResult
from textual.containers import Vertical

from api_client.checkpoints import SafetensorsHeader, TrainerState
from api_client.models import CheckpointFile
from tui.analysis.checkpoints.facts import epoch_s
from tui.feeds.files import FilePreview
from tui.screens.base import key_for_widget
from tui.screens.highlighting import text_lines
from tui.tables.column import Span
from tui.text.sanitize import cell_width, clip, sanitize
from tui.text.units import UNKNOWN, age, bytes_iec, count, counted, number
from tui.widgets.background import run_in_background
from tui.widgets.status_line import StatusLine
from tui.widgets.text_panel import Line, TextPanel
from tui.widgets.tones import Recolored, tone_styles

MAX_VALUE_CELLS = 300
ADAPTER_FACTS = (
    ("r", "rank r"),
    ("lora_alpha", "alpha"),
    ("lora_dropout", "dropout"),
    ("target_modules", "target modules"),
    ("base_model_name_or_path", "base model"),
    ("peft_type", "kind"),
    ("task_type", "task"),
    ("modules_to_save", "fully trained"),
)
_LABEL_CELLS = 15


def preview_lines(
    preview: FilePreview, tones: Mapping[str, Style], *, retry_key: str, download_key: str
) -> list[Line]:
    """Return the lines of a preview.

    Highlighting a long text is slow, so call this outside of the event loop. ``retry_key`` and
    ``download_key`` are named in hints.
    """
    if preview.error:
        return [
            [("✗ Can't read the file.", "bad")],
            "",
            sanitize(preview.error),
            "",
            [(f"Press {retry_key} to retry.", "muted")],
        ]
    if preview.header is not None:
        return weights_lines(preview.header)
    lines: list[Line] = []
    if preview.problem:
        lines += [[(f"✗ Unexpected content: {sanitize(preview.problem)}", "warn")], ""]
    if preview.state is not None:
        lines += [*state_lines(preview.state), ""]
    if preview.text is not None:
        if PurePosixPath(preview.file.relative_file_name).name == "adapter_config.json":
            lines += adapter_lines(preview.text)
        lines += text_lines(preview.text, preview.file.relative_file_name, tones)
        if preview.is_cut:
            unread_bytes = (preview.file.size_bytes or 0) - preview.read_bytes
            lines.append(
                [(f"… {bytes_iec(unread_bytes)} more; {download_key} downloads the whole file", "muted")]
            )
        return lines
    if preview.read_bytes:
        return [*lines, [(f"Binary file; {download_key} downloads it", "muted")]]
    return [*lines, [("The file is empty.", "muted")]]


def _fact_line(label: str, value: str) -> Line:
    return [(f"{label:<{_LABEL_CELLS}}", "muted"), (clip(sanitize(value), MAX_VALUE_CELLS), "plain")]


def weights_lines(header: SafetensorsHeader) -> list[Line]:
    dtypes_text = ", ".join(
        f"{sanitize(dtype)} {count(parameters)}" for dtype, parameters in header.parameters_by_dtype.items()
    )
    parameters, tensors = counted(header.parameter_count, "parameter"), counted(len(header.tensors), "tensor")
    lines: list[Line] = [
        [(parameters, "strong"), (f" in {tensors}", "plain")],
        _fact_line("by type", dtypes_text or UNKNOWN),
        _fact_line("weights", bytes_iec(header.data_bytes)),
        _fact_line("read", f"{bytes_iec(header.header_bytes)} (header only)"),
    ]
    lines += [
        _fact_line(clip(sanitize(name), _LABEL_CELLS - 1), value) for name, value in header.metadata.items()
    ]
    names = [clip(sanitize(tensor.name), MAX_VALUE_CELLS) for tensor in header.tensors]
    name_cells = max(map(cell_width, ["tensor", *names]))
    lines += ["", [(f"{'tensor':<{name_cells}} {'type':<6} {'size':>9}  shape", "muted")]]
    lines += [
        [
            (name + " " * (name_cells - cell_width(name) + 1), "plain"),
            (f"{clip(sanitize(tensor.dtype), 6):<6} ", "accent"),
            (f"{bytes_iec(tensor.size_bytes):>9}  ", "plain"),
            (" × ".join(f"{size:,}" for size in tensor.shape) or "scalar", "muted"),
        ]
        for name, tensor in zip(names, header.tensors, strict=True)
    ]
    return lines


def adapter_lines(text: str) -> list[Line]:
    """Return the common settings of a LoRA adapter; empty if `text` is not a JSON object."""
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        return []
    if not isinstance(config, Mapping):
        return []
    facts = [(label, config[name]) for name, label in ADAPTER_FACTS if config.get(name) is not None]
    return [*(_fact_line(label, _value_text(value)) for label, value in facts), ""] if facts else []


def _value_text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(item) for item in value[:100])
    return str(value)


def state_lines(state: TrainerState) -> list[Line]:
    total_text = f" of {count(state.max_steps)}" if state.max_steps else ""
    numbers = {
        "epoch": state.epoch,
        "loss": state.last("loss"),
        "eval loss": state.last("eval_loss"),
        "learning rate": state.last("learning_rate"),
        "best metric": state.best_metric,
    }
    return [
        _fact_line("step", f"{count(state.global_step)}{total_text}"),
        *(_fact_line(label, number(value)) for label, value in numbers.items() if value is not None),
        *([_fact_line("best model", state.best_model_checkpoint)] if state.best_model_checkpoint else []),
    ]


class PreviewPane(Recolored, Vertical):
    """Shows a directory's totals or a file's preview."""

    def __init__(
        self,
        read_preview: Callable[[CheckpointFile], Awaitable[FilePreview]],
        *,
        now_s: Callable[[], float] = time.time,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self._read_preview = read_preview
        self._now_s = now_s
        self._previews: dict[tuple[int, str], tuple[FilePreview, list[Line]]] = {}
        self._shown_file: CheckpointFile | None = None

    def compose(self) -> ComposeResult:
        yield StatusLine(id="preview-head")
        yield TextPanel(id="preview-lines")

    def clear_cache(self) -> None:
        self._previews.clear()
        self._shown_file = None

    def show_nothing(self) -> None:
        self._cancel_reading()
        self._show([], [])

    def show_directory(self, name: str, file_count: int, size_bytes: int, newest_s: float | None) -> None:
        """Show a directory's totals."""
        self._cancel_reading()
        lines: list[Line] = [[(f"{counted(file_count, 'file')}, {bytes_iec(size_bytes)}", "plain")]]
        if newest_s is not None:
            lines.append([(f"newest {age(self._now_s() - newest_s)} ago", "muted")])
        open_key, download_key, expand_key = (
            key_for_widget(self, f"files.{name}") for name in ("open_node", "download", "open_below")
        )
        hint: Line = [(f"{open_key} opens, {download_key} downloads, {expand_key} expands all", "muted")]
        self._show([[(name + "/", "strong")]], [*lines, "", hint])

    def recolor(self) -> None:
        """Highlight the file again with the colors of the new theme."""
        file = self._shown_file
        self._previews.clear()
        self._cancel_reading()
        if file is not None:
            self.show_file(file)

    def show_file(self, file: CheckpointFile) -> None:
        if file == self._shown_file:
            return
        self._cancel_reading()
        self._shown_file = file
        if _file_id(file) in self._previews:
            preview, lines = self._previews[_file_id(file)]
            self._show(self._header_facts(file, preview), lines)
        else:
            self._show(self._header_facts(file, None), [[("reading…", "muted")]])
            run_in_background(self, partial(self._read, file), "preview", exclusive=True)

    def _cancel_reading(self) -> None:
        self._shown_file = None
        self.workers.cancel_group(self, "preview")

    async def _read(self, file: CheckpointFile) -> None:
        await asyncio.sleep(0.15)  # so that files that the cursor only passes are not read
        retry_key, download_key = (
            key_for_widget(self, "screen.refresh"),
            key_for_widget(self, "files.download"),
        )
        preview = await self._read_preview(file)
        lines = await asyncio.to_thread(
            preview_lines, preview, tone_styles(self.app), retry_key=retry_key, download_key=download_key
        )
        self._show(self._header_facts(file, preview), lines)
        if not preview.error:
            while len(self._previews) >= 64:
                del self._previews[next(iter(self._previews))]
            self._previews[_file_id(file)] = (preview, lines)

    def _header_facts(self, file: CheckpointFile, preview: FilePreview | None) -> list[list[Span]]:
        name = sanitize(file.relative_file_name.rpartition("/")[2] or file.relative_file_name)
        facts: list[list[Span]] = [[(name, "strong")], [(bytes_iec(file.size_bytes), "plain")]]
        if preview is not None and 0 < preview.read_bytes < (file.size_bytes or 0):
            facts.append([(f"{bytes_iec(preview.read_bytes)} read", "muted")])
        written_s = epoch_s(file.last_modified)
        if written_s is not None:
            facts.append([(f"{age(self._now_s() - written_s)} ago", "muted")])
        return facts

    def _show(self, facts: list[list[Span]], lines: list[Line]) -> None:
        self.query_one(StatusLine).set_facts(facts)
        self.query_one(TextPanel).set_lines(lines)


def _file_id(file: CheckpointFile) -> tuple[int, str]:
    return file.node_rank, file.relative_file_name
