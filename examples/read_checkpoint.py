"""Inspect a job's newest checkpoint without downloading it.

python examples/read_checkpoint.py JOB_ID
"""

import asyncio
import os
import sys
from datetime import UTC, datetime

from api_client import TrainingClient, resolve_remote

LONG_AGO = datetime.min.replace(tzinfo=UTC)


async def main(job_id: str) -> None:
    """Print the types and sizes of its tensors."""
    async with TrainingClient(resolve_remote(environ=os.environ)) as client:
        job = await client.jobs.find(job_id)
        checkpoints = await client.checkpoints.list(job.project_id, job.id)
        if not checkpoints:
            print("no checkpoints yet")
            return
        newest = max(checkpoints, key=lambda checkpoint: checkpoint.created_at or LONG_AGO)
        files = await client.checkpoints.files_of(job.project_id, job.id, newest.checkpoint_id)
        listed_bytes = sum(file.size_bytes for file in files)
        print(f"{newest.checkpoint_id}: {len(files)} files, {listed_bytes:,} bytes")
        # At most two range requests per safetensors file; expired URLs are renewed.
        weights = await client.checkpoint_contents.weights(job.project_id, job.id, files)
    for dtype, count in weights.parameters_by_dtype.items():
        print(f"{dtype}  {count:,} parameters")
    print(f"read {weights.bytes_read:,} bytes for this")
    for problem in weights.problems:
        print(f"problem: {problem!r}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
