"""What a screen is, asked without loading the screens that nobody has opened yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from textual.screen import Screen

from tui.actions import Scope

if TYPE_CHECKING:
    from tui.screens.job.screen import JobScreen


def shows(screen: Screen[Any] | None, scope: Scope) -> bool:
    """Whether actions of that scope are the screen's own."""
    return scope in getattr(screen, "SCOPES", ())


def is_job_screen(screen: Screen[Any] | None) -> TypeGuard[JobScreen]:
    """Whether it shows a job."""
    return shows(screen, Scope.JOB)
