"""``bt-tui checkpoints download``, ``urls`` and ``snippet``: get a checkpoint, or pass it to the next job."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from api_client.client import TrainingClient
from api_client.files import write_private
from api_client.models import TrainingJob
from api_client.transfers import DownloadPlan, DownloadReport, Existing, FileProgress
from api_client.transfers.file_names import safe_component
from api_client.words import listed
from tui.analysis.checkpoints.facts import checkpoint_facts, resume_snippet
from tui.commands.jobs.download import failure_code, run_plan
from tui.commands.support.options import (
    JobChoice,
    examples,
    format_option,
    job_argument_and_options,
    job_named,
    job_options,
)
from tui.commands.support.output import (
    JSON,
    TABLE,
    CommandFailed,
    CommandOutput,
    ExitCode,
    cannot_write_error,
    not_in_job_error,
)
from tui.commands.support.session import client_command
from tui.commands.support.tables import table_text_if_any
from tui.commands.support.terminal import can_ask, interruptible_prompt
from tui.tables.column import Column, text_column
from tui.text.sanitize import sanitize
from tui.text.units import bytes_iec, counted


@examples("bt-tui checkpoints urls abc1234")
@click.command("urls", short_help="Write the URLs of a job's checkpoint files to a file.")
@job_argument_and_options
@client_command
async def urls(client: TrainingClient, output: CommandOutput, choice: JobChoice) -> None:
    """Write presigned URLs of all checkpoint files to PROJECT_JOB_checkpoints.json in the working directory.

    Anyone with the URLs can read the checkpoints until the URLs expire, on Baseten after seven days, so only
    you can read the file. An existing file of that name is replaced.
    """
    job = await choice.find(client)
    files = [file async for file in client.checkpoints.files(job.project_id, job.id)]
    if not files:
        raise CommandFailed(f"job {job.id} has no checkpoint files", ExitCode.NOT_FOUND)
    document = {
        "timestamp": datetime.now(UTC).isoformat(),
        "job": job.model_dump(mode="json"),
        "checkpoint_artifacts": [file.model_dump(mode="json") for file in files],
    }
    path = Path.cwd() / _file_name(job)
    try:
        write_private(path, json.dumps(document, indent=2).encode("ascii"))
    except OSError as error:
        raise cannot_write_error(path, error) from error
    output.print_message(f"wrote {counted(len(files), 'URL')} to:")
    output.write_text(f"{path}\n")


def _file_name(job: TrainingJob) -> str:
    """Return the official file name, sanitized so that no project name leads out of this folder."""
    project = job.training_project.name if job.training_project else job.project_id
    return safe_component(f"{project.replace(' ', '-')}_{job.id}_checkpoints.json".lstrip("."))


@examples(
    "bt-tui checkpoints snippet checkpoint-400 --job-id abc1234",
    "bt-tui checkpoints snippet --job-id abc1234",
)
@click.command("snippet", short_help="Print the config that resumes training from a checkpoint.")
@click.argument("checkpoint", metavar="[CHECKPOINT]", required=False)
@job_options
@client_command
async def snippet(
    client: TrainingClient,
    output: CommandOutput,
    checkpoint: str | None,
    choice: JobChoice,
) -> None:
    """Print a LoadCheckpointConfig for a config.py that loads this checkpoint (default: the newest)."""
    job = await choice.find(client)
    facts = checkpoint_facts(await client.checkpoints.list(job.project_id, job.id))
    matches = [fact for fact in facts if (fact.is_newest if checkpoint is None else fact.name == checkpoint)]
    if checkpoint is not None and not matches:
        raise not_in_job_error(job.id, "checkpoint", checkpoint, [fact.name for fact in facts])
    if not matches:
        raise CommandFailed(f"job {job.id} has no checkpoints", ExitCode.NOT_FOUND)
    if matches[0].sync == "uploading":
        output.print_message(f"{matches[0].name} is still uploading")
    output.write_text(resume_snippet(job.id, matches[0].name))


EXISTING_CHOICES = ("ask", "skip", "overwrite", "rename")
TONE_OF_STATE = {"done": "good", "skipped": "muted", "failed": "bad"}


@examples(
    "bt-tui checkpoints download --job-id abc1234",
    "bt-tui checkpoints download checkpoint-400 --job-id abc1234 --to weights",
    "bt-tui checkpoints download --job-id abc1234 --file '*.json' --existing skip",
)
@click.command("download", short_help="Download checkpoints.")
@click.argument("checkpoints", metavar="[CHECKPOINT]...", nargs=-1)
@click.option(
    "--job-id", "job_id", metavar="JOB_ID", required=True, help="The job that wrote the checkpoints."
)
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Destination folder (default: a folder named after the job id).",
)
@click.option(
    "--file",
    "patterns",
    multiple=True,
    metavar="GLOB",
    help="Only files that match, e.g. '*.json'; repeatable.",
)
@click.option(
    "--existing",
    type=click.Choice(EXISTING_CHOICES),
    default="ask",
    show_default=True,
    help="What to do with existing files that differ.",
)
@format_option(TABLE, JSON)
@client_command
async def download_checkpoints(
    client: TrainingClient,
    output: CommandOutput,
    checkpoints: tuple[str, ...],
    job_id: str,
    folder: Path | None,
    patterns: tuple[str, ...],
    existing: str,
) -> ExitCode:
    """Download a job's checkpoints, or some of their files.

    Downloads all checkpoints unless you name some. Files go to DIR/CHECKPOINT/…, or to
    DIR/rank-N/CHECKPOINT/… if several nodes wrote files. Files that already exist with the same size and
    time are skipped. To resume an interrupted download, run the same command again.
    """
    job = await job_named(client, job_id)
    plan = await client.downloads.plan_checkpoints(
        job.project_id,
        job.id,
        folder if folder is not None else Path(safe_component(job.id)),
        checkpoints=checkpoints or None,
        files=patterns or None,
    )
    if plan.absent:
        available = await client.checkpoints.list(job.project_id, job.id)
        ids = [checkpoint.checkpoint_id for checkpoint in available]
        raise not_in_job_error(job.id, "checkpoint", plan.absent[0], ids)
    if (patterns or checkpoints) and not plan.files and not plan.refused:
        raise CommandFailed("no file matches", ExitCode.NOT_FOUND)
    for refusal in plan.refused:
        output.print_message(f"not downloaded: {refusal.name}: {refusal.reason}")
    if not plan.files and not plan.refused:
        output.print_message("the job has no checkpoint files")
    report = await run_plan(client, output, plan, _existing_policy(existing, plan))
    output.print_result(_download_document(plan, report), table_text_if_any(COLUMNS, report.files, output))
    if output.format == TABLE:
        _print_result(report, output)
    return ExitCode.OK if report.is_complete else failure_code(report)


def _existing_policy(existing: str, plan: DownloadPlan) -> Existing:
    """Return how to handle existing files that differ from the planned ones; ask on a terminal.

    Raises CommandFailed if there is no terminal to ask on, and click.Abort if the user cancels.
    """
    if existing != "ask" or not plan.conflicts:
        return Existing.SKIP if existing == "ask" else Existing(existing)
    conflict_names = listed([str(file.path.relative_to(plan.folder)) for file in plan.conflicts], 5)
    if not can_ask():
        raise CommandFailed(
            f"other files already exist: {conflict_names} (give --existing skip, overwrite or rename)",
            ExitCode.USAGE,
        )
    click.echo(sanitize(f"Other files already exist: {conflict_names}"), err=True)
    with interruptible_prompt():
        answer = click.prompt(
            "Skip them, overwrite them, or rename the new ones",
            type=click.Choice(EXISTING_CHOICES[1:]),
            default="skip",
            err=True,
        )
    return Existing(answer)


def _print_result(report: DownloadReport, output: CommandOutput) -> None:
    speed = report.fetched_bytes / report.elapsed_s if report.elapsed_s else 0
    output.print_message(
        f"{bytes_iec(report.fetched_bytes)} downloaded to {report.folder}"
        + (f" at {bytes_iec(speed)}/s" if report.fetched_bytes else "")
    )
    if report.failed:
        failed = f"{len(report.failed):,} of {counted(len(report.files), 'file')} failed"
        output.print_message(f"{failed}; run the same command again to resume")


def _path_text(file: FileProgress) -> str:
    note = file.error or file.note
    return str(file.path) + (f"  ({note})" if note else "")


COLUMNS: tuple[Column[FileProgress], ...] = (
    Column("STATE", "STATE", lambda file: [(file.state, TONE_OF_STATE.get(file.state, "plain"))]),
    text_column(
        "SIZE",
        lambda file: "?" if file.size_bytes is None else bytes_iec(file.size_bytes),
        right_aligned=True,
    ),
    text_column("PATH", _path_text),
)


def _download_document(plan: DownloadPlan, report: DownloadReport) -> dict[str, Any]:
    return {
        "job_id": plan.job_id,
        "folder": str(report.folder),
        "fetched_bytes": report.fetched_bytes,
        "files": [
            {
                "relative_file_name": planned.name,
                "node_rank": planned.node_rank,
                "path": str(file.path),
                "size_bytes": file.size_bytes,
                "state": str(file.state),
                "verified_by": file.verified_by or None,
                "error": file.error or None,
                "note": file.note or None,
            }
            for planned, file in zip(plan.files, report.files, strict=True)
        ],
        "refused": [
            {"relative_file_name": refusal.name, "node_rank": refusal.node_rank, "reason": refusal.reason}
            for refusal in plan.refused
        ],
    }
