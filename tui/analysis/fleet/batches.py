"""Changes to several jobs at once, and the deletion of a project: affected jobs, questions, and outcomes."""

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

MAX_NAMES_SHOWN = 6
MAX_FAILURES_SHOWN = 4


class Verb(StrEnum):
    STOP = "stop"
    RECREATE = "recreate"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class _VerbTexts:
    question: str
    """With ``{}`` for the jobs."""
    consequence_for_one: str
    consequence_for_several: str
    yes: str
    """The button that confirms."""
    done: str
    """What is reported for changed jobs, with ``{}`` for the ids of new jobs, if any."""
    not_done: str
    unfit_reason: str
    """Why a job is skipped."""
    no: str = "Cancel"


_TEXTS: dict[Verb, _VerbTexts] = {
    Verb.STOP: _VerbTexts(
        "Stop {}?",
        "The job stops now. Logs and stored checkpoints are kept.",
        "They stop now. Logs and stored checkpoints are kept.",
        "Stop",
        "stopping",
        "Not stopped",
        "already ended",
        "Keep running",
    ),
    Verb.RECREATE: _VerbTexts(
        "Run {} again?",
        "Starts a new job with the same code, configuration and hardware, not from a checkpoint of this one.",
        "Starts new jobs with the same code, configuration and hardware, not from checkpoints of these.",
        "Run again",
        "started again as {}",
        "Not run again",
        "",
    ),
    Verb.DELETE: _VerbTexts(
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
    """The jobs to change, and the ``unfit`` jobs, to which the change can't be applied."""

    verb: Verb
    jobs: tuple[TrainingJob, ...]
    unfit: tuple[TrainingJob, ...] = ()

    @property
    def question(self) -> str:
        """The confirmation question: ``Stop 3 jobs?``; a single job by its name and id."""
        question = _TEXTS[self.verb].question
        if len(self.jobs) == 1:
            job = self.jobs[0]
            return question.format(f"{name_of(job)} ({job.id})")
        return question.format(counted(len(self.jobs), "job"))

    @property
    def consequence(self) -> str:
        texts = _TEXTS[self.verb]
        parts = (
            [names_of(self.jobs), texts.consequence_for_several]
            if len(self.jobs) > 1
            else [texts.consequence_for_one]
        )
        if self.unfit:
            parts.append(f"Skipped, {texts.unfit_reason}: {names_of(self.unfit)}")
        return "\n".join(parts)

    @property
    def yes(self) -> str:
        number = f" all {len(self.jobs)}" if len(self.jobs) > 1 else ""
        return f"{_TEXTS[self.verb].yes}{number}"

    @property
    def no(self) -> str:
        return _TEXTS[self.verb].no

    @property
    def nothing_fits(self) -> str:
        return f"{_TEXTS[self.verb].not_done}, {_TEXTS[self.verb].unfit_reason}: {names_of(self.unfit)}"

    def outcome(
        self, failures: Sequence[tuple[TrainingJob, str]], new_jobs: Sequence[TrainingJob] = ()
    ) -> tuple[str, str]:
        """Return the title and text of a notification about the outcome.

        ``failures`` are jobs with the reason why they were not changed. ``new_jobs`` are created jobs.
        """
        texts = _TEXTS[self.verb]
        failed = {job.id for job, _ in failures}
        changed_jobs = [job for job in self.jobs if job.id not in failed]
        new_ids_text = listed([sanitize(job.id) for job in new_jobs], MAX_NAMES_SHOWN)
        lines = [f"{names_of(changed_jobs)}: {texts.done.format(new_ids_text)}."] if changed_jobs else []
        lines += [f"✗ {name_of(job)}: {sanitize(reason)}" for job, reason in failures[:MAX_FAILURES_SHOWN]]
        unshown_count = len(failures) - MAX_FAILURES_SHOWN
        if unshown_count > 0:
            lines.append(f"… and {unshown_count} more")
        title = f"{texts.not_done}: {len(failures)} of {len(self.jobs)}" if failures else ""
        return title, "\n".join(lines)


def batch_of(verb: Verb, jobs: Sequence[TrainingJob]) -> Batch:
    """Separate the unfit jobs: only unfinished jobs can be stopped, only finished jobs deleted."""

    def can_be_changed(job: TrainingJob) -> bool:
        return verb is Verb.RECREATE or job.is_finished is (verb is Verb.DELETE)

    return Batch(
        verb,
        tuple(job for job in jobs if can_be_changed(job)),
        tuple(job for job in jobs if not can_be_changed(job)),
    )


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
        """The reason why the project can't be deleted: its unfinished jobs; empty if all have ended."""
        active = [job for job in self.jobs if not job.is_finished]
        texts = _TEXTS[Verb.DELETE]
        return f"{texts.not_done}, {texts.unfit_reason}: {names_of(active)}" if active else ""


def name_of(job: TrainingJob) -> str:
    return sanitize(job.name or job.id)


def names_of(jobs: Sequence[TrainingJob]) -> str:
    return listed([name_of(job) for job in jobs], MAX_NAMES_SHOWN)
