"""Run work in the background of a screen, a widget or the app."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from textual.dom import DOMNode
from textual.worker import Worker, active_worker


def run_in_background(
    node: DOMNode,
    work: Callable[[], Coroutine[Any, Any, None]],
    name: str,
    *,
    group: str = "",
    exclusive: bool = False,
) -> Worker[None]:
    """Run ``work`` in a worker that is cancelled when the node is removed; an error ends only the worker.

    ``group`` defaults to ``name``. ``work`` is a function, not a coroutine: if the worker is cancelled before
    it starts, Python would warn that the coroutine was never awaited.
    """

    async def run() -> None:
        # asyncio retains a cancelled timer, such as that of a request's timeout, and its context for minutes.
        # If the context had the worker, it would keep the node in memory, such as a closed screen.
        active_worker.set(None)  # type: ignore[arg-type]
        await work()

    return node.run_worker(
        run,
        name=name,
        description=name,  # by default, Textual would use repr(work), which may be huge
        group=group or name,
        exclusive=exclusive,
        exit_on_error=False,
    )
