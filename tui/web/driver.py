"""The dashboard's side of the pipes to ``bt-tui serve``: screen output and files for a page.

textual loads it in the page's process by the name in ``TEXTUAL_DRIVER``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal, TextIO

from textual import events, messages
from textual.app import App
from textual.drivers._byte_stream import ByteStream
from textual.drivers.web_driver import WebDriver
from textual.message import Message

from tui.system.keyboard import Keyboard
from tui.system.saved_files import safe_name


class WholeWrites:
    """A pipe writer that keeps each write from several threads whole.

    textual's screen and its input thread share the pipe. Data that exceeds the pipe's buffer takes
    several writes, and another thread's packet could be inserted between them: from then on the reader
    would misread lengths, and the page would freeze.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._turn = threading.Lock()

    def __call__(self, data: bytes) -> int:
        """Write all data, blocking as long as needed. Raises BrokenPipeError if the reader has gone."""
        rest = memoryview(data)
        with self._turn:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        return len(data)


class PageDriver(WebDriver):
    """textual's driver for pages, changed to end with the server and to offer files by path.

    textual-serve requests files in pieces through the pipes that carry the screen, and treats a piece that is
    four seconds late as the end of the file. The server runs on this machine, so it can read the file itself.
    """

    def __init__(self, app: App[Any], **options: Any) -> None:
        super().__init__(app, **options)
        self._whole = WholeWrites(self.fileno)
        self._write = self._write_while_read  # type: ignore[assignment]
        self._offered: dict[str, str | None] = {}
        """The app's name for each delivery, by its key."""

    def _write_while_read(self, data: bytes) -> int:
        try:
            return self._whole(data)
        except BrokenPipeError:  # the server was killed; run_input_thread notices too and exits
            return len(data)

    def run_input_thread(self) -> None:
        """Process the page's input; exit the app when its pipe is closed, as the page is gone."""
        keyboard, packets = Keyboard(debug=self._debug), ByteStream()
        try:
            for data in self._input_reader:
                for kind, payload in packets.feed(data) if data else ():
                    if kind == "D":
                        self._process(keyboard.feed(payload))
                    else:
                        self._on_meta(kind, payload)
                self._process(keyboard.tick())
        finally:
            self._input_reader.close()
            with suppress(RuntimeError):  # the app and its event loop have already ended
                self._app.post_message(messages.ExitApp())

    def _process(self, events: Iterable[Message]) -> None:
        for event in events:
            self.process_message(event)

    def deliver_binary(
        self,
        binary: BinaryIO | TextIO,
        *,
        delivery_key: str,
        save_path: Path,
        open_method: Literal["browser", "download"] = "download",
        encoding: str | None = None,
        mime_type: str | None = None,
        name: str | None = None,
    ) -> None:
        """Offer the file to the page through the server: ``SavedFiles`` delivers nothing else."""
        binary.close()
        self._offered[delivery_key] = name
        offer = {"key": delivery_key, "file": binary.name, "save_as": safe_name(save_path.name)}
        self.write_meta({"type": "file_offered", **offer})

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        if packet_type != "file_fetched":
            super().on_meta(packet_type, payload)
            return
        key = str(payload["key"])
        name = self._offered.pop(key)
        self._app.post_message(events.DeliveryComplete(key=key, path=None, name=name))
