"""Configs loaded by the interpreter of another environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from config_writing import EXAMPLES, IMPORTS, PROJECT, write_config

from api_client.definitions.base import unknown_fields
from api_client.errors import ConfigFileError
from api_client.submission.config_file import load_deploy_checkpoints_config, load_training_project
from api_client.submission.payload import job_payload, project_payload

NEWER_SDK = '''
"""An SDK that knows more than we do."""
from api_client import definitions as ours

class Image(ours.Image):
    digest: str | None = None

class Compute(ours.Compute):
    zone: str = "a"

class TrainingJob(ours.TrainingJob):
    image: Image
    compute: Compute = Compute()
    nickname: str | None = None

class TrainingProject(ours.TrainingProject):
    job: TrainingJob = ours.TrainingProject.model_fields["job"]
    colour: str = "green"

class DeployCheckpointsConfig(ours.DeployCheckpointsConfig):
    speed: int | None = None
'''


def environment(folder: Path, modules: dict[str, str]) -> Path:
    """A Python that finds these modules: this one, told to look in a folder of their own."""
    for name, text in modules.items():
        path = folder / "packages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    python = folder / "python"
    root = Path(__file__).parents[4]
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{folder / "packages"}:{root}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return python


@pytest.fixture(scope="module")
def with_sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    exported = "from truss_train.definitions import *\nfrom truss_train.public_api import push\n"
    push = "def push(config): raise SystemError('really sent')\n"
    modules = {"__init__.py": exported, "definitions.py": NEWER_SDK, "public_api.py": push}
    folder = tmp_path_factory.mktemp("with_sdk")
    return environment(folder, {f"truss_train/{name}": text for name, text in modules.items()})


def test_packages_that_only_that_environment_has(tmp_path: Path) -> None:
    path = write_config(tmp_path, f"import only_there\n{IMPORTS}x = {PROJECT}\nx.name = only_there.NAME")
    python = environment(tmp_path, {"only_there.py": "NAME = 'from there'"})
    assert load_training_project(path, python=python).name == "from there"


def test_fields_of_a_newer_sdk_are_kept(tmp_path: Path, with_sdk: Path) -> None:
    path = write_config(tmp_path, IMPORTS + f"x = {PROJECT}")
    project = load_training_project(path, python=with_sdk)
    assert project_payload(project) == {"name": "p", "colour": "green"}
    payload = job_payload(project.job, artifact=None, user_env=None)
    assert payload["compute"]["zone"] == "a"
    assert payload["nickname"] is None
    assert payload["image"] == {"base_image": "x", "docker_auth": None, "digest": None}
    assert set(unknown_fields(project)) == {"colour", "job.compute.zone"}


def test_a_newer_deployment_that_says_more_is_refused_and_none_sent(tmp_path: Path, with_sdk: Path) -> None:
    text = "from truss_train import DeployCheckpointsConfig\nx = DeployCheckpointsConfig(model_name='m')"
    path = write_config(tmp_path, text)
    assert load_deploy_checkpoints_config(path, python=with_sdk).model_name == "m"
    for refused, words in (
        (text.replace("'m'", "'m', speed=3"), "speed"),
        ("from truss_train import push\npush('x')", "nothing was sent"),
    ):
        path.write_text(refused)
        with pytest.raises(ConfigFileError, match=words):
            load_deploy_checkpoints_config(path, python=with_sdk)


@pytest.fixture
def words_on_stdin() -> Iterator[None]:
    """Somebody types, or a pipe has something to read."""
    usual = os.dup(0)
    reading, writing = os.pipe()
    os.write(writing, b"typed\n")
    os.close(writing)
    os.dup2(reading, 0)
    os.close(reading)
    yield
    os.dup2(usual, 0)
    os.close(usual)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("\nd = {}\nd['x']", 3, "KeyError"),
        ("import execution", 1, "execution"),
        ("import os, sys\nprint('last words', file=sys.stderr, flush=True)\nos._exit(4)", None, "last words"),
        ("input()", 1, "EOFError"),
    ],
)
def test_failures_read_as_here_and_nothing_takes_what_is_typed(
    tmp_path: Path, words_on_stdin: None, text: str, line: int | None, words: str
) -> None:
    path = write_config(tmp_path, text)
    with pytest.raises(ConfigFileError, match=words) as caught:
        load_training_project(path, python=sys.executable)
    assert (caught.value.path, caught.value.line) == (path, line)
    assert "Traceback" not in str(caught.value)


def test_what_is_no_python(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("")
    liar = tmp_path / "liar"
    liar.write_text("#!/bin/sh\necho '[1]'\n")
    liar.chmod(0o755)
    broken = environment(tmp_path, {"truss_train/__init__.py": "raise RuntimeError('half installed')"})
    named = {python: str(python) for python in (tmp_path / "none", text, liar)}
    for python, words in {**named, broken: r"truss is broken in .*half installed"}.items():
        with pytest.raises(ConfigFileError, match=words):
            load_training_project(EXAMPLES / "minimal.py", python=python)
