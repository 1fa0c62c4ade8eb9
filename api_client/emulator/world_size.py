"""How large the demo world is made: for trying out, and measuring, what a large account is like."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class WorldSize:
    """What is added to the demo world; 0 adds nothing. Served without, only the projects are still there.

    ``jobs``: so many further jobs, most of them ended, spread over the projects. ``projects``: so many
    further ones. ``cache_files``: files in the cache of the project pretraining. ``many_nodes``: a live job
    of so many nodes of eight GPUs. ``log_lines_per_s``: a live job that logs as fast. ``checkpoints``: a
    job that has saved as many.
    """

    jobs: int = 0
    projects: int = 0
    cache_files: int = 0
    many_nodes: int = 0
    log_lines_per_s: int = 0
    checkpoints: int = 0

    def arguments(self) -> list[str]:
        """The size as a command's options, those left out that are 0."""
        found: list[str] = []
        for name in SIZE_NAMES:
            if getattr(self, name):
                found += [option_of(name), str(getattr(self, name))]
        return found


SIZE_NAMES = tuple(field.name for field in fields(WorldSize))


def option_of(name: str) -> str:
    """The option of a command that gives that field: ``--cache-files``."""
    return "--" + name.replace("_", "-")
