"""The starter projects that ship with us, and how they get into somebody's folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from api_client.files import USUAL_FILE_MODE, write_file
from tui.commands.exit_codes import ExitCode
from tui.commands.failures import CommandFailed
from tui.commands.output import cannot_write

SCRIPT_SUFFIX = ".sh"
SCRIPT_MODE = 0o777
COMPILED = "__pycache__"


@dataclass(frozen=True, slots=True)
class StarterProject:
    """A template: ``machine`` is what a job of it runs on."""

    name: str
    machine: str
    summary: str


STARTER_PROJECTS = (
    StarterProject(
        "cpu-quickstart",
        "CPU",
        "a tiny network in plain Python, with loss, cache and checkpoints; runs anywhere in seconds",
    ),
    StarterProject(
        "multinode-torchrun",
        "2 × H100:8",
        "data-parallel PyTorch over two nodes with torchrun, resuming from loaded checkpoints",
    ),
    StarterProject(
        "lora-finetune",
        "H100:1",
        "LoRA fine-tuning of a Hugging Face model, with cached downloads and deployable adapters",
    ),
)


def starter_project(name: str) -> StarterProject:
    """The template of that name; raises CommandFailed naming those there are."""
    for project in STARTER_PROJECTS:
        if project.name == name:
            return project
    known = ", ".join(project.name for project in STARTER_PROJECTS)
    raise CommandFailed(f"there is no example {name!r}; there are: {known}", ExitCode.USAGE)


def write_starter_projects(wanted: dict[Path, StarterProject], *, force: bool) -> list[Path]:
    """Write each template into its folder, made where missing; returns the files in order.

    Nothing is overwritten without ``force``, and nothing is written at all if something is in the way.
    Raises CommandFailed.
    """
    contents = {
        folder / name: source
        for folder, project in wanted.items()
        for name, source in _files(files("tui") / "templates" / project.name, "")
    }
    if not force:
        in_the_way = [str(path) for path in contents if path.exists() or path.is_symlink()]
        if in_the_way:
            raise CommandFailed(
                f"not overwritten: {', '.join(in_the_way)} (--force does, another folder avoids it)",
                ExitCode.USAGE,
            )
    try:
        for path, source in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            mode = SCRIPT_MODE if path.suffix == SCRIPT_SUFFIX else USUAL_FILE_MODE
            write_file(path, source.read_bytes(), mode=mode)
    except OSError as error:
        raise cannot_write(path, error) from error
    return list(contents)


def _files(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        if entry.is_file():
            yield prefix + entry.name, entry
        elif entry.name != COMPILED:
            yield from _files(entry, f"{prefix}{entry.name}/")
