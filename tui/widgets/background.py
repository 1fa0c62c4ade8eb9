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
    """Run ``work`` in a worker that ends with the node; an error ends the worker, not the app.

    The group defaults to the name. ``work`` is a function, because a coroutine object that is cancelled
    before it starts would warn that it was never awaited.
    """

    async def run() -> None:
        # asyncio keeps a canceled timer, such as a request's, with its context for minutes.
        # With the worker in it, that would keep the node, such as a screen that was left.
        active_worker.set(None)  # type: ignore[arg-type]
        await work()

    return node.run_worker(
        run,
        name=name,
        description=name,  # Textual's default is repr(work), with all of its data
        group=group or name,
        exclusive=exclusive,
        exit_on_error=False,
    )
