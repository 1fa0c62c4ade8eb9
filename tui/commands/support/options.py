"""Options that several commands share, with the official command line's names.

Also ``CommandSettings``, which collects the common options, and functions that find jobs, projects and teams
by id or name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from api_client.words import READ_ONLY_OPTION, listed
from tui.commands.support.output import (
    CSV,
    JSON,
    JSONL,
    OFFICIAL_TABLES,
    TABLE,
    CommandFailed,
    CommandOutput,
    ExitCode,
    known_names_text,
    refuse_if,
)
from tui.commands.support.terminal import NON_INTERACTIVE
from tui.text.times import LogTimes, parse_duration, parse_time, time_key
from tui.text.units import duration

if TYPE_CHECKING:
    from api_client.client import TrainingClient
    from api_client.models import Team, TrainingJob, TrainingProject
    from api_client.recordings.reading import Recording


Named = TypeVar("Named", "TrainingProject", "Team")


@dataclass(frozen=True, slots=True)
class JobChoice:
    """A job, given by id or name, or as the newest job of a project."""

    job_id: str | None
    project: str | None

    async def find(self, client: TrainingClient) -> TrainingJob:
        """Return the job. Raises CommandFailed if there is none, and UsageError if nothing was given."""
        if self.job_id:
            job = await job_named(client, self.job_id)
            name = None if job.training_project is None else job.training_project.name
            if self.project not in (None, job.project_id, name):
                raise CommandFailed(f"job {job.id} is not in project {self.project!r}", ExitCode.NOT_FOUND)
            return job
        if self.project is None:
            raise click.UsageError("which job? Give --job-id JOB_ID, or --project PROJECT for its newest job")
        owning_project = await project_named(client, self.project)
        newest = await newest_job(client, owning_project.id)
        if newest is None:
            raise CommandFailed(f"project {owning_project.name} has no jobs", ExitCode.NOT_FOUND)
        return newest


async def job_named(client: TrainingClient, text: str, *, substring: bool = True) -> TrainingJob:
    """Return the job with the id ``text``, else the only job that matches in the first way that has a match.

    Ways to match: the name is ``text``; id or name begins with it; the name contains it. The last way is
    disabled with ``substring=False``, for commands that stop or delete jobs.

    Raises NotFound if no job matches, and CommandFailed if several jobs match.
    """
    from api_client.errors import NotFound  # slow to import; the help needs no client
    from api_client.vocabulary import short_status

    try:
        job = await client.jobs.find(text)
    except NotFound:
        jobs = await client.jobs.search() if text else []
        names = {job.id: job.name or "" for job in jobs}
        match_tests: dict[str, Callable[[TrainingJob], bool]] = {
            "are named": lambda job: names[job.id] == text,
            "begin with": lambda job: job.id.startswith(text) or names[job.id].startswith(text),
            "contain": lambda job: substring and text in names[job.id],
        }
        matches_by_verb = ((verb, list(filter(is_match, jobs))) for verb, is_match in match_tests.items())
        verb, matching = next(((verb, jobs) for verb, jobs in matches_by_verb if jobs), ("", []))
        if not matching:
            raise
    else:
        return job
    if len(matching) > 1:
        newest_first = sorted(matching, key=lambda job: time_key(job.created_at), reverse=True)
        choices = listed(
            [f"{job.id} ({job.name}, {short_status(job.current_status)})" for job in newest_first], 5
        )
        raise CommandFailed(f"{len(matching)} jobs {verb} {text!r}; give an id: {choices}", ExitCode.USAGE)
    return matching[0]


async def newest_job(client: TrainingClient, project_id: str | None = None) -> TrainingJob | None:
    jobs = await client.jobs.search(project_id=project_id)
    return max(jobs, key=lambda job: time_key(job.created_at), default=None)


async def active_jobs(client: TrainingClient, project: str | None = None) -> list[TrainingJob]:
    """Return the jobs that have not ended: of the project with this name or id, or of all projects."""
    from api_client.models import RUNNABLE_STATUSES  # slow to import; the help needs no client

    project_id = await project_id_of(client, project)
    jobs = await client.jobs.search(project_id=project_id, statuses=sorted(RUNNABLE_STATUSES))
    return [job for job in jobs if not job.is_finished]


async def project_named(client: TrainingClient, name_or_id: str) -> TrainingProject:
    return _only_match(
        "project",
        name_or_id,
        await client.projects.list(),
        lambda project: f"{project.id} (team {project.team_name or 'unknown'})",
    )


async def project_id_of(client: TrainingClient, name_or_id: str | None) -> str | None:
    return None if name_or_id is None else (await project_named(client, name_or_id)).id


async def team_named(client: TrainingClient, name_or_id: str) -> Team:
    return _only_match("team", name_or_id, await client.account.teams(), lambda team: team.id)


def _only_match(
    noun: str, name_or_id: str, items: Sequence[Named], describe: Callable[[Named], str]
) -> Named:
    """Return the item with this id, else the only item with this name. Raises CommandFailed."""
    matching = [item for item in items if item.id == name_or_id][:1]
    matching = matching or [item for item in items if item.name == name_or_id]
    if not matching:
        names = known_names_text(item.name or item.id for item in items)
        raise CommandFailed(f"no {noun} {name_or_id!r} (known: {names})", ExitCode.NOT_FOUND)
    if len(matching) > 1:
        choices = ", ".join(describe(item) for item in matching)
        problem = f"{len(matching)} {noun}s are named {name_or_id!r}; give an id: {choices}"
        raise CommandFailed(problem, ExitCode.USAGE)
    return matching[0]


Command = TypeVar("Command", bound=Callable[..., Any])
Documented = TypeVar("Documented", bound=click.Command)
ASCENDING, DESCENDING = "asc", "desc"


class Duration(click.ParamType[float]):
    """A duration of at least ``min_s`` seconds: ``2h``, ``1h30m``, ``45s``; a bare number is seconds."""

    name = "span"

    def __init__(self, min_s: float = 0.0) -> None:
        self._min_s = min_s

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value).strip()
        try:
            is_number = text.isascii() and text.isdigit()
            seconds = float(text) if is_number else parse_duration(text).total_seconds()
        except (ValueError, OverflowError):
            return self.fail(f"{text[:40]!r} is not a duration such as 2h, 1h30m or 45s", param, ctx)
        if seconds < self._min_s:
            return self.fail(f"{text[:40]!r} is less than {duration(self._min_s)}", param, ctx)
        return seconds


UNITS_PER_S_BY_DIGITS = {10: 1, 13: 1_000, 16: 1_000_000, 19: 1_000_000_000}
"""Units per second of an epoch time, by its number of digits: 10 digits are s, 13 ms, 16 µs, 19 ns."""


def parse_since(typed: str, now: datetime) -> datetime:
    """Parse ``2h`` (two hours ago) or any form of ``parse_moment``. Raises ValueError."""
    try:
        return now - parse_duration(typed)
    except ValueError:
        return parse_moment(typed, now, now)
    except OverflowError:
        raise ValueError(f"date out of range: {typed[:40]}") from None


def parse_moment(typed: str, beginning: datetime, now: datetime) -> datetime:
    """Parse a time of day, a date, ISO 8601, an epoch time (s, ms, µs, ns), ``-15m``, ``15m ago``, ``now``.

    A bare duration such as ``1h20m`` counts from the run's ``beginning``. Times are local unless they
    name a timezone. Raises ValueError.
    """
    text = typed.strip()
    if text.isascii() and text.isdigit() and len(text) in UNITS_PER_S_BY_DIGITS:
        return datetime.fromtimestamp(int(text) / UNITS_PER_S_BY_DIGITS[len(text)], UTC)
    return parse_time(text, LogTimes(oldest=beginning, newest=now, current=now))


def _check_since(_context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    resolve_since(value, datetime.now(UTC), parameter.opts[0])
    return value


def since_option(description: str, *names: str) -> Callable[[Command], Command]:
    """Add ``--since TIME``, a duration (``2h``: two hours ago) or a time; the command gets the text."""
    return click.option(*(names or ("--since",)), metavar="TIME", callback=_check_since, help=description)


def resolve_since(typed: str | None, now: datetime, option: str = "--since") -> datetime | None:
    if typed is None:
        return None
    try:
        moment = parse_since(typed, now)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None
    if moment > now and option != "--end":
        raise click.BadParameter(f"{typed!r} is in the future", param_hint=option)
    return moment


def combined(
    name: str, combine: Callable[..., Any], *options: Callable[[Command], Command]
) -> Callable[[Command], Command]:
    """Add options whose values a command gets combined, as one parameter called ``name``.

    ``combine``, a function or a dataclass with one parameter per option, returns the combined value.
    """

    def add(command: Command) -> Command:
        @wraps(command)
        def combine_parameters(*positional: Any, **parameters: Any) -> Any:
            value = combine(**{option: parameters.pop(option) for option in parameter_names})
            return command(*positional, **{name: value}, **parameters)

        wrapped_command: Any = combine_parameters
        previous_count = len(getattr(wrapped_command, "__click_params__", ()))
        for option in reversed(options):
            wrapped_command = option(wrapped_command)
        parameter_names = [
            parameter.name
            for parameter in wrapped_command.__click_params__[previous_count:]
            if parameter.expose_value
        ]
        return cast("Command", wrapped_command)

    return add


order_option = click.option(
    "--order",
    "--direction",
    type=click.Choice((ASCENDING, DESCENDING)),
    default=ASCENDING,
    show_default=True,
    help="Sort order.",
)


def _job_choice(
    job_id: str | None, project: str | None, project_id: str | None, job: str | None = None
) -> JobChoice:
    return JobChoice(one_job_id(job, job_id), selected_project(project, project_id))


_JOB_OPTIONS = (
    click.option("--job-id", "job_id", metavar="JOB_ID", help="Job (default: the newest of the project)."),
    click.option("--project", "project", metavar="PROJECT", help="Project (id or name)."),
    click.option("--project-id", "project_id", metavar="ID", hidden=True, help="Same as --project."),
)
job_options = combined("choice", _job_choice, *_JOB_OPTIONS)
"""``--job-id``, ``--project`` and ``--project-id``, which the command gets as the JobChoice ``choice``."""
job_argument_and_options = combined(
    "choice", _job_choice, click.argument("job", metavar="[JOB_ID]", required=False), *_JOB_OPTIONS
)
"""``job_options``, and an argument that means the same as ``--job-id``."""


def _given_job_id(job_argument: str | None, job_option: str | None) -> str | None:
    job_id = one_job_id(job_argument, job_option)
    refuse_if(not job_id, "which job? Give JOB_ID or --job-id JOB_ID")
    return job_id


job_argument = combined(
    "job_id",
    _given_job_id,
    click.argument("job_argument", metavar="[JOB_ID]", required=False),
    click.option("--job-id", "job_option", metavar="JOB_ID", help="Same as the argument."),
)
"""A required job id, as the argument JOB_ID or as ``--job-id``; the command gets it as ``job_id``."""


def one_job_id(argument: str | None, option: str | None) -> str | None:
    """Return the job id from the argument, the option or the recording; None if there is none."""
    refuse_if(argument and option and argument != option, "two different job ids; give one")
    return argument or option or recorded_job_id()


def recorded_job_id() -> str | None:
    recording = given_recording()
    return None if recording is None else recording.job.id


def given_recording() -> Recording | None:
    """Return the recording given by ``--file``."""
    settings = click.get_current_context().find_object(CommandSettings)
    return None if settings is None else settings.recording


def selected_project(project: str | None, project_id: str | None) -> str | None:
    refuse_if(
        project is not None and project_id is not None and project != project_id,
        "--project and --project-id name different projects; give one",
    )
    return project_id if project is None else project


JOBS, PROJECTS, CHECKPOINTS, METRICS, REMOTES = "jobs", "projects", "checkpoints", "metrics", "remotes"
"""Kinds of names that shell completion offers: those of jobs, projects and so on."""
TRIGGERS = ("on_startup", "on_failure", "on_demand")


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """Settings of every command: the remote, the output, read-only mode, and the recording of ``--file``."""

    remote_name: str | None = None
    output: CommandOutput = field(default_factory=CommandOutput)
    readonly: bool = False
    recording: Recording | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """The options that were given, which suggested commands must repeat."""
        remote = () if self.remote_name is None else ("--remote", self.remote_name)
        return (*remote, *((READ_ONLY_OPTION,) if self.readonly else ()))


def _store_in_settings(
    name: str, read: Callable[[click.Context, Any], Any] = lambda _context, value: value
) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Return an option's callback that stores the value in ``CommandSettings``.

    The option can be given before or after the subcommand.
    """

    def store(context: click.Context, _parameter: click.Parameter, value: Any) -> None:
        outer = context.find_object(CommandSettings) or CommandSettings()
        context.obj = outer if value in (None, False) else replace(outer, **{name: read(context, value)})

    return store


