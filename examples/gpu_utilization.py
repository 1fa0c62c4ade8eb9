"""Print the mean GPU utilization of each node over a job's latest samples.

python examples/gpu_utilization.py JOB_ID
"""

import asyncio
import os
import sys
from statistics import fmean

from api_client import TrainingClient, resolve_remote

SAMPLES = 10
STEP_S = 60


async def main(job_id: str) -> None:
    """Print one line per node."""
    async with TrainingClient(resolve_remote(environ=os.environ)) as client:
        job = await client.jobs.find(job_id)
        metrics = await client.metrics.get(job.project_id, job.id, step_s=STEP_S)
    for node in metrics.per_node_metrics:
        values = []
        for samples in node.metrics.gpu_utilization.values():  # one series per GPU, keyed by rank
            # Samples may be unordered or repeated, and a value may be missing, which is not zero.
            latest = sorted(samples, key=lambda sample: sample.timestamp)[-SAMPLES:]
            values += [sample.value for sample in latest if sample.value is not None]
        print(f"{node.node_id}  {fmean(values):.0%}" if values else f"{node.node_id}  no samples")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
