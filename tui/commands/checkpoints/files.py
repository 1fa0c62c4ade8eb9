"""``bt-tui checkpoints files``: list the files of one checkpoint, or of all checkpoints of a job."""

from __future__ import annotations

import click

from api_client.client import TrainingClient
from api_client.models import CheckpointFile, TrainingJob
from tui.analysis.export import csv_lines
from tui.commands.support.exit_codes import not_in_job
from tui.commands.support.lookups import JobChoice
from tui.commands.support.options import CSV, TABLE, examples, job_options, listing_format_option
from tui.commands.support.output import Output
from tui.commands.support.session import client_command
from tui.commands.support.tables import rows_of
from tui.tables.column import Column, text_column
from tui.text.times import local_stamp
from tui.text.units import bytes_iec, counted


@examples(
    "bt-tui checkpoints files checkpoint-400 --job-id abc1234",
    "bt-tui checkpoints files --job-id abc1234 -o json | jq '.total_size_bytes'",
)
@click.command("files", short_help="List the files of a checkpoint.")
@click.argument("checkpoint", metavar="[CHECKPOINT]", required=False)
@job_options
@click.option("--urls", is_flag=True, help="Include download URLs in JSON and CSV; anyone can use them.")
@listing_format_option
@client_command
async def files(
    client: TrainingClient,
    output: Output,
    checkpoint: str | None,
    choice: JobChoice,
    urls: bool,
    output_format: str,
) -> None:
    """List the files of a checkpoint from all nodes, or of all checkpoints of the job if none is named.

    Download URLs are included only with --urls; "bt-tui checkpoints urls" writes them to a file. On Baseten
    they expire after seven days.
    """
    await print_files(client, output, choice, checkpoint, output_format, with_urls=urls)


async def print_files(
    client: TrainingClient,
    output: Output,
    choice: JobChoice,
    checkpoint: str | None,
    output_format: str,
    *,
    with_urls: bool = False,
) -> None:
    job = await choice.find(client)
    files = await checkpoint_files(client, job, checkpoint)
    total_bytes = sum(max(0, file.size_bytes) for file in files)
    shown = [name for name in TITLES if with_urls or name != "url"]
    if output_format == CSV:
        rows = ([getattr(file, name) for name in shown] for file in files)
        output.data(csv_lines([[TITLES[name] for name in shown], *rows]))
        return
    document = {
        "job_id": job.id,
        "checkpoint_id": checkpoint,
        "total_files": len(files),
        "total_size_bytes": total_bytes,
        "files": [file.model_dump(mode="json", include=set(shown)) for file in files],
    }
    output.answer(output_format, document, rows_of(COLUMNS, files, output))
    if output_format == TABLE:
        output.remark(f"{counted(len(files), 'file')}, {bytes_iec(total_bytes)}")


async def checkpoint_files(
    client: TrainingClient, job: TrainingJob, checkpoint: str | None
) -> list[CheckpointFile]:
    """Return the files of `checkpoint` (None: of all). Raises CommandFailed if the job does not have it."""
    if checkpoint is None:
        return [file async for file in client.checkpoints.files(job.project_id, job.id)]
    files = await client.checkpoints.files_of(job.project_id, job.id, checkpoint)
    if not files:
        names = [item.checkpoint_id for item in await client.checkpoints.list(job.project_id, job.id)]
        if checkpoint not in names:
            raise not_in_job(job.id, "checkpoint", checkpoint, names)
    return files


TITLES = {
    "relative_file_name": "File",
    "node_rank": "Node rank",
    "size_bytes": "Size (bytes)",
    "last_modified": "Modified",
    "url": "URL",
}
"""The titles in CSV of the fields of a file; its URL comes last, and only on request."""

COLUMNS: tuple[Column[CheckpointFile], ...] = (
    text_column("SIZE", lambda file: bytes_iec(file.size_bytes), right=True),
    text_column("MODIFIED", lambda file: local_stamp(file.last_modified), "muted"),
    text_column("RANK", lambda file: str(file.node_rank), right=True),
    text_column("FILE", lambda file: file.relative_file_name),
)
