"""Find jobs, projects and teams by what the user calls them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import click

from tui.commands.support.exit_codes import CommandFailed, ExitCode, known_names
from tui.text.names import listed
from tui.text.times import time_key

if TYPE_CHECKING:
    from api_client.client import TrainingClient
    from api_client.models import Team, TrainingJob, TrainingProject

Named = TypeVar("Named", "TrainingProject", "Team")


@dataclass(frozen=True, slots=True)
class JobChoice:
    """A job by its id or name, or the newest one of a project."""

    job_id: str | None
    project: str | None

    async def find(self, client: TrainingClient) -> TrainingJob:
        """Raise CommandFailed if there is no such job, and UsageError if nothing was given."""
        if self.job_id:
            job = await job_named(client, self.job_id)
            name = None if job.training_project is None else job.training_project.name
            if self.project not in (None, job.project_id, name):
                raise CommandFailed(f"job {job.id} is not in project {self.project!r}", ExitCode.NOT_FOUND)
            return job
        if self.project is None:
            raise click.UsageError("which job? Give --job-id JOB_ID, or --project PROJECT for its newest")
        owner = await project_named(client, self.project)
        newest = await newest_job(client, owner.id)
        if newest is None:
            raise CommandFailed(f"project {owner.name} has no jobs", ExitCode.NOT_FOUND)
        return newest


async def job_named(client: TrainingClient, text: str, *, parts: bool = True) -> TrainingJob:
    """Return the job with that id, else the only one named so, that begins so, or whose name has it.

    Without ``parts``, for what stops or deletes a job, a part inside its name is not enough.

    Raises NotFound if there is none, and CommandFailed if there are several.
    """
    from api_client.errors import NotFound  # slow, and the help needs none
    from api_client.models.jobs import short_status

    try:
        job = await client.jobs.find(text)
    except NotFound:
        jobs = await client.jobs.search() if text else []
        names = {job.id: job.name or "" for job in jobs}
        ways: dict[str, Callable[[TrainingJob], bool]] = {
            "are named": lambda job: names[job.id] == text,
            "begin with": lambda job: job.id.startswith(text) or names[job.id].startswith(text),
            "contain": lambda job: parts and text in names[job.id],
        }
        found = ((way, list(filter(matches, jobs))) for way, matches in ways.items())
        way, matching = next(((way, jobs) for way, jobs in found if jobs), ("", []))
        if not matching:
            raise
    else:
        return job
    if len(matching) > 1:
        newest_first = sorted(matching, key=lambda job: time_key(job.created_at), reverse=True)
        choices = listed(
            [f"{job.id} ({job.name}, {short_status(job.current_status)})" for job in newest_first], 5
        )
        raise CommandFailed(f"{len(matching)} jobs {way} {text!r}; give an id: {choices}", ExitCode.USAGE)
    return matching[0]


async def newest_job(client: TrainingClient, project_id: str | None = None) -> TrainingJob | None:
    jobs = await client.jobs.search(project_id=project_id)
    return max(jobs, key=lambda job: time_key(job.created_at), default=None)


async def active_jobs(client: TrainingClient, project: str | None = None) -> list[TrainingJob]:
    """Return the jobs that have not ended, of the project with that name or id, or all."""
    from api_client.models import RUNNABLE_STATUSES  # slow, and the help needs none

    project_id = await project_id_of(client, project)
    jobs = await client.jobs.search(project_id=project_id, statuses=sorted(RUNNABLE_STATUSES))
    return [job for job in jobs if not job.is_finished]


async def project_named(client: TrainingClient, name_or_id: str) -> TrainingProject:
    return _named(
        "project",
        name_or_id,
        await client.projects.list(),
        lambda project: f"{project.id} (team {project.team_name or 'unknown'})",
    )


async def project_id_of(client: TrainingClient, name_or_id: str | None) -> str | None:
    return None if name_or_id is None else (await project_named(client, name_or_id)).id


async def team_named(client: TrainingClient, name_or_id: str) -> Team:
    return _named("team", name_or_id, await client.account.teams(), lambda team: team.id)


def _named(what: str, name_or_id: str, known: Sequence[Named], describe: Callable[[Named], str]) -> Named:
    """Return the one with that id, else the only one with that name; raise CommandFailed if there is none."""
    matching = [item for item in known if item.id == name_or_id][:1]
    matching = matching or [item for item in known if item.name == name_or_id]
    if not matching:
        names = known_names(item.name or item.id for item in known)
        raise CommandFailed(f"no {what} {name_or_id!r} (known: {names})", ExitCode.NOT_FOUND)
    if len(matching) > 1:
        choices = ", ".join(describe(item) for item in matching)
        problem = f"{len(matching)} {what}s are named {name_or_id!r}; give an id: {choices}"
        raise CommandFailed(problem, ExitCode.USAGE)
    return matching[0]
