"""Changes of several jobs, and the deletion of a project: the jobs concerned, question, and outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from api_client.words import listed
from tui.text.sanitize import sanitize
from tui.text.units import counted

if TYPE_CHECKING:
    from api_client.models import TrainingJob

NAMES_SHOWN = 6
FAILURES_SHOWN = 4


class Verb(StrEnum):
    STOP = "stop"
    RECREATE = "recreate"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class _Words:
    ask: str
    of_one: str
    of_several: str
    yes: str
    done: str
    not_done: str
    unfit: str
    no: str = "Cancel"


_WORDS: dict[Verb, _Words] = {
    Verb.STOP: _Words(
        "Stop {}?",
        "The job stops now. Logs and stored checkpoints are kept.",
        "They stop now. Logs and stored checkpoints are kept.",
        "Stop",
        "stopping",
        "Not stopped",
        "already ended",
        "Keep running",
    ),
    Verb.RECREATE: _Words(
        "Run {} again?",
        "Starts a new job with the same code, configuration and hardware, not from a checkpoint of this one.",
        "Starts new jobs with the same code, configuration and hardware, not from checkpoints of these.",
        "Run again",
        "started again as {}",
        "Not run again",
        "",
    ),
    Verb.DELETE: _Words(
        "Delete {}?",
        "Permanently deletes the job, its log, and checkpoints that aren't deployed.",
        "Permanently deletes jobs, logs, and checkpoints that aren't deployed.",
        "Delete",
        "deleted",
        "Not deleted",
        "still active: stop them first",
    ),
}


@dataclass(frozen=True, slots=True)
class Batch:
    """The jobs to change, and the ``unfit`` ones, which this change can't be applied to."""

    verb: Verb
    jobs: tuple[TrainingJob, ...]
    unfit: tuple[TrainingJob, ...] = ()

    @property
    def question(self) -> str:
        """The confirmation question: ``Stop 3 jobs?``; a single job by its name and id."""
        ask = _WORDS[self.verb].ask
        if len(self.jobs) == 1:
            job = self.jobs[0]
            return ask.format(f"{name_of(job)} ({job.id})")
        return ask.format(counted(len(self.jobs), "job"))

    @property
    def consequence(self) -> str:
        words = _WORDS[self.verb]
        parts = [names_of(self.jobs), words.of_several] if len(self.jobs) > 1 else [words.of_one]
        if self.unfit:
            parts.append(f"Skipped, {words.unfit}: {names_of(self.unfit)}")
        return "\n".join(parts)

    @property
    def yes(self) -> str:
        number = f" all {len(self.jobs)}" if len(self.jobs) > 1 else ""
        return f"{_WORDS[self.verb].yes}{number}"

    @property
    def no(self) -> str:
        return _WORDS[self.verb].no

    @property
    def nothing_fits(self) -> str:
        return f"{_WORDS[self.verb].not_done}, {_WORDS[self.verb].unfit}: {names_of(self.unfit)}"

    def outcome(
        self, failures: Sequence[tuple[TrainingJob, str]], made: Sequence[TrainingJob] = ()
    ) -> tuple[str, str]:
        """Return the title and text of the outcome, naming the new jobs and the first few that failed."""
        words = _WORDS[self.verb]
        failed = {job.id for job, _ in failures}
        done = [job for job in self.jobs if job.id not in failed]
        ids = listed([sanitize(job.id) for job in made], NAMES_SHOWN)
        lines = [f"{names_of(done)}: {words.done.format(ids)}."] if done else []
        lines += [f"✗ {name_of(job)}: {sanitize(why)}" for job, why in failures[:FAILURES_SHOWN]]
        rest = len(failures) - FAILURES_SHOWN
        if rest > 0:
            lines.append(f"… and {rest} more")
        title = f"{words.not_done}: {len(failures)} of {len(self.jobs)}" if failures else ""
        return title, "\n".join(lines)


def batch_of(verb: Verb, jobs: Sequence[TrainingJob]) -> Batch:
    """Split jobs by action: only unfinished ones can be stopped, only ended ones deleted."""

    def fits(job: TrainingJob) -> bool:
        return verb is Verb.RECREATE or job.is_finished is (verb is Verb.DELETE)

    return Batch(verb, tuple(job for job in jobs if fits(job)), tuple(job for job in jobs if not fits(job)))


@dataclass(frozen=True, slots=True)
class ProjectDeletion:
    """The deletion of a project with all of its jobs."""

    project_id: str
    name: str
    jobs: tuple[TrainingJob, ...]

    @property
    def question(self) -> str:
        return f"Delete project {sanitize(self.name)} ({sanitize(self.project_id)})?"

    @property
    def consequence(self) -> str:
        jobs = counted(len(self.jobs), "job and its log", "jobs and their logs") if self.jobs else "no jobs"
        return (
            f"Permanently deletes the project with {jobs}, checkpoints that aren't deployed, and its cache."
        )

    @property
    def refusal(self) -> str:
        """Why the project is not deleted: its jobs that have not ended; empty if all have."""
        active = [job for job in self.jobs if not job.is_finished]
        words = _WORDS[Verb.DELETE]
        return f"{words.not_done}, {words.unfit}: {names_of(active)}" if active else ""


def name_of(job: TrainingJob) -> str:
    return sanitize(job.name or job.id)


def names_of(jobs: Sequence[TrainingJob]) -> str:
    return listed([name_of(job) for job in jobs], NAMES_SHOWN)
