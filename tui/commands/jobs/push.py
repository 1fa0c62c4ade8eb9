"""``bt-tui push``: Submit a training job.

``bt-tui recreate``: Submit a job again.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from api_client import (
    ArchivePlan,
    RemoteNotConfigured,
    RequestError,
    TrainingClient,
    Unreachable,
    load_training_project,
    plan_archive,
)
from api_client.definitions import TrainingProject
from api_client.models import TrainingJob
from api_client.submission.findings import Finding
from api_client.submission.payload import Overrides, apply_overrides, job_payload, project_payload
from api_client.submission.preflight import check, preflight
from api_client.submission.submitting import (
    Submission,
    SubmissionProgress,
    choose_team,
    describe_environment,
    submit,
)
from tui.commands.logs.command import follow_log
from tui.commands.support.options import (
    Command,
    CommandSettings,
    Duration,
    combined,
    examples,
    format_option,
    job_named,
    newest_job,
    one_job_id,
    remote_option,
    trigger_option,
    yes_option,
)
from tui.commands.support.output import (
    JSON,
    NDJSON,
    TABLE,
    TEXT,
    CommandFailed,
    CommandOutput,
    ExitCode,
    ascii_json,
)
from tui.commands.support.progress_line import ProgressLine
from tui.commands.support.session import client_command, run_on_remote
from tui.commands.support.tables import Cell, facts_text, print_job, table_text_if_any
from tui.commands.support.terminal import can_ask, confirm
from tui.tables.column import Column, text_column
from tui.text.failures import creation_doubt
from tui.text.sanitize import sanitize
from tui.text.units import bytes_iec, counted


@dataclass(frozen=True, slots=True)
class PushOptions:
    """Options that control how a job is submitted and what is printed."""

    assume_yes: bool
    tail: bool = False
    team: str | None = None
    dry_run: bool = False
    skip_checks: bool = False


async def print_or_tail(
    client: TrainingClient,
    output: CommandOutput,
    job: TrainingJob,
    document: Mapping[str, Any],
    cli_options: PushOptions,
) -> ExitCode:
    """Print the job, or follow its log until it ends and return the exit code for its outcome.

    With JSON, ``document`` is printed: when following, on one line, before the log as ndjson.
    """
    if not cli_options.tail:
        print_job(client, output, job, document)
        follow = client.remote.command_line("logs", job.id, "--follow")
        output.print_message(
            f"follow the log: {follow}, or open the dashboard: {client.remote.command_line()}"
        )
        return ExitCode.OK
    is_json = output.format == JSON
    if is_json:
        output.write_text(ascii_json(document) + "\n")
    output.print_message(f"job {job.id}: {client.job_link(job.project_id, job.id)}")
    try:
        return await follow_log(client, job, output.with_format(NDJSON if is_json else TEXT))
    except asyncio.CancelledError:
        stop = client.remote.command_line("stop", job.id, changes=True)
        output.print_message(f"the job keeps running; stop it with: {stop}")
        raise


def finding_text(finding: Finding) -> str:
    """Return ``warning: field: problem – remedy``, on one line."""
    remedy = f" – {finding.remedy}" if finding.remedy else ""
    return f"{finding.severity}: {finding.field}: {finding.problem}{remedy}"


def show_dry_run(
    output: CommandOutput, draft: JobDraft, cli_options: PushOptions, findings: Sequence[Finding]
) -> None:
    """Print what would be sent. Raises CommandFailed if a finding is an error."""
    document = _dry_run_document(draft, findings)
    output.print_result(document, _dry_run_text(output, document, findings))
    output.print_message("dry run: nothing was sent")
    if errors := _errors_text(findings):
        raise CommandFailed(f"{errors} would block this submission", ExitCode.USAGE)


def _dry_run_document(draft: JobDraft, findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the planned submission as data.

    ``training_project`` and ``training_job`` are the exact request bodies, except for the archive's
    location in ``runtime.artifacts``, which the server assigns at upload.
    """
    user_env, plan = describe_environment(draft.source_dir), draft.plan
    return {
        "training_project": project_payload(draft.project),
        "training_job": job_payload(draft.project.job, artifact=None, user_env=user_env),
        "archive": {
            "files": [{"name": name, "size_bytes": size_bytes} for _path, name, size_bytes in plan.files],
            "dropped": [{"name": name, "reason": reason} for name, reason in plan.dropped],
            "size_bytes": plan.size_bytes,
        },
        "findings": [asdict(finding) for finding in findings],
    }


