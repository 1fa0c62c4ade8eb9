"""Checks for the kind of a screen, without importing screens that have not been opened yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from textual.screen import Screen

from tui.actions import Scope

if TYPE_CHECKING:
    from tui.screens.job.screen import JobScreen


def shows(screen: Screen[Any] | None, scope: Scope) -> bool:
    """Return True if the screen owns the actions of that scope."""
    return scope in getattr(screen, "SCOPES", ())


def is_job_screen(screen: Screen[Any] | None) -> TypeGuard[JobScreen]:
    """Return True if the screen is a job screen."""
    return shows(screen, Scope.JOB)
