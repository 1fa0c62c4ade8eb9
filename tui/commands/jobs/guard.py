"""``bt-tui guard``: Watch runs until they end; report, notify and stop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import click

from api_client import ApiClientError, NotFound, RequestError, TrainingClient, Unreachable
from api_client.models import RUNNABLE_STATUSES, TrainingJob
from tui.alerts.alert import Alert
from tui.alerts.delivery import AlertDelivery
from tui.analysis.health.registry import KINDS
from tui.analysis.run.finding import TONES
from tui.commands.support.options import (
    Duration,
    active_jobs,
    combined,
    examples,
    format_option,
    job_named,
    project_id_of,
    selected_project,
)
from tui.commands.support.output import (
    EXIT_CODE_OF_SEVERITY,
    NDJSON,
    TEXT,
    CommandFailed,
    CommandOutput,
    ExitCode,
    outcome_exit_code,
    refuse_if,
    unknown_value,
    worst_code,
)
from tui.commands.support.remotes import configuration_if_any, run_settings
from tui.commands.support.session import client_command
from tui.guard.conditions import check_deadline, parse_deadline, parse_dollars, stop_causes
from tui.guard.memory import GuardMemory
from tui.guard.rules import GuardRules, resumable_statuses
from tui.guard.watch import Guard, NotResumed, Reporting, UndeliveredAlerts, background_delivery
from tui.settings.model import NotificationSettings
from tui.settings.remembered import state_path
from tui.system.termination import TerminationSignals
from tui.text.sanitize import sanitize
from tui.text.times import local_time
from tui.text.units import counted

T = TypeVar("T")


def _names_callback(kind: str, known_names: Collection[str]) -> Callable[[Any, Any, str], frozenset[str]]:
    """Return the callback of an option whose value is a comma-separated list of ``known_names``."""

    def read(_context: click.Context, _parameter: click.Parameter, typed: str | None) -> frozenset[str]:
        names = frozenset(filter(None, map(str.strip, (typed or "").split(","))))
        if typed is not None and not names:
            raise click.BadParameter(f"no {kind} given")
        for name in sorted(names.difference(known_names)):
            raise click.BadParameter(unknown_value(kind, name, known_names))
        return names

    return read


def _parser_callback(read: Callable[[str], T]) -> Callable[[Any, Any, str | None], T | None]:
    """Return an option's callback that parses the text with ``read``; its ValueError is a usage error."""

    def convert(_context: click.Context, _parameter: click.Parameter, typed: str | None) -> T | None:
        try:
            return None if typed is None else read(typed)
        except ValueError as problem:
            raise click.BadParameter(str(problem)) from None

    return convert


_rules_options = combined(
    "rules",
    GuardRules,
    click.option(
        "--stop-on",
        callback=_names_callback("finding", sorted(KINDS)),
        metavar="KIND[,KIND]",
        help="Stop a run with such a finding, as in loss-not-finite,stalled; docs/health.md lists all kinds.",
    ),
    click.option(
        "--budget",
        "budget_usd",
        callback=_parser_callback(parse_dollars),
        metavar="200usd",
        help="Stop a run that has cost this much.",
    ),
    click.option(
        "--until",
        metavar="TIME",
        callback=_parser_callback(lambda typed: parse_deadline(typed, datetime.now(UTC))),
        help="Stop the runs at 06:00, at a date and time, or 8h from now.",
    ),
    click.option(
        "--after-checkpoint",
        is_flag=True,
        help="Stop a run once it has stored its next checkpoint; at once if it has stalled or is idle.",
    ),
    click.option("--dry-run", is_flag=True, help="Only report what would be stopped or resumed."),
    click.option(
        "--resume-on",
        callback=_names_callback("status", resumable_statuses()),
        metavar="STATUS[,STATUS]",
        help="Resume a run that ends with this status (preempted, failed, expired) from its newest "
        "checkpoint. Its config is executed on this machine.",
    ),
    click.option(
        "--max-resumes",
        type=click.IntRange(1),
        default=3,
        show_default=True,
        metavar="N",
        help="Maximum number of times that a run is resumed.",
    ),
)


