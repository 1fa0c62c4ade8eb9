"""Config files: how they are run, and what is said of broken ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from config_writing import EXAMPLES, IMPORTS, PROJECT, write_config

from api_client.errors import ConfigFileError
from api_client.submission.config_file import load_deploy_checkpoints_config, load_training_project


def failure(path: Path) -> ConfigFileError:
    with pytest.raises(ConfigFileError) as caught:
        load_training_project(path)
    assert "Traceback" not in str(caught.value)
    return caught.value


@pytest.mark.proves("docs/commands.md", "Submit a job")
def test_any_name_encoding_and_official_import_will_do(tmp_path: Path) -> None:
    path = write_config(
        tmp_path,
        """
        # -*- coding: latin-1 -*-
        import truss
        import truss.base.truss_config as tc
        import truss_train.definitions
        import truss_train.definitions as definitions
        from truss.base import truss_config
        from truss.base.truss_config import Accelerator, AcceleratorSpec, DockerAuthType, WeightsSource
        from truss_train import *
        from truss_train import push
        from truss_train.definitions import InteractiveSession, DEFAULT_LORA_RANK
        from truss_train.public_api import push as other_push

        class Proxy:
            @property
            def __class__(self): raise RuntimeError("looked at")

        proxy = Proxy()
        assert tc is truss_config is truss.base.truss_config is truss.truss_config
        assert truss_train.definitions is definitions
        assert definitions.AcceleratorSpec is AcceleratorSpec
        assert __name__ == "my-config" and __file__.endswith("my-config.py")
        odd_name = definitions.TrainingProject(
            name="é", job=TrainingJob(image=Image(base_image="x"), compute=Compute(accelerator="H100"))
        )
        deployment = DeployCheckpointsConfig(model_name="m")
        """,
        name="my-config.py",
    )
    path.write_bytes(path.read_text(encoding="utf-8").encode("latin-1"))
    assert load_training_project(str(path)).name == "é"
    assert load_deploy_checkpoints_config(path).model_name == "m"
    with pytest.raises(ConfigFileError, match="no DeployCheckpointsConfig"):
        load_deploy_checkpoints_config(EXAMPLES / "minimal.py")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("x = (\n\n", 1, ["SyntaxError", "never closed"]),
        ("x = '\0'", None, ["SyntaxError"]),
        ("\nimport sys\nsys.exit(3)", 3, ["exit(3)"]),
        ("def f():\n    f()\n\nf()\n", 2, ["RecursionError"]),
        ("def load():\n    raise ValueError('no data')\n\nload()", 2, ["ValueError: no data"]),
        ("class Odd(BaseException): pass\nraise Odd('x')", 2, ["Odd: x"]),
        ("exec('1 / 0')", 1, ["ZeroDivisionError: division by zero"]),
        ("import config_beside", 1, ["config_beside"]),
        ("import no_such_package_at_all", 1, ["no_such_package_at_all", "--python"]),
        ("from truss.base.truss_config import Resources", 1, ["Resources", "--python"]),
        ("from truss_train import definitions\ndefinitions.Nothing", 2, ["Nothing"]),
        ("from truss_train import *\n\nCompute(\n  cpus=4)", 3, ["Compute.cpus", "cpu_count", "4"]),
        ("from truss_train import *\nCompute(node_count='1', cpu_count='2')", 2, ["node_count", "cpu_count"]),
        ("from truss_train import push\npush('config.py')", 2, ["nothing was sent", "__main__"]),
        (f"{IMPORTS}a = TrainingProject", None, ["no TrainingProject"]),
        (f"{IMPORTS}a = b = {PROJECT}", None, ["2 TrainingProject", "a, b"]),
    ],
)
def test_a_broken_config_says_where(tmp_path: Path, text: str, line: int | None, words: list[str]) -> None:
    path = write_config(tmp_path, text)
    (tmp_path / "config_beside.py").touch()  # the folder is not on the import path
    error = failure(path)
    assert str(error).startswith(f"{path}:{line}: " if line else f"{path}: ")
    assert not [word for word in words if word not in error.problem], error.problem
    assert (error.path, error.line) == (path, line)


def test_an_error_in_a_file_beside_the_config_is_told_with_both_places(tmp_path: Path) -> None:
    write_config(tmp_path, "\n1 / 0\n", name="own_helper.py")
    text = "import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\nimport own_helper"
    error = failure(write_config(tmp_path, text))
    assert error.line == 3
    assert "ZeroDivisionError" in error.problem
    assert "own_helper.py, line 2" in error.problem


def test_what_is_no_config_file_is_refused(tmp_path: Path) -> None:
    assert "No such file" in failure(tmp_path / "none.py").problem
    assert "a config is a file such as config.py" in failure(tmp_path).problem
    assert ".py" in failure(write_config(tmp_path, "", name="config.txt")).problem


@pytest.mark.parametrize("name", ["pipe", "pipe.py"])
def test_pipe_is_refused_without_waiting_for_a_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("api_client.submission.config_file.LOAD_TIMEOUT_S", 20.0)
    os.mkfifo(tmp_path / name)
    assert "not a Python file" in failure(tmp_path / name).problem


def test_checkpoint_to_deploy_keeps_fields_of_a_newer_sdk(tmp_path: Path) -> None:
    checkpoint = 'FullCheckpoint(training_job_id="j", checkpoint_name="c", newer=1)'
    details = f"CheckpointList(checkpoints=[{checkpoint}])"
    text = f"from truss_train import *\nconfig = DeployCheckpointsConfig(checkpoint_details={details})"
    loaded = load_deploy_checkpoints_config(write_config(tmp_path, text)).checkpoint_details
    assert loaded is not None
    assert loaded.checkpoints[0].model_extra == {"newer": 1}
