"""Files that the app saves: exports and screenshots. In a browser session they become downloads."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import platformdirs
from textual.app import App

from api_client.files import why_not_written, write_private
from tui.screens.dialogs import ExportScreen
from tui.screens.messages import ExportRequested, FilesSaved, Handlers
from tui.system.saved_files import Outbox, delivered_as, landing, packed, proposed_path, safe_name
from tui.widgets.background import run_in_background


class SavedFiles:
    """Saves tables and screenshots; in a browser session, sends saved files to the browser."""

    def __init__(self, app: App[Any], outbox: Outbox) -> None:
        self._app = app
        self._outbox = outbox

    @property
    def handlers(self) -> Handlers:
        return {ExportRequested: self.export, FilesSaved: self.deliver}

    def export(self, message: ExportRequested) -> None:
        if not any(table.rows for table in message.tables):
            self._app.notify("Nothing to export yet.")
            return

        def saved(files: tuple[Path, ...] | None) -> None:
            if files:
                paths = ", ".join(str(path.absolute()) for path in files)
                where = f"as {delivered_as(files)}" if self._app.is_web else f"to {paths}"
                self._app.notify(f"Saved {message.what} {where}.")
                self.deliver(FilesSaved(files))

        screen = ExportScreen(message.what, message.tables, proposed_path(*message.names))
        self._app.push_screen(screen, saved)

    async def save_screenshot(self) -> None:
        """Save the screen as SVG in the user's downloads folder, else in the working directory."""
        # Servers often have no downloads folder.
        downloads = platformdirs.user_downloads_path()
        name = f"{self._app.title} {datetime.now(UTC).astimezone():%Y-%m-%d %H.%M.%S}.svg"
        path = landing(self._app, (downloads if downloads.is_dir() else Path.cwd()) / name)
        try:
            await asyncio.to_thread(write_private, path, self._app.export_screenshot().encode())
        except OSError as error:
            self._app.notify(f"Can't write {path}: {why_not_written(error)}", severity="error")
            return
        where = f"as {path.name}" if self._app.is_web else f"to {path}"
        self._app.notify(f"Screenshot saved {where}.")
        self.deliver(FilesSaved((path,)))

    def deliver(self, message: FilesSaved) -> None:
        if not self._app.is_web:
            return
        if len(message.paths) == 1:
            self._deliver(message.paths[0])
        else:
            folder, title = message.paths[0].parent, Path(delivered_as(message.paths)).stem
            self.deliver_all(message.paths, folder, title)

    def deliver_all(self, files: Sequence[Path], folder: Path, title: str) -> None:
        """Send files from ``folder`` to the browser; several files are packed into one archive."""
        run_in_background(
            self._app, partial(self._pack_and_deliver, files, folder, title), "archive", group="pack"
        )

    async def _pack_and_deliver(self, files: Sequence[Path], folder: Path, title: str) -> None:
        archive = self._outbox.place(f"{title}.zip")
        try:
            path = await asyncio.to_thread(packed, files, folder, archive)
        except OSError as error:
            self._app.notify(f"Can't pack {title}: {why_not_written(error)}", severity="error")
            return
        if path is archive:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        self._deliver(path)

    def _deliver(self, path: Path) -> None:
        self._app.deliver_binary(path, save_filename=safe_name(path.name))