@examples(
    "bt-tui guard abc1234 --once || notify-send 'check the run'",
    "bt-tui guard abc1234 --notify --heartbeat 1h",
    "bt-tui guard abc1234 --stop-on loss-not-finite,stalled --budget 200usd --after-checkpoint",
    "bt-tui guard --all --until 06:00 --dry-run",
    "bt-tui guard --test",
)
@click.command()
@click.argument("job_ids", metavar="[JOB_ID]...", nargs=-1)
@click.option("--project", metavar="PROJECT", help="Watch all active runs of this project (id or name).")
@click.option("--project-id", metavar="ID", hidden=True, help="Same as --project.")
@click.option("--all", "watch_all", is_flag=True, help="Watch all active runs that you can access.")
@_rules_options
@click.option("--notify", is_flag=True, help="Deliver alerts by the command and webhook of the settings.")
@click.option(
    "--test", is_flag=True, help="Send a test notification, report whether it was delivered, and exit."
)
@click.option("--once", is_flag=True, help="Check once and exit, for cron; the exit code is the verdict.")
@click.option(
    "--heartbeat",
    "heartbeat_s",
    type=Duration(min_s=10.0),
    metavar="SPAN",
    help="Report at this interval, such as 1h, that the guard still runs: silence means that it ended.",
)
@format_option(TEXT, NDJSON)
@client_command
async def guard(
    client: TrainingClient,
    output: CommandOutput,
    job_ids: tuple[str, ...],
    project: str | None,
    project_id: str | None,
    watch_all: bool,
    rules: GuardRules,
    notify: bool,
    test: bool,
    once: bool,
    heartbeat_s: float | None,
) -> ExitCode:
    """Watch runs without a screen until they end.

    Prints a line when a finding begins or ends, when a status changes, when a run can't be read, and for each
    action of the guard. It stops a run only for a finding that two complete checks in a row have found, and
    never on outdated data.

    The exit code is that of the worst outcome, as of `wait`; with --once it is 10 for warnings, 11 for
    critical findings, and 8 if a run could not be read.

    Reports and decisions are saved in a file: a guard that is started again does not repeat them.
    """
    configuration = configuration_if_any()
    notifications = configuration.notifications if configuration is not None else NotificationSettings()
    if test:
        return await _send_test(output, notifications)
    _check_rules(client, rules, notifications if notify else None)
    memory = GuardMemory(state_path("guard.json"), output.print_message)
    name_or_id = selected_project(project, project_id)
    refuse_if(job_ids and (watch_all or name_or_id is not None), "job ids need neither --project nor --all")
    refuse_if(
        not job_ids and not watch_all and name_or_id is None,
        "which runs? Give JOB_ID, --project PROJECT or --all",
    )
    reporting = Reporting(partial(_print_alert, output), settings=notifications)
    if notify:
        reporting.delivery = _alert_delivery(client, output, notifications, memory)
    active_guard = Guard(
        client,
        rules,
        memory,
        reporting,
        settings=run_settings(),
        find_more=None if job_ids else partial(_more_jobs, client, name_or_id),
        resume=partial(_resume, client, output),
        heartbeat_s=heartbeat_s,
    )
    if rules.until is not None and not active_guard.has_saved_deadline(rules.until):
        try:
            check_deadline(rules.until, client.clock.now())
        except ValueError as problem:
            raise click.BadParameter(str(problem), param_hint="'--until'") from None
    find_jobs = partial(_first_jobs, client, active_guard, job_ids, name_or_id)
    try:
        async with background_delivery(reporting.delivery):
            if once:
                await active_guard.poll_once(await find_jobs())
            else:
                jobs = await active_guard.find(find_jobs)
                output.print_message(_watch_summary(jobs, active_guard.rules_for(jobs)))
                await active_guard.run(jobs)
    except asyncio.CancelledError:
        if (
            TerminationSignals.received_signal is None
        ):  # after ctrl-c, the same --until TIME is a new deadline
            active_guard.forget_deadlines()
        raise
    if reporting.delivery is not None and (unsent_count := active_guard.unsent_count):
        output.print_message(
            f"{counted(unsent_count, 'notification')} not delivered; the next guard sends them"
        )
    return _verdict_code(active_guard) if once else _outcome_code(active_guard)


def _check_rules(
    client: TrainingClient, rules: GuardRules, notifications: NotificationSettings | None
) -> None:
    """Refuse rules that can't work. Raises click.UsageError, CommandFailed and ReadOnlyError."""
    refuse_if(
        rules.after_checkpoint and not rules.may_stop,
        "--after-checkpoint stops nothing without --stop-on, --budget or --until",
    )
    if rules.may_stop and not rules.dry_run:
        client.check_may_change("stopping jobs")
    if rules.resume_on and not rules.dry_run:
        client.check_may_change("submitting a job")
    if notifications is not None and not (notifications.command or notifications.webhook):
        raise CommandFailed(
            "--notify needs notifications.command or notifications.webhook in the settings", ExitCode.USAGE
        )


async def _resume(
    client: TrainingClient,
    output: CommandOutput,
    job: TrainingJob,
    since: datetime,
    other_resuming_ids: Collection[str],
) -> TrainingJob:
    from tui.commands.jobs.resume import resume_now  # slow to import; only resuming needs it

    try:
        return await resume_now(client, output, job, since, other_resuming_ids)
    except RequestError:
        raise
    except (CommandFailed, ApiClientError, OSError) as error:
        if isinstance(error, CommandFailed) and error.exit_code == ExitCode.UNREACHABLE:
            raise Unreachable(str(error)) from error
        raise NotResumed(str(error)) from error


