"""Follow a job's log until the job has ended; print every line once.

python examples/follow_log.py JOB_ID
"""

import asyncio
import os
import sys
from datetime import UTC, datetime

from api_client import LogEnd, LogGap, TrainingClient, resolve_remote
from api_client.models import JobStatus


async def main(job_id: str) -> int:
    """Return exit code 0 if the job completed."""
    async with TrainingClient(resolve_remote(environ=os.environ)) as client:
        job = await client.jobs.find(job_id)
        async for item in client.logs.follow(job.project_id, job.id):
            if isinstance(item, LogEnd):
                job = item.job
                continue
            for entry in item.entries:
                if isinstance(entry, LogGap):
                    # Lines are, or may be, missing here.
                    print(f"--- {entry.reason} ---", file=sys.stderr)
                    continue
                when = datetime.fromtimestamp(entry.timestamp_ns / 1e9, UTC)
                # A message is whatever the job printed, including escape sequences; hence the repr.
                print(f"{when:%H:%M:%S} {entry.replica} {entry.message!r}")
    return 0 if job.current_status == JobStatus.COMPLETED else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1])))
