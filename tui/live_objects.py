"""The command palette's live objects: projects, jobs and checkpoints by a few letters of their names.

They come from what the screens show already: nothing is asked of the server while somebody types.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from rich.text import Text
from textual.command import Hit, Hits, Provider
from textual.markup import escape
from textual.message import Message

from tui.insight.text import inert
from tui.insight.units import bytes_iec
from tui.messages import OpenCheckpointRequested, OpenJobRequested, OpenProjectRequested
from tui.screens.home.screen import HomeScreen
from tui.screens.kinds import is_job_screen

if TYPE_CHECKING:
    from tui.screens.job.screen import JobScreen


OBJECTS_AT_ONCE = 200
"""Names that are looked at before others get their turn: some milliseconds."""
SHORTEST_ID_PART = 3
"""Fewer characters are part of too many ids."""
BELOW_ACTIONS = 0.999
"""An action of the same likeness comes first."""


@dataclass(frozen=True, slots=True)
class _Object:
    kind: str
    name: str
    about: str
    wish: Message
    id: str = ""


class LiveObjects(Provider):
    """Finds what is on the server, as the dashboard knows it."""

    async def search(self, query: str) -> Hits:
        """Find the objects with the letters of ``query`` in their names, or all of it in their ids."""
        matcher = self.matcher(query)
        for number, found in enumerate(self._objects()):
            if number % OBJECTS_AT_ONCE == OBJECTS_AT_ONCE - 1:
                await asyncio.sleep(0)
            title = f"{found.kind} {found.name}"
            score, offsets = matcher.fuzzy_search.match(query, title)
            if len(query) >= SHORTEST_ID_PART and query.lower() in found.id.lower():
                score = max(score, matcher.fuzzy_search.match(query, found.id)[0])
            if not score:
                continue
            shown = Text(title)
            shown.stylize("dim", 0, len(found.kind))
            for offset in offsets:
                shown.stylize("underline", offset, offset + 1)
            wish = partial(self._send, found.wish)
            yield Hit(score * BELOW_ACTIONS, shown, wish, text=title, help=escape(found.about))

    def _send(self, wish: Message) -> None:
        self.app.post_message(wish)

    def _objects(self) -> Iterator[_Object]:
        for screen in reversed(self.app.screen_stack):
            if is_job_screen(screen) and screen.snapshot is not None:
                yield from _checkpoints(screen)
        for screen in self.app.screen_stack:
            if isinstance(screen, HomeScreen) and screen.snapshot is not None:
                for project in screen.snapshot.projects:
                    about = f"{project.jobs} jobs, {project.running} running"
                    if project.team:
                        about = f"{project.team} · {about}"
                    yield _Object(
                        "project", project.name, about, OpenProjectRequested(project.id), project.id
                    )
                for row in screen.snapshot.jobs:
                    about = f"{row.status.word} · {row.gpu} · {row.project} · {row.age} · {inert(row.id)}"
                    yield _Object("job", row.name, about, OpenJobRequested(row.job), row.id)


def _checkpoints(screen: JobScreen) -> Iterator[_Object]:
    run = screen.snapshot
    if run is None:
        return
    for checkpoint in run.checkpoints or ():
        size = bytes_iec(checkpoint.size_bytes) if checkpoint.size_bytes else ""
        of = f"of {inert(run.job.name or run.job.id)}"
        about = " · ".join(part for part in (of, inert(checkpoint.checkpoint_type or ""), size) if part)
        wish = OpenCheckpointRequested(run.job, checkpoint)
        yield _Object("checkpoint", inert(checkpoint.checkpoint_id), about, wish)
