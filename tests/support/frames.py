"""Draw a dashboard without a terminal when somebody looks at it, and not at each of its frames.

Nobody sees the frames of a headless app. Drawing them took a quarter of the dashboard tests' time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from textual._compositor import Compositor
from textual._context import visible_screen_stack
from textual.app import App
from textual.screen import Screen

_drawn = WeakKeyDictionary[Compositor, str]()
"""What each screen showed when it was looked at last, if it has not asked for a frame since."""
_refresh = Screen._compositor_refresh
_shutdown = App._shutdown


def picture_of(screen: Screen[Any]) -> str:
    """Return the text of a screen, and of what is seen behind it."""
    compositor = screen._compositor
    if compositor not in _drawn or _changes(screen):
        visible_screen_stack.set(screen.app._background_screens)
        strips = compositor.render_strips()
        _drawn[compositor] = "\n".join(strip.text.rstrip() for strip in strips)
    return _drawn[compositor]


def _changes(screen: Screen[Any]) -> bool:
    """True if the next turn of the screen's timer would ask for a frame."""
    return bool(
        screen._dirty_widgets
        or screen._repaint_required
        or screen._layout_required
        or screen._scroll_required
    )


@contextmanager
def drawn_on_demand() -> Iterator[None]:
    """Have headless apps draw no frames, except the last one: drawing it must not fail either."""

    def compositor_refresh(screen: Screen[Any]) -> None:
        app = screen.app
        if not app.is_headless or screen is not app.screen:
            _refresh(screen)
            return
        _drawn.pop(screen._compositor, None)
        screen._compositor._dirty_regions.clear()
        screen._dirty_widgets.clear()
        app._update_mouse_over(screen)

    async def shutdown(app: App[Any]) -> None:
        if app.is_headless and app._exception is None and app.screen_stack and app.screen.size:
            picture_of(app.screen)
        await _shutdown(app)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Screen, "_compositor_refresh", compositor_refresh)
        patch.setattr(App, "_shutdown", shutdown)
        yield
