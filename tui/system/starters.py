"""The starter projects: templates of config, script and program, copied to a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from api_client.files import USUAL_FILE_MODE, write_file

TEMPLATES = Path(__file__).parents[1] / "templates"


@dataclass(frozen=True, slots=True)
class StarterProject:
    """A template: ``machine`` describes the hardware of its job."""

    name: str
    machine: str
    summary: str


STARTER_PROJECTS = (
    StarterProject(
        "cpu-quickstart",
        "CPU",
        "a tiny network in plain Python; runs in seconds",
    ),
    StarterProject(
        "multinode-torchrun",
        "2 × H100:8",
        "data-parallel PyTorch with torchrun",
    ),
    StarterProject(
        "lora-finetune",
        "H100:1",
        "LoRA fine-tuning of a Hugging Face model",
    ),
)


class FilesAlreadyExist(Exception):
    """Raised if files of a template already exist; then no file of the template has been written."""

    def __init__(self, paths: list[Path]) -> None:
        super().__init__(f"not overwritten: {', '.join(map(str, paths))}")


def write_starters(projects_by_folder: Mapping[Path, StarterProject], *, force: bool = False) -> list[Path]:
    """Write each template into its folder, creating missing folders; return the files in order.

    Existing files are not overwritten without ``force``: FilesAlreadyExist is raised. Raises OSError with the
    name of the file that cannot be written.
    """
    contents = {
        folder / source.relative_to(TEMPLATES / project.name): source
        for folder, project in projects_by_folder.items()
        for source in sorted((TEMPLATES / project.name).rglob("*"))
        if source.is_file() and source.parent.name != "__pycache__"
    }
    in_the_way = [path for path in contents if path.exists() or path.is_symlink()]
    if in_the_way and not force:
        raise FilesAlreadyExist(in_the_way)
    for path, source in contents.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, source.read_bytes(), mode=0o777 if path.suffix == ".sh" else USUAL_FILE_MODE)
        except OSError as error:
            error.filename = str(path)
            raise
    return list(contents)
