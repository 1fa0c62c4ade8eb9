"""What is imported once Home is on the terminal, while nobody waits: the other screens and their feeds."""

from __future__ import annotations

from importlib import import_module

LATER = (
    "tui.feeds.run",
    "tui.screens.job.screen",
    "tui.feeds.checkpoint_files",
    "tui.screens.files.screen",
    "tui.feeds.comparison",
    "tui.screens.compare.screen",
    "tui.feeds.capacity",
    "tui.screens.capacity.screen",
    "tui.feeds.cache",
    "tui.screens.cache.screen",
    "tui.feeds.downloads",
    "tui.screens.downloads.screen",
    "tui.feeds.deployment",
    "tui.screens.deploy.screen",
    "tui.feeds.submission",
    "tui.screens.submit.screen",
)
"""What people open first comes first."""

LATER_S = 0.5
"""From the first screen on; by then Home's own requests are under way."""


def load_the_rest() -> None:
    """Import them; in a thread, so that a key is answered meanwhile."""
    for name in LATER:
        import_module(name)
