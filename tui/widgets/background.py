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
    """Run ``work`` as long as the node exists; an error ends only the work. The group defaults to the name.

    This takes a function: a coroutine that is cancelled before its first turn would never be awaited.
    """
    return node.run_worker(
        work,
        name=name,
        description=name,  # else it is described by all the data that it is given
        group=group or name,
        exclusive=exclusive,
        exit_on_error=False,
    )
