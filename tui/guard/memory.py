"""The state that guards save in a file, so that a restart neither repeats nor forgets anything.

All guards of a user share the file. A guard locks it, writes a decision to it, and only then acts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from api_client.files import locked_folder, make_private_folder
from tui.alerts.delivery import MAX_WAITING_ALERTS
from tui.settings.remembered import State, change_state, read_state


@dataclass(frozen=True)
class SeenFinding(State):
    """A finding that is present in a run; ``looks`` is the number of consecutive complete polls with it."""

    text: str = ""
    since_s: float | None = None
    looks: int = 0


@dataclass(frozen=True)
class Stop(State):
    """A decision to stop a run; ``state``: ``planned`` (for the next checkpoint), ``requested`` or ``done``.

    ``cause`` is a finding's key, ``budget`` or ``deadline``; ``loss`` says which work is lost. ``stored_s``
    is the time of the newest checkpoint that was stored when the stop was planned.
    """

    state: str = "planned"
    cause: str = ""
    reason: str = ""
    loss: str = ""
    at_s: float = 0.0
    stored_s: float = 0.0


@dataclass(frozen=True)
class Resume(State):
    """A decision to resume a run. ``state`` is ``requested``, ``done`` or ``given-up``.

    ``job_id`` is the job that resumes the run; empty until the state is ``done``.
    """

    state: str = "requested"
    at_s: float = 0.0
    job_id: str = ""


@dataclass(frozen=True)
class RunMemory(State):
    """The saved state of one run. Times are epoch seconds."""

    status: str = ""
    seen_s: float = 0.0
    """Time of the last complete poll of the run."""
    findings: dict[str, SeenFinding] = field(default_factory=dict)
    last_seen_s: dict[str, float] = field(default_factory=dict)
    """When each finding was last present, so that a finding that comes and goes is reported once."""
    blind_since_s: float | None = None
    """When the run became unreadable; None while it can be read."""
    blind_reported: bool = False
    sighted_s: float = 0.0
    """When the run could be read again after a reported outage."""
    stop: Stop | None = None
    reported: list[str] = field(default_factory=list)
    """Keys of other events that were reported and are not reported again."""
    resumes: int = 0
    """Number of times that guards have resumed this work, counted from its first job."""
    resume: Resume | None = None
    typed_deadline: str = ""
    """The deadline as the user typed it, so that a restarted guard recognizes it."""
    deadline_s: float = 0.0


@dataclass(frozen=True)
class UnsentAlert(State):
    """An undelivered alert. ``way`` is its destination; ``guard`` is the ID of the guard that last tried."""

    way: str = ""
    record: dict[str, Any] = field(default_factory=dict)
    guard: str = ""
    tried_s: float = 0.0


@dataclass(frozen=True)
class GuardState(State):
    runs: dict[str, RunMemory] = field(default_factory=dict)
    """State of runs by ``SERVER/JOB_ID``, since different emulators have jobs with the same ID."""
    unsent: list[UnsentAlert] = field(default_factory=list)


Result = TypeVar("Result")


class GuardMemory:
    """The state file. If it cannot be read or written, ``on_problem`` is called once, with a message.

    Changes that could not be saved are written with a later change. Without a ``path``, the state is only in
    memory.
    """

    def __init__(
        self, path: Path | None = None, on_problem: Callable[[str], object] = lambda _problem: None
    ) -> None:
        self._path = path
        self._on_problem = on_problem
        self._has_problem = False
        self.state = self._saved_state = GuardState() if path is None else read_state(path, GuardState)
        if path is not None and not self.state.runs and path.is_file() and path.stat().st_size:
            on_problem(f"{path} is damaged; earlier reports are forgotten")

    def change(self, change: Callable[[GuardState], tuple[GuardState, Result]]) -> Result:
        """Replace the state by the first result of ``change``, and return the second.

        ``change`` may be called again, with a state that another process wrote in the meantime.
        """
        results: list[tuple[GuardState, Result]] = []

        def changed(state: GuardState) -> GuardState:
            after, result = change(state)
            results.append((_limited_state(after), result))
            return results[-1][0]

        is_saved = self._path is not None
        try:
            if self._path is None:
                changed(self.state)
            else:
                change_state(self._path, GuardState, lambda file_state: changed(self._merged(file_state)))
        except OSError as error:
            is_saved = False
            if not self._has_problem:
                self._has_problem = True
                reason = error.strerror or str(error)
                self._on_problem(f"can't save what was reported ({reason}); a restart would repeat it")
            if not results:
                changed(self.state)
        self.state, result = results[-1]
        if is_saved:
            self._saved_state = self.state
        return result

    @contextmanager
    def resume_lock(self) -> Iterator[None]:
        """Keep other guards from resuming runs in the block. Raises TimeoutError if one is doing so."""
        if self._path is None or self._has_problem:
            yield
            return
        folder = self._path.with_name("guard-resumes")
        make_private_folder(folder)
        with locked_folder(folder, wait_s=0.0):
            yield

    def _merged(self, file_state: GuardState) -> GuardState:
        """Return the state in the file with the changes that this guard could not save."""
        state, saved_state = self.state, self._saved_state
        if not file_state.runs:
            return state  # the file is new, was deleted, or cannot be read
        if state is saved_state:
            return file_state
        runs = {key: run for key, run in state.runs.items() if saved_state.runs.get(key) != run}
        remaining_entries = [
            entry for entry in file_state.unsent if entry in state.unsent or entry not in saved_state.unsent
        ]
        new_entries = [
            entry
            for entry in state.unsent
            if entry not in file_state.unsent and entry not in saved_state.unsent
        ]
        return GuardState(runs=file_state.runs | runs, unsent=[*remaining_entries, *new_entries])


def _limited_state(state: GuardState) -> GuardState:
    """Limit the state to the 500 runs that were seen last, and to the newest alerts."""
    runs = sorted(state.runs.items(), key=lambda item: item[1].seen_s)[-500:]
    return replace(state, runs=dict(runs), unsent=state.unsent[-MAX_WAITING_ALERTS:])
