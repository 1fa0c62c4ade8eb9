"""List the top-level folders of a project's cache, largest first.

python examples/cache_by_folder.py PROJECT_NAME
"""

import asyncio
import os
import sys
from collections import Counter

from api_client import TrainingClient, resolve_remote


async def main(project_name: str) -> int:
    """Print the folders and return the exit code."""
    async with TrainingClient(resolve_remote(environ=os.environ)) as client:
        projects = {project.name: project for project in await client.projects.list()}
        if project_name not in projects:
            print(f"no project {project_name!r}", file=sys.stderr)
            return 1
        # ``summary`` returns models that keep unknown fields; ``listing`` suits very large caches.
        listing = await client.cache.listing(projects[project_name].id)
    sizes: Counter[str] = Counter()
    for file in listing.file_summaries if listing is not None else []:
        sizes[file.path.strip("/").partition("/")[0]] += file.size_bytes
    for folder, size_bytes in sizes.most_common():
        print(f"{size_bytes:>18,}  {folder!r}")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1])))
