"""The dashboard's end of the pipes to ``bt-tui serve``: what textual draws for a page, and files for it.

Loaded by textual in the process of a page, by the name in ``TEXTUAL_DRIVER``.
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

from api_client.files import write_private
from tui.system.keyboard import Keyboard
from tui.system.saved_files import Outbox, safe_name


class WholeWrites:
    """Writes to a pipe from several threads, each of them whole.

    textual's screen and its input thread share the pipe. More than the pipe has room for is written in
    several goes, between which the other thread's packet would slip in: from there on the reader takes
    lengths out of the midst of a text, and the page stands still for ever.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._turn = threading.Lock()

    def __call__(self, data: bytes) -> int:
        """Write all of it, however long the reader takes. Raises BrokenPipeError when nobody reads."""
        rest = memoryview(data)
        with self._turn:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        return len(data)


class PageDriver(WebDriver):
    """textual's driver for pages, which ends with the server, and names files instead of reading them out.

    textual-serve asks for a file in pieces through the pipes that carry the screen, and takes a piece that is
    four seconds late for the end of the file. The server is on this machine: it can read the file itself.
    """

    def __init__(
        self,
        app: App[Any],
        *,
        debug: bool = False,
        mouse: bool = True,
        size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._whole = WholeWrites(self.fileno)
        self._write = self._write_while_read  # type: ignore[assignment]
        self._outbox = Outbox()
        self._offered: dict[str, tuple[Path, str | None]] = {}
        """By key: the file, and what the app calls the delivery."""

    def _write_while_read(self, data: bytes) -> int:
        try:
            return self._whole(data)
        except BrokenPipeError:  # the server was killed; run_input_thread sees that too, and leaves
            return len(data)

    def run_input_thread(self) -> None:
        """Pass on what the page sends; when its pipe is closed, nobody is left to draw for."""
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
            with suppress(RuntimeError):  # the app has ended already, and its loop with it
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
        """Tell the server which file the page may fetch; what is no file yet becomes one."""
        known = getattr(binary, "name", None)
        try:
            with binary:
                path = Path(known) if isinstance(known, str) else self._written(binary, save_path.name)
        except OSError as error:
            self._app.post_message(events.DeliveryFailed(delivery_key, error, name))
            return
        self._offered[delivery_key] = path, name
        offer = {"key": delivery_key, "file": str(path), "save_as": safe_name(save_path.name)}
        self.write_meta({"type": "file_offered", **offer})

    def _written(self, content: BinaryIO | TextIO, name: str) -> Path:
        path = self._outbox.place(name)
        whole = content.read()
        write_private(path, whole.encode() if isinstance(whole, str) else whole)
        return path

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        """What the server tells beside the keys that were pressed."""
        if packet_type != "file_fetched":
            super().on_meta(packet_type, payload)
            return
        key = str(payload["key"])
        path, name = self._offered.pop(key)
        self._outbox.forget(path)
        self._app.post_message(events.DeliveryComplete(key=key, path=None, name=name))

    def stop_application_mode(self) -> None:
        """The end: nothing that was offered stays."""
        super().stop_application_mode()
        self._outbox.close()
