"""What the app does about files where it is a page of a browser."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

from textual import events, on, work
from textual.app import App

from api_client.files import why_not_written
from tui.messages import FilesSaved
from tui.outbox import Outbox, delivered_as, packed, safe_name
from tui.screens.welcome.screen import WelcomeChoice


class OutboxKeeper(App[WelcomeChoice]):
    """The part of the app that hands saved files to the browser; in a terminal it has nothing to do."""

    outbox: Outbox
    _leaving: dict[str, Path]

    @on(FilesSaved)
    def _hand_over_saved(self, message: FilesSaved) -> None:
        if not self.is_web:
            return
        if len(message.paths) == 1:
            self._deliver(message.paths[0])
        else:
            self.deliver_all(message.paths, message.paths[0].parent, Path(delivered_as(message.paths)).stem)

    def _deliver(self, path: Path) -> None:
        """Give one file of the outbox to the browser."""
        key = self.deliver_binary(path, save_filename=safe_name(path.name))
        if key is not None:
            self._leaving[key] = path

    @work(group="pack", exit_on_error=False)
    async def deliver_all(self, files: Sequence[Path], folder: Path, title: str) -> None:
        """Give files that lie in ``folder`` to the browser, several as one archive."""
        archive = self.outbox.place(f"{title}.zip")
        try:
            path = await asyncio.to_thread(packed, files, folder, archive)
        except OSError as error:
            self.notify(f"{title}: not packed: {why_not_written(error)}", severity="error")
            return
        if path is archive:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        self._deliver(path)

    @on(events.DeliveryComplete)
    def _delivered(self, event: events.DeliveryComplete) -> None:
        path = self._leaving.pop(event.key, None)
        if path is not None:
            self.outbox.forget(path)

    @on(events.DeliveryFailed)
    def _not_delivered(self, event: events.DeliveryFailed) -> None:
        path = self._leaving.pop(event.key, None)
        if path is not None:
            self.notify(f"{path.name} did not reach the browser: {event.exception}", severity="error")
            self.outbox.forget(path)
