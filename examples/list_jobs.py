"""List projects and running jobs.

python examples/list_jobs.py
"""

import asyncio
import os

from api_client import TrainingClient, resolve_remote
from api_client.models import JobStatus, short_status


async def main() -> None:
    """Print projects, then running jobs."""
    async with TrainingClient(resolve_remote(environ=os.environ)) as client:
        for project in await client.projects.list():
            print(f"{project.id}  {project.name}")
        for job in await client.jobs.search(statuses=[JobStatus.RUNNING]):
            instance = job.instance_type
            gpus = f"{job.node_count or '?'} × {instance.gpu_count} {instance.gpu_type or 'GPUs'}"
            print(f"{job.id}  {short_status(job.current_status)}  {gpus}  {job.name}")


if __name__ == "__main__":
    asyncio.run(main())
