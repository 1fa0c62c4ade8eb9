"""Config files for tests."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

EXAMPLES = Path(__file__).parent / "examples"
PROJECT = 'TrainingProject(name="p", job=TrainingJob(image=Image(base_image="x")))'
IMPORTS = "from truss_train import Image, TrainingJob, TrainingProject\n"


def write_config(folder: Path, text: str, name: str = "config.py") -> Path:
    """A file with this text, its indentation taken off."""
    path = folder / name
    path.write_text(dedent(text), encoding="utf-8")
    return path