def _dry_run_text(output: CommandOutput, document: Mapping[str, Any], findings: Sequence[Finding]) -> str:
    project, job, archive = document["training_project"], document["training_job"], document["archive"]
    facts = [
        ("project", Cell(project["name"], "strong")),
        ("team", Cell(project.get("team_name", ""))),
        *((name, Cell(text)) for name, text in _leaf_fields(job, "")),
    ]
    dropped_files = [{**dropped, "size_bytes": None} for dropped in archive["dropped"]]
    tones = {"error": "bad", "warning": "caution", "info": "muted"}
    findings_text = "".join(
        f"\n  {output.paint(sanitize(finding_text(finding)), tones[finding.severity])}"
        for finding in findings
    )
    return (
        f"{facts_text(facts, output)}\n"
        f"archive: {counted(len(archive['files']), 'file')}, {bytes_iec(archive['size_bytes'])}\n"
        f"{table_text_if_any(ARCHIVE_COLUMNS, [*archive['files'], *dropped_files], output)}\n"
        f"findings:{findings_text or ' none'}\n"
    )


ARCHIVE_COLUMNS: tuple[Column[Mapping[str, Any]], ...] = (
    text_column(
        "SIZE",
        lambda file: "left out" if file["size_bytes"] is None else bytes_iec(file["size_bytes"]),
        right_aligned=True,
    ),
    text_column("NAME", lambda file: file["name"]),
    text_column("WHY", lambda file: file.get("reason", ""), "muted", shrinks=True),
)


