"""What a guard remembers in a file, so that a restart repeats nothing and forgets nothing.

Guards of one user share the file: what one of them decides is written before it acts, while the others wait.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tui.settings.remembered import State, change_state, read_state

MAX_RUNS, MAX_UNSENT = 500, 200
"""Of more runs or undelivered alerts, the oldest are forgotten."""


class SeenFinding(State):
    """A finding that is present, with the number of complete looks in a row that had it."""

    kind: str = ""
    severity: str = "warning"
    text: str = ""
    node: str | None = None
    since_s: float | None = None
    looks: int = 0


class Stop(State):
    """A stop that was decided: ``planned`` for the next checkpoint, ``requested``, or ``done``.

    ``cause`` is a finding's key, ``budget`` or ``deadline``; ``stored`` are the checkpoints when it was
    planned.
    """

    state: str = "planned"
    cause: str = ""
    reason: str = ""
    loss: str = ""
    at_s: float = 0.0
    stored: list[str] = []


class Resume(State):
    """A resume that was decided: ``requested``, ``done`` (as ``job_id``), or ``given-up``."""

    state: str = "requested"
    at_s: float = 0.0
    job_id: str = ""


class RunMemory(State):
    """What is remembered of one run. Times are epoch seconds."""

    status: str = ""
    seen_s: float = 0.0
    """Time of the last complete look."""
    findings: dict[str, SeenFinding] = {}
    last_seen_s: dict[str, float] = {}
    """When each finding was last seen, so that one that wavers is reported once."""
    blind_since_s: float | None = None
    blind_reported: bool = False
    sighted_s: float = 0.0
    """When it was seen again after that was reported."""
    stop: Stop | None = None
    would_stop: str = ""
    """The cause that a dry run reported."""
    reported: list[str] = []
    """What else is reported only once."""
    resumes: int = 0
    """How many times the work of this run was resumed before, by guards."""
    resume: Resume | None = None
    typed_deadline: str = ""
    deadline_s: float = 0.0


class Unsent(State):
    """An alert that a destination has not got yet."""

    way: str = ""
    record: dict[str, Any] = {}


class GuardState(State):
    runs: dict[str, RunMemory] = {}
    """By server and job id: different emulators have jobs with the same id."""
    unsent: list[Unsent] = []


Answer = TypeVar("Answer")


class GuardMemory:
    """The state file. If it cannot be written, ``on_problem`` is called once, and the memory ends with us.

    Without a file it does, too.
    """

    def __init__(
        self, path: Path | None = None, on_problem: Callable[[str], object] = lambda _problem: None
    ) -> None:
        self._path = path
        self._on_problem = on_problem
        self._has_problem = False
        self.state = self._changed = GuardState() if path is None else read_state(path, GuardState)

    def change(self, change: Callable[[GuardState], tuple[GuardState, Answer]]) -> Answer:
        """Replace the state by what ``change`` makes of it, and return what else it returns.

        It may be called again, with what another process wrote meanwhile.
        """
        answers: list[Answer] = []

        def changed(in_file: GuardState) -> GuardState:
            # The file may have been deleted, or may not be readable any more.
            runs = self.state.runs | in_file.runs if not self._has_problem else self.state.runs
            state = in_file.model_copy(update={"runs": runs})
            changed_state, answer = change(state)
            answers.append(answer)
            self._changed = _bounded(changed_state)
            return self._changed

        try:
            if self._path is None:
                changed(self.state)
            else:
                change_state(self._path, GuardState, changed)
        except OSError as error:
            if not self._has_problem:
                self._has_problem = True
                self._on_problem(error.strerror or str(error))
            if not answers:
                changed(self.state)
        self.state = self._changed
        return answers[-1]


def _bounded(state: GuardState) -> GuardState:
    runs = sorted(state.runs.items(), key=lambda item: item[1].seen_s)[-MAX_RUNS:]
    return state.model_copy(update={"runs": dict(runs), "unsent": state.unsent[-MAX_UNSENT:]})