def _alert_delivery(
    client: TrainingClient, output: CommandOutput, settings: NotificationSettings, memory: GuardMemory
) -> AlertDelivery:
    remote = client.remote
    secrets = [remote.key.get_secret_value()] if remote.key else []
    secrets += remote.login.secrets() if remote.login else []

    return AlertDelivery(
        settings.command,
        settings.webhook,
        output.print_message,
        os.environ,
        body_format=settings.webhook_format,
        secrets=secrets,
        unsent=UndeliveredAlerts(memory, client.clock),
    )


async def _send_test(output: CommandOutput, settings: NotificationSettings) -> ExitCode:
    """Deliver one alert to each destination; print for each whether it was delivered."""
    delivery = AlertDelivery(
        settings.command,
        settings.webhook,
        output.print_message,
        os.environ,
        body_format=settings.webhook_format,
    )
    if not delivery.destinations:
        raise CommandFailed(
            "nothing to test: set notifications.command or notifications.webhook", ExitCode.USAGE
        )
    code = ExitCode.OK
    record = delivery.record(
        Alert(None, "info", datetime.now(UTC), guard_event="test", message="a test of bt-tui guard")
    )
    for destination in delivery.destinations:
        try:
            await delivery.deliver(destination, record)
        except RequestError as problem:
            code = ExitCode.UNEXPECTED
            output.print_message(f"{destination}: not delivered: {sanitize(str(problem))}")
        else:
            output.print_message(f"{destination}: delivered")
    return code


async def _first_jobs(
    client: TrainingClient, active_guard: Guard, job_ids: Sequence[str], project: str | None
) -> list[TrainingJob]:
    """Return the jobs to watch first.

    These include jobs that this or an earlier guard submitted to resume other jobs, and jobs that ended while
    no guard was running.
    """
    known_runs = active_guard.known_jobs()
    if job_ids:
        named_jobs = [await job_named(client, job_id) for job_id in dict.fromkeys(job_ids)]
        job_by_id = {job.id: job for job in named_jobs}
        for job in named_jobs:  # grows while it is iterated: a resumed job may have been resumed again
            resume = known_runs[job.id].resume if job.id in known_runs else None
            if resume is not None and resume.job_id and resume.job_id not in job_by_id:
                named_jobs.append(await client.jobs.find(resume.job_id))
                job_by_id[resume.job_id] = named_jobs[-1]
        return list(job_by_id.values())
    jobs = {job.id: job for job in await active_jobs(client, project)}
    project_id = await project_id_of(client, project)
    for job_id, run in known_runs.items():
        if job_id not in jobs and run.status in RUNNABLE_STATUSES:
            with suppress(NotFound):
                job = await client.jobs.find(job_id)
                if project_id in (None, job.project_id):
                    jobs[job_id] = job
    return list(jobs.values())


async def _more_jobs(client: TrainingClient, project: str | None) -> list[TrainingJob]:
    try:
        return await active_jobs(client, project)
    except CommandFailed:  # the project was deleted, or another project got the same name
        return []


def _verdict_code(active_guard: Guard) -> ExitCode:
    last_polls = [poll for poll in active_guard.last_polls.values() if not poll.run.job.is_finished]
    severities = {finding.severity for poll in last_polls for finding in poll.run.findings}
    code = worst_code(
        EXIT_CODE_OF_SEVERITY[severity] for severity in severities & EXIT_CODE_OF_SEVERITY.keys()
    )
    return code or (ExitCode.OK if all(poll.is_judged for poll in last_polls) else ExitCode.UNREACHABLE)


def _outcome_code(active_guard: Guard) -> ExitCode:
    """Return the exit code of the worst outcome, ignoring jobs that another job has resumed."""
    runs = active_guard.known_jobs()
    resumed_ids = {job_id for job_id, run in runs.items() if run.resume is not None and run.resume.job_id}
    last_polls = [poll for job_id, poll in active_guard.last_polls.items() if job_id not in resumed_ids]
    codes = [
        outcome_exit_code(poll.run.job.current_status) for poll in last_polls if poll.run.job.is_finished
    ]
    return worst_code([*codes, *(ExitCode.UNREACHABLE for poll in last_polls if poll.is_gone)])


def _print_alert(output: CommandOutput, alert: Alert) -> None:
    job_id = f" ({sanitize(alert.job.id)})" if alert.job is not None else ""
    title = output.paint(alert.title, TONES[alert.severity])
    text = f"{local_time(alert.at)}  {title}{job_id}: {alert.text}\n"
    output.print_result(alert.record(), text)


def _watch_summary(jobs: Sequence[TrainingJob], rules: GuardRules) -> str:
    """Return ``watching 2 runs; stops each on stalled, a budget of $200.00 and 2026-11-28 06:00``."""
    stop_text = "nothing is stopped"
    if causes_text := stop_causes(rules):
        condition = ", after its next checkpoint" if rules.after_checkpoint else ""
        stop_text = f"{'would stop' if rules.dry_run else 'stops'} each on {causes_text}{condition}"
    return f"watching {counted(len(jobs), 'run')}; {stop_text}; only as long as this command runs"