def _leaf_fields(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, nested in value.items():
            if name != "truss_user_env":  # shown only in JSON
                yield from _leaf_fields(nested, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list):
        for index, nested in enumerate(value):
            yield from _leaf_fields(nested, f"{path}[{index}]")
    elif value is not None:
        yield path, str(value)


@dataclass(frozen=True, slots=True)
class JobDraft:
    """A job ready to be submitted: the project with all overrides, its folder and the plan of its archive."""

    project: TrainingProject
    source_dir: Path
    plan: ArchivePlan


tail_option = click.option(
    "-f", "--tail", is_flag=True, help="Follow the log until the job ends; exit with its outcome."
)


def push_options(format_option: Callable[[Command], Command]) -> Callable[[Command], Command]:
    return combined(
        "cli_options",
        PushOptions,
        click.option("--team", metavar="NAME", help="Team of the project."),
        tail_option,
        click.option("--dry-run", is_flag=True, help="Show what would be sent without sending it."),
        click.option("--skip-checks", is_flag=True, help="Skip the preflight checks."),
        yes_option,
        format_option,
    )


@examples(
    "bt-tui push config.py --tail",
    "bt-tui --remote local push config.py --tail     on an emulator on this machine",
    "bt-tui push config.py --accelerator H100:8 --node-count 2 --job-name wider",
    "bt-tui push config.py --dry-run -o json | jq .training_job",
)
@click.command()
@click.argument("config", metavar="[CONFIG]", type=click.Path(path_type=Path), required=False)
@click.option(
    "--config", "config_option", metavar="FILE", type=click.Path(path_type=Path), help="Same as the argument."
)
@click.option("--job-name", metavar="NAME", help="Name of the job.")
@trigger_option("--interactive", "interactive_trigger", help="When to open an interactive session.")
@click.option("--interactive-timeout-minutes", type=int, metavar="N", help="Duration of the session.")
@click.option(
    "--interactive-timeout",
    metavar="DURATION",
    type=Duration(min_s=60.0),
    help="Same as --interactive-timeout-minutes, e.g. 1h30m.",
)
@click.option("--accelerator", metavar="TYPE[:N]", help="GPUs per node, e.g. H100:8.")
@click.option("--node-count", type=int, metavar="N", help="Number of nodes.")
@click.option("--entrypoint", metavar="COMMAND", help="Run this command instead of the start_commands.")
@click.option("--priority", type=int, metavar="N", help="Queue priority; higher goes first.")
@click.option("--spot", "availability", flag_value="spot", help="Use spot capacity, which can be preempted.")
@click.option(
    "--python",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="PATH",
    help="Load the config with this Python interpreter (for its imports).",
)
@push_options(format_option(TABLE, JSON))
@remote_option
@click.pass_obj
def push(
    settings: CommandSettings,
    /,
    config: Path | None,
    config_option: Path | None,
    python: Path | None,
    cli_options: PushOptions,
    interactive_timeout: float | None,
    **overrides: Any,
) -> ExitCode | None:
    """Submit the training job of a config.py together with the folder that contains it.

    The config is executed to load it. The job is checked before anything is sent: errors abort the
    submission; warnings ask for confirmation (without a terminal, warnings are only printed). Options
    override the config.

    JSON has the created training_project and training_job; with --tail on one line, followed by the log as
    ndjson. With --dry-run, JSON is one document with what would be sent, the archive and the findings, and
    the exit code is 2 if there are errors.
    """
    file = config or config_option
    if file is None or (config and config_option):
        raise click.UsageError("which config? Give CONFIG or --config FILE")
    if interactive_timeout is not None:
        overrides["interactive_timeout_minutes"] = int(interactive_timeout // 60)
    draft = _load_draft(file, python, Overrides(**overrides), settings.output)
    return submit_draft(settings, draft, cli_options, lambda _client, _output, result: result.as_dict())


def submit_draft(
    settings: CommandSettings,
    draft: JobDraft,
    cli_options: PushOptions,
    make_document: Callable[[TrainingClient, CommandOutput, Submission], dict[str, Any]],
) -> ExitCode | None:
    """Submit the job, and print it or follow its log; in a dry run, show what would be sent."""
    if cli_options.dry_run:
        return _dry_run(settings, draft, cli_options)

    async def submit_and_print(client: TrainingClient, output: CommandOutput) -> ExitCode:
        submission = await check_and_submit(client, output, draft, cli_options)
        return await print_or_tail(
            client, output, submission.training_job, make_document(client, output, submission), cli_options
        )

    return run_on_remote(settings, submit_and_print)


def _load_draft(config: Path, python: Path | None, overrides: Overrides, output: CommandOutput) -> JobDraft:
    """Load the config in a separate process and plan the archive. Raises ConfigurationError.

    A separate process keeps the output of the config and its children away from the data on stdout.
    """
    loaded = load_training_project(config, python=python or Path(sys.executable))
    project, replacements = apply_overrides(loaded, overrides)
    for text in replacements:
        output.print_message(text)
    source_dir = config.absolute().parent
    return JobDraft(project, source_dir, plan_archive(source_dir, project.job.workspace))


async def check_and_submit(
    client: TrainingClient, output: CommandOutput, draft: JobDraft, cli_options: PushOptions
) -> Submission:
    """Check the job, submit it, and print findings and warnings to stderr.

    Raises CommandFailed for errors found by the checks, click.Abort if the user declines after warnings,
    and any error of ``submit``.
    """
    client.check_may_change("submitting a job")
    findings = await findings_of(client, draft, cli_options)
    for finding in findings:
        output.print_message(finding_text(finding))
    if errors := _errors_text(findings):
        raise CommandFailed(f"not submitted: {errors} (--skip-checks submits anyway)", ExitCode.USAGE)
    if any(finding.severity == "warning" for finding in findings) and can_ask():
        confirm("submit anyway?", assume_yes=cli_options.assume_yes)
    submission = await _submit(client, output, draft)
    archive_warnings = set(draft.plan.warnings)
    for text in submission.warnings:
        if text not in archive_warnings:
            output.print_message(text)
    job = submission.training_job
    output.print_message(f"submitted job {job.id} of project {submission.training_project.name}")
    return submission


def _dry_run(settings: CommandSettings, draft: JobDraft, cli_options: PushOptions) -> ExitCode | None:
    """Show what would be sent; if there is no server, skip the checks of the account."""

    async def with_account(client: TrainingClient, output: CommandOutput) -> None:
        show_dry_run(output, draft, cli_options, await findings_of(client, draft, cli_options))

    try:
        return run_on_remote(settings, with_account)
    except (RemoteNotConfigured, Unreachable) as error:
        reason = "no remote is configured" if isinstance(error, RemoteNotConfigured) else str(error)
        unchecked_account = Finding(
            "warning", "account", f"secrets, GPUs and prices were not checked: {reason}"
        )
        findings = check(draft.project, draft.plan) if not cli_options.skip_checks else ()
        show_dry_run(settings.output, draft, cli_options, (*findings, unchecked_account))
        return None


async def findings_of(
    client: TrainingClient, draft: JobDraft, cli_options: PushOptions
) -> tuple[Finding, ...]:
    project = draft.project
    team_name = cli_options.team or project.team_name or client.remote.team
    choice = await choose_team(client, project_name=project.name, wanted=team_name)
    if choice.name is not None:
        project.team_name = choice.name
    return await preflight(client, project, draft.plan) if not cli_options.skip_checks else ()


def _errors_text(findings: Sequence[Finding]) -> str:
    count = sum(finding.severity == "error" for finding in findings)
    return counted(count, "error") if count else ""


async def _submit(client: TrainingClient, output: CommandOutput, draft: JobDraft) -> Submission:
    def show(progress: SubmissionProgress) -> None:
        line.show(progress.phase, progress.done_bytes, progress.total_bytes, progress.note)
        if progress.note and not line.is_terminal:
            output.print_message(f"{progress.phase}: {progress.note}")

    with report_possible_creation(client, output), ProgressLine() as line:
        return await submit(
            client,
            draft.project,
            source_dir=draft.source_dir,
            team=draft.project.team_name,
            on_progress=show,
            plan=draft.plan,
        )


@contextmanager
def report_possible_creation(client: TrainingClient, output: CommandOutput) -> Iterator[None]:
    """If a request in the block fails but may have created a job, print to stderr how to check that."""
    try:
        yield
    except RequestError as error:
        if doubt := creation_doubt(error, client.remote.command_line("jobs")):
            output.print_message(doubt)
        raise


@examples("bt-tui recreate abc1234 --tail", "bt-tui recreate --yes          the newest job")
@click.command()
@click.argument("job_id", metavar="[JOB_ID]", required=False)
@click.option("--job-id", "job_id_option", metavar="JOB_ID", help="Same as the argument.")
@tail_option
@yes_option
@format_option(TABLE, JSON)
@client_command
async def recreate(
    client: TrainingClient,
    output: CommandOutput,
    job_id: str | None,
    job_id_option: str | None,
    **options: Any,
) -> ExitCode:
    """Start a new job with the code and configuration of an earlier job.

    Without an id, the newest job that you can access is used, after confirmation.
    """
    original_id, cli_options = one_job_id(job_id, job_id_option), PushOptions(**options)
    client.check_may_change("recreating a job")
    original_job = await (newest_job(client) if original_id is None else job_named(client, original_id))
    if original_job is None:
        raise CommandFailed("no job to recreate", ExitCode.NOT_FOUND)
    if original_id is None:
        question = f"recreate {original_job.id} ({original_job.name or 'no name'})?"
        confirm(question, assume_yes=cli_options.assume_yes)
    with report_possible_creation(client, output):
        new_job = await client.jobs.recreate(original_job.project_id, original_job.id)
    output.print_message(f"recreated job {original_job.id} as {new_job.id}")
    document = {"training_job": new_job.model_dump(mode="json")}
    return await print_or_tail(client, output, new_job, document, cli_options)
