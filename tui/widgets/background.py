"""Run work in the background of a screen, a widget or the app."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from textual.dom import DOMNode
from textual.worker import Worker


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
    return node.run_worker(
        work,
        name=name,
        description=name,  # Textual's default is repr(work), with all of its data
        group=group or name,
        exclusive=exclusive,
        exit_on_error=False,
    )