def _set_non_interactive(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        context.meta[NON_INTERACTIVE] = True


readonly_option = click.option(
    "--readonly",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_store_in_settings("readonly"),
    help="Read-only: refuse everything that would change the server.",
)


def remote_option(command: Command) -> Command:
    """Add ``--remote NAME``, accepted before and after the subcommand.

    Also accepts the official ``--non-interactive``, ``--log`` and ``--verbose``, which the help does not
    list.
    """
    command = click.option(
        "--non-interactive", is_flag=True, expose_value=False, hidden=True, callback=_set_non_interactive
    )(command)
    # accepted for compatibility, without effect
    command = click.option("--log", expose_value=False, hidden=True)(command)
    command = click.option("-v", "--verbose", is_flag=True, expose_value=False, hidden=True)(command)
    return click.option(
        "--remote",
        "--profile",
        metavar="NAME",
        expose_value=False,
        is_eager=True,
        callback=_store_in_settings("remote_name"),
        help="Section of ~/.trussrc, profile of the Go CLI, or local for an emulator on this machine "
        "(default: the environment, else the only section).",
    )(command)


def format_option(*formats: str, extra_names: Sequence[str] = ()) -> Callable[[Command], Command]:
    """Add ``-o/--output FORMAT``, and its other names; the first of ``formats`` is the default.

    The format is set on the command's output. The official names of formats are accepted, too:
    ``cli-table``, ``text``, and ``jsonl``, which is JSON with one line for each record.
    """

    def set_format(context: click.Context, _parameter: click.Parameter, value: str) -> str:
        name = formats[0] if value in OFFICIAL_TABLES else value
        settings = context.ensure_object(CommandSettings)
        context.obj = replace(settings, output=settings.output.with_format(name))
        return name

    return click.option(
        "-o",
        "--output",
        *extra_names,
        expose_value=False,
        type=click.Choice(dict.fromkeys((*formats, *OFFICIAL_TABLES, JSONL)), case_sensitive=False),
        metavar=f"[{'|'.join(formats)}]",
        default=formats[0],
        show_default=True,
        callback=set_format,
        help="Output format.",
    )


listing_format_option = format_option(TABLE, CSV, JSON, extra_names=["--output-format"])


def trigger_option(*names: str, help: str) -> Callable[[Command], Command]:
    """Add the choice of when sessions start, in the spelling of either official CLI."""
    spellings = (*TRIGGERS, *(trigger.replace("_", "-") for trigger in TRIGGERS))
    return click.option(
        *names,
        type=click.Choice(spellings, case_sensitive=False),
        metavar=f"[{'|'.join(TRIGGERS)}]",
        callback=lambda _context, _parameter, value: value and value.replace("-", "_"),
        help=help,
    )


def recording_option(command: Command) -> Command:
    """Add ``--file FILE``: a recording instead of a job."""

    def open_recording(context: click.Context, path: Path) -> Recording:
        from api_client.recordings.reading import Recording  # slow to import; few commands read one

        return context.with_resource(Recording(path))

    return click.option(
        "--file",
        metavar="FILE",
        type=click.Path(path_type=Path),
        expose_value=False,
        is_eager=True,
        callback=_store_in_settings("recording", open_recording),
        help="Read this recording (bt-tui record) instead of a job.",
    )(command)


def check_recording_options(typed: Mapping[str, Any]) -> None:
    """Refuse options that make no sense with ``--file``: those that name a job, and ``--follow``."""
    job_parameters = (
        "job",
        "job_argument",
        "job_option",
        "job_id",
        "job_ids",
        "job_id_option",
        "project",
        "project_id",
    )
    refuse_if(any(typed.get(name) for name in job_parameters), "give a job or --file, not both")
    refuse_if(typed.get("follow"), "a recording can't be followed; omit --follow")


yes_option = click.option("--yes", "-y", "assume_yes", is_flag=True, help="Skip confirmation.")


def examples(*command_lines: str) -> Callable[[Documented], Documented]:
    r"""Add the examples to the command's help; ``\b`` keeps click from joining lines."""
    text = "\b\nExamples:\n" + "\n".join(f"  {command_line}" for command_line in command_lines)

    def add(command: Documented) -> Documented:
        command.epilog = f"{text}\n\n{command.epilog}" if command.epilog else text
        return command

    return add
