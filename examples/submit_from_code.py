"""Submit a job built in code, and wait until it ends.

Run it: ``python examples/submit_from_code.py FOLDER``

The folder is archived and becomes the job's working directory.
"""

import asyncio
import os
import sys
from pathlib import Path

from api_client import SubmissionProgress, TrainingClient, resolve_remote
from api_client.definitions import Compute, Image, Runtime, TrainingJob, TrainingProject, Workspace
from api_client.models import JobStatus

PROJECT = TrainingProject(
    name="from-code",
    job=TrainingJob(
        name="hello",
        image=Image(base_image="python:3.12-slim"),
        compute=Compute(node_count=1, cpu_count=1, memory="2Gi"),
        runtime=Runtime(start_commands=["echo node $BT_NODE_RANK of $BT_GROUP_SIZE", "ls"]),
        workspace=Workspace(exclude_dirs=["data"]),
    ),
)


def report_progress(progress: SubmissionProgress) -> None:
    """Print the progress; called for every phase and every uploaded part."""
    print(f"{progress.phase} {progress.done_bytes:,}/{progress.total_bytes:,} bytes", file=sys.stderr)


async def main(folder: Path) -> int:
    """Return exit code 0 if the job completed."""
    async with TrainingClient(resolve_remote(environ=os.environ)) as client:
        submission = await client.push(PROJECT, source_dir=folder, on_progress=report_progress)
        for warning in submission.warnings:
            print(warning, file=sys.stderr)
        print(submission.training_job.id)
        status = submission.training_job.current_status
        updates = client.jobs.watch(
            submission.training_project.id, submission.training_job.id, interval_s=1.0
        )
        async for job in updates:  # the last update is the ended job
            status = job.current_status
            print(status, file=sys.stderr)
    return 0 if status == JobStatus.COMPLETED else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]))))
