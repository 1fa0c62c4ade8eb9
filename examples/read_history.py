"""Count a job's latest log lines by node, and retry gaps.

python examples/read_history.py JOB_ID MINUTES
"""

import asyncio
import os
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta

from api_client import LogEntry, LogGap, LogLine, TrainingClient, resolve_remote


async def main(job_id: str, minutes: float) -> None:
    """Print one count per node."""
    async with TrainingClient(resolve_remote(environ=os.environ)) as client:
        job = await client.jobs.find(job_id)
        end = job.updated_at if job.is_finished and job.updated_at else datetime.now(UTC)
        entries: list[LogEntry] = []
        # Newest first, so that the end of the log arrives before the rest.
        async for batch in client.logs.history(
            job.project_id, job.id, start=end - timedelta(minutes=minutes), end=end, newest_first=True
        ):
            entries += batch.entries
        for gap in [entry for entry in entries if isinstance(entry, LogGap)]:
            # Returns the missing lines, and a new gap for lines that still cannot be read.
            entries += await client.logs.fill(job.project_id, job.id, gap)
    lines = Counter(entry.replica for entry in entries if isinstance(entry, LogLine))
    for node, count in sorted(lines.items(), key=str):
        print(f"{node}  {count:,} lines")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))
