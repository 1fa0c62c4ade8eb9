"""``bt-tui download``: Download the code of a job."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from api_client.client import TrainingClient
from api_client.models import TrainingJob
from api_client.transfers import (
    DestinationExists,
    DownloadPlan,
    DownloadProgress,
    DownloadReport,
    Existing,
    NoArchive,
)
from tui.commands.support.options import examples, format_option, job_argument, job_named
from tui.commands.support.output import JSON, TABLE, CommandFailed, CommandOutput, ExitCode, refuse_if
from tui.commands.support.progress_line import ProgressLine
from tui.commands.support.session import client_command
from tui.text.units import bytes_iec, counted, duration


@examples("bt-tui download abc1234", "bt-tui download --job-id abc1234 --target-directory runs --no-unzip")
@click.command()
@job_argument
@click.option(
    "--target-directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    metavar="DIR",
    help="Directory to write to (default: the current one).",
)
@click.option(
    "--out-dir", type=click.Path(path_type=Path), metavar="DIR", help="Unpack the code as this new folder."
)
@click.option(
    "--out-file", type=click.Path(path_type=Path), metavar="FILE", help="Save the archive as this file."
)
@click.option("--no-unzip", is_flag=True, help="Keep the archive packed (.tgz).")
@format_option(TABLE, JSON)
@client_command
async def download(
    client: TrainingClient,
    output: CommandOutput,
    job_id: str,
    target_directory: Path,
    out_dir: Path | None,
    out_file: Path | None,
    no_unzip: bool,
) -> None:
    """Download the code that a job was submitted with, into the folder PROJECT_JOB of DIR.

    An existing folder or archive is not changed. The path of the result is printed to stdout.
    """
    refuse_if(out_dir and out_file, "give either --out-dir or --out-file")
    target = out_dir or out_file
    job = await job_named(client, job_id)
    folder, name = (target.parent, target.name) if target else (target_directory, None)
    report = await download_code(client, output, job, folder, name, unpack=not (no_unzip or out_file))
    path = report.unpacked_to or report.files[0].path
    document = {
        "path": str(path),
        "job_id": job.id,
        "is_unpacked": report.unpacked_to is not None,
        "archive_bytes": report.files[0].done_bytes,
    }
    output.print_result(document, f"{path}\n")


async def download_code(
    client: TrainingClient,
    output: CommandOutput,
    job: TrainingJob,
    folder: Path,
    name: str | None,
    *,
    unpack: bool = True,
) -> DownloadReport:
    """Download a job's code into ``folder`` as ``name`` (default: PROJECT_JOB). Raises CommandFailed."""
    try:
        plan = await client.downloads.plan_archive(
            job.project_id,
            job.id,
            folder,
            project_name=job.training_project.name if job.training_project else "",
            unpack=unpack,
            file_name=name,
        )
        report = await run_plan(client, output, plan, Existing.SKIP)
    except DestinationExists as error:
        raise CommandFailed(str(error), ExitCode.USAGE) from error
    except NoArchive as error:
        raise CommandFailed(str(error), ExitCode.NOT_FOUND) from error
    if report.failed:
        raise CommandFailed(report.failed[0].error, failure_code(report))
    return report


async def run_plan(
    client: TrainingClient, output: CommandOutput, plan: DownloadPlan, existing: Existing
) -> DownloadReport:
    """Run the plan and show its progress. Raises the same errors as ``client.downloads.run``."""
    notes: list[str] = []

    def show(progress: DownloadProgress) -> None:
        count = len(progress.files)
        label = "downloading" if count == 1 else f"{progress.files_done}/{counted(count, 'file')}"
        line.show(label, progress.done_bytes, progress.total_bytes, progress_note(progress))
        if not line.is_terminal and progress.note and progress.note not in notes[-1:]:
            notes.append(progress.note)
            if len(notes) <= 10:  # an unstable connection causes hundreds of notes
                output.print_message(progress.note)

    try:
        with ProgressLine() as line:
            return await client.downloads.run(plan, on_progress=show, existing=existing)
    except asyncio.CancelledError:
        output.print_message("run the same command again to resume")
        raise


def progress_note(progress: DownloadProgress) -> str:
    """Return a note such as ``157 MiB/s  12 s left``; during a stall, how long it has lasted."""
    if progress.stalled_s:
        return f"stalled for {duration(progress.stalled_s)}"
    if not progress.speed_bytes_per_s:
        return progress.note
    time_left = "" if not progress.eta_s else f"  {duration(progress.eta_s)} left"
    return f"{bytes_iec(progress.speed_bytes_per_s)}/s{time_left}"


def failure_code(report: DownloadReport) -> ExitCode:
    if report.failed and all(file.is_retryable for file in report.failed):
        return ExitCode.UNREACHABLE
    return ExitCode.UNEXPECTED
