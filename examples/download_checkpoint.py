"""Download the JSON files of a job's checkpoints. Run it again to resume.

python examples/download_checkpoint.py JOB_ID FOLDER
"""

import asyncio
import os
import sys
from pathlib import Path

from api_client import TrainingClient, resolve_remote
from api_client.transfers import DownloadProgress, Existing


def report_progress(progress: DownloadProgress) -> None:
    """Print the progress; called a few times a second."""
    print(f"{progress.done_bytes:,} of {progress.total_bytes:,} bytes {progress.note}", file=sys.stderr)


async def main(job_id: str, folder: Path) -> int:
    """Return exit code 0 if everything was downloaded."""
    async with TrainingClient(resolve_remote(environ=os.environ)) as client:
        job = await client.jobs.find(job_id)
        # Planning writes nothing: it lists the files that would be written, and the space that they need.
        plan = await client.downloads.plan_checkpoints(job.project_id, job.id, folder, files=["*.json"])
        for refused in plan.refused:
            print(f"skipped: {refused.name!r} ({refused.reason})", file=sys.stderr)
        if not plan.has_room:
            print(f"not enough disk space for {plan.needed_bytes:,} bytes", file=sys.stderr)
            return 1
        report = await client.downloads.run(plan, on_progress=report_progress, existing=Existing.SKIP)
    for file in report.files:
        print(f"{file.state}  {file.path}  {file.error or file.verified_by}")
    return 0 if report.is_complete else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1], Path(sys.argv[2]))))
