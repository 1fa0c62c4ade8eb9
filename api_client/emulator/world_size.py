"""Size of the demo world, for trying out and benchmarking a large account."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class WorldSize:
    """Additions to the demo world; 0 adds nothing.

    ``jobs`` is the number of extra jobs, most of them ended, spread over the projects. ``projects`` is
    the number of extra projects. ``cache_files`` is the number of files in the cache of the project
    pretraining. ``many_nodes`` adds a live job with that many nodes of eight GPUs, ``log_lines_per_s`` a
    live job that logs at that rate, ``checkpoints`` a job that has saved that many. If a world is served
    again without its additions, only the extra projects remain.
    """

    jobs: int = 0
    projects: int = 0
    cache_files: int = 0
    many_nodes: int = 0
    log_lines_per_s: int = 0
    checkpoints: int = 0

    def arguments(self) -> list[str]:
        """Return the size as command-line options, without those that are 0."""
        found: list[str] = []
        for name in SIZE_NAMES:
            if getattr(self, name):
                found += [option_of(name), str(getattr(self, name))]
        return found


SIZE_NAMES = tuple(field.name for field in fields(WorldSize))


def option_of(name: str) -> str:
    """Return the command-line option for a field, such as ``--cache-files``."""
    return "--" + name.replace("_", "-")
