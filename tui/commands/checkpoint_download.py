"""``bt-tui checkpoints download``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tui.commands.confirmation import can_ask
from tui.commands.download_progress import failure_code, run_plan
from tui.commands.exit_codes import ExitCode
from tui.commands.failures import CommandFailed
from tui.commands.known_names import no_such
from tui.commands.options import JSON, TABLE, Settings, examples, format_option, remote_option
from tui.commands.output import Output
from tui.commands.session import run_on_remote
from tui.insight.text import inert
from tui.insight.units import bytes_iec

if TYPE_CHECKING:
    from api_client.client import TrainingClient
    from api_client.downloads import DownloadPlan, DownloadReport, Existing

CHOICES = ("ask", "skip", "overwrite", "rename")
NAMES_SHOWN = 5
TONES = {"done": "good", "skipped": "muted", "failed": "bad"}


@click.command(
    "download",
    short_help="Download checkpoints.",
    epilog=examples(
        "bt-tui checkpoints download --job-id abc1234",
        "bt-tui checkpoints download checkpoint-400 --job-id abc1234 --to weights",
        "bt-tui checkpoints download --job-id abc1234 --file '*.json' --existing skip",
    ),
)
@click.argument("checkpoints", metavar="[CHECKPOINT]...", nargs=-1)
@click.option("--job-id", "job_id", metavar="JOB_ID", required=True, help="The job that wrote them.")
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where to put them (default: a folder with the job's id).",
)
@click.option(
    "--file",
    "patterns",
    multiple=True,
    metavar="GLOB",
    help="Only files of such a name, as '*.json'; repeatable.",
)
@click.option(
    "--existing",
    type=click.Choice(CHOICES),
    default="ask",
    show_default=True,
    help="What to do with other files that are in the way.",
)
@format_option(TABLE, JSON)
@remote_option
@click.pass_obj
def download_checkpoints(
    settings: Settings,
    checkpoints: tuple[str, ...],
    job_id: str,
    folder: Path | None,
    patterns: tuple[str, ...],
    existing: str,
    output_format: str,
) -> ExitCode:
    """Download a job's checkpoints, or some of their files: all of them unless told which.

    They land in DIR/CHECKPOINT/…, or DIR/rank-N/CHECKPOINT/… where several nodes wrote files. Files that
    are there already with the same size and time are left out; a download that was cut goes on where it
    stopped when the same command is given again.
    """

    async def fetch(client: TrainingClient, output: Output) -> ExitCode:
        from api_client.downloads import DownloadError
        from api_client.downloads.names import safe_component

        job = await client.jobs.find(job_id)
        plan = await client.downloads.plan_checkpoints(
            job.project_id,
            job.id,
            folder if folder is not None else Path(safe_component(job.id)),
            checkpoints=checkpoints or None,
            files=patterns or None,
        )
        if plan.absent:
            listed = await client.checkpoints.list(job.project_id, job.id)
            known = [one.checkpoint_id for one in listed]
            raise CommandFailed(
                f"job {job.id} has {no_such('checkpoint', plan.absent[0], known)}", ExitCode.NOT_FOUND
            )
        if (patterns or checkpoints) and not plan.files and not plan.refused:
            raise CommandFailed("no file has such a name", ExitCode.NOT_FOUND)
        for refused in plan.refused:
            output.remark(f"not downloaded: {refused.name}: {refused.reason}")
        if not plan.files and not plan.refused:
            output.remark("the job has no files of checkpoints")
        try:
            report = await run_plan(client, output, plan, _settled(existing, plan))
        except DownloadError as error:
            raise CommandFailed(str(error), ExitCode.UNEXPECTED) from error
        _print(output, plan, report, output_format)
        return ExitCode.OK if report.is_complete else failure_code(report)

    return run_on_remote(settings, fetch)


def _settled(existing: str, plan: DownloadPlan) -> Existing:
    """What to do with files in the way; asks where somebody can answer.

    Raises CommandFailed where nobody can, and click.Abort for a way out.
    """
    from api_client.downloads import Existing

    if existing != "ask" or not plan.conflicts:
        return Existing.SKIP if existing == "ask" else Existing(existing)
    names = ", ".join(str(file.path.relative_to(plan.folder)) for file in plan.conflicts[:NAMES_SHOWN])
    more = len(plan.conflicts) - NAMES_SHOWN
    shown = names + (f" and {more} more" if more > 0 else "")
    if not can_ask():
        raise CommandFailed(
            f"other files are there already: {shown} (say --existing skip, overwrite or rename)",
            ExitCode.USAGE,
        )
    click.echo(inert(f"Other files are there already: {shown}"), err=True)
    answer = click.prompt(
        "Skip them, overwrite them, or rename the new ones",
        type=click.Choice(CHOICES[1:]),
        default="skip",
        err=True,
    )
    return Existing(answer)


def _print(output: Output, plan: DownloadPlan, report: DownloadReport, output_format: str) -> None:
    if output_format == JSON:
        output.json(document(plan, report))
        return
    from tui.commands.tables import Cell, Column, render_table

    rows = []
    for file in report.files:
        about = file.error or file.note
        rows.append(
            [
                Cell(file.state, TONES.get(file.state)),
                Cell(bytes_iec(file.size_bytes) if file.size_bytes is not None else "?"),
                Cell(str(file.path) + (f"  ({about})" if about else "")),
            ]
        )
    columns = [Column("STATE"), Column("SIZE", right=True), Column("PATH")]
    # Never clipped: paths are there to be used.
    output.data(render_table(columns, rows, width_cells=None, paint=output.paint))
    speed = report.fetched_bytes / report.elapsed_s if report.elapsed_s else 0
    output.remark(
        f"{bytes_iec(report.fetched_bytes)} fetched into {report.folder}"
        + (f" at {bytes_iec(speed)}/s" if report.fetched_bytes else "")
    )
    if report.failed:
        output.remark(
            f"{len(report.failed)} of {len(report.files)} files did not arrive; the same command goes on"
        )


def document(plan: DownloadPlan, report: DownloadReport) -> dict[str, Any]:
    """What came of it, for ``-o json``."""
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
            {"relative_file_name": each.name, "node_rank": each.node_rank, "reason": each.reason}
            for each in plan.refused
        ],
    }
