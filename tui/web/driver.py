"""The dashboard's side of the pipes to ``bt-tui serve``: screen output and files for a page.

Textual loads it in the page's process by the name in ``TEXTUAL_DRIVER``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal, TextIO

from textual import messages
from textual.app import App
from textual.drivers._byte_stream import ByteStream
from textual.drivers.web_driver import WebDriver
from textual.message import Message

from tui.system.keyboard import Keyboard
from tui.system.saved_files import safe_name


class PageDriver(WebDriver):
    """Textual's driver for web pages; the app also exits with the server, and offers files by their paths.

    textual-serve requests files in pieces through the pipes that carry the screen, and treats a piece that is
    four seconds late as the end of the file. The server runs on this machine, so it can read the file itself.
    """

    def __init__(self, app: App[Any], **options: Any) -> None:
        super().__init__(app, **options)
        self._write = self._write_or_ignore_closed_pipe  # type: ignore[assignment]

    def _write_or_ignore_closed_pipe(self, data: bytes) -> None:
        with suppress(BrokenPipeError):  # the server was killed: run_input_thread exits the app
            os.write(self.fileno, data)

    def run_input_thread(self) -> None:
        """Process the page's input; exit the app when the pipe is closed, because the page is closed."""
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
        """Offer a file for download by the page; the server sends the file, so it must have a path."""
        binary.close()
        offer = {"key": delivery_key, "file": binary.name, "save_as": safe_name(save_path.name)}
        self.write_meta({"type": "file_offered", **offer})
