"""``bt-tui checkpoints urls`` and ``snippet``: a checkpoint handed on, to a downloader or to the next job."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from api_client.files import write_private
from tui.commands.exit_codes import ExitCode
from tui.commands.failures import CommandFailed
from tui.commands.known_names import no_such
from tui.commands.official_options import job_options, meant_job
from tui.commands.options import Settings, examples, remote_option
from tui.commands.output import Output, cannot_write
from tui.commands.session import run_on_remote

if TYPE_CHECKING:
    from api_client.client import TrainingClient
    from api_client.models import TrainingJob

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
LONGEST_NAME = 120


@click.command(
    "urls",
    short_help="Write the URLs of a job's checkpoint files to a file.",
    epilog=examples("bt-tui checkpoints urls --job-id abc1234"),
)
@job_options
@remote_option
@click.pass_obj
def urls(settings: Settings, job_id: str | None, project: str | None, project_id: str | None) -> ExitCode:
    """Write presigned URLs of all checkpoint files to PROJECT_JOB_checkpoints.json in the working directory.

    Whoever has the file can read the checkpoints until the URLs expire, so only you may read it. An older
    file of that name is replaced: its URLs have expired.
    """

    async def write(client: TrainingClient, output: Output) -> ExitCode:
        job = await meant_job(client, job_id=job_id, project=project, project_id=project_id)
        found = [file async for file in client.checkpoints.files(job.project_id, job.id)]
        if not found:
            raise CommandFailed(f"job {job.id} has no checkpoint files", ExitCode.NOT_FOUND)
        document = {
            "timestamp": datetime.now(UTC).isoformat(),
            "job": job.model_dump(mode="json"),
            "checkpoint_artifacts": [file.model_dump(mode="json") for file in found],
        }
        path = Path.cwd() / _file_name(job)
        try:
            write_private(path, json.dumps(document, indent=2).encode("ascii"))
        except OSError as error:
            raise cannot_write(path, error) from error
        output.remark(f"{len(found):,} URLs written to:")
        output.data(f"{path}\n")
        return ExitCode.OK

    return run_on_remote(settings, write)


def _file_name(job: TrainingJob) -> str:
    """The official name; whatever a server calls its project, it is a name in this folder."""
    project = job.training_project.name if job.training_project else job.project_id
    words = f"{project.replace(' ', '-')}_{job.id}"
    return _UNSAFE.sub("_", words)[:LONGEST_NAME].lstrip(".") + "_checkpoints.json"


@click.command(
    "snippet",
    short_help="Print the lines that resume training from a checkpoint.",
    epilog=examples(
        "bt-tui checkpoints snippet checkpoint-400 --job-id abc1234",
        "bt-tui checkpoints snippet --job-id abc1234",
    ),
)
@click.argument("checkpoint", metavar="[CHECKPOINT]", required=False)
@job_options
@remote_option
@click.pass_obj
def snippet(
    settings: Settings,
    checkpoint: str | None,
    job_id: str | None,
    project: str | None,
    project_id: str | None,
) -> ExitCode:
    """Print a LoadCheckpointConfig for a config.py, of this checkpoint or of the newest one."""

    async def show(client: TrainingClient, output: Output) -> ExitCode:
        from tui.insight.checkpoints.facts import checkpoint_facts
        from tui.insight.checkpoints.resume_snippet import resume_snippet

        job = await meant_job(client, job_id=job_id, project=project, project_id=project_id)
        found = checkpoint_facts(await client.checkpoints.list(job.project_id, job.id))
        named = [one for one in found if (one.is_newest if checkpoint is None else one.name == checkpoint)]
        if not named:
            known = [one.name for one in found]
            what = "no checkpoints" if checkpoint is None else no_such("checkpoint", checkpoint, known)
            raise CommandFailed(f"job {job.id} has {what}", ExitCode.NOT_FOUND)
        if named[0].sync == "uploading":
            output.remark(f"{named[0].name} is still being uploaded")
        output.data(resume_snippet(job.id, named[0].name))
        return ExitCode.OK

    return run_on_remote(settings, show)
