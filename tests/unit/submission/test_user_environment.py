"""What is told about the sender's side."""

import subprocess
import sys
from pathlib import Path

import pydantic
import pytest

from api_client.submission.submitting import describe_environment


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(folder: Path, name: str) -> None:
    (folder / name).write_text(name)
    git(folder, "add", name)
    git(folder, "commit", "-m", name)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    git(tmp_path, "init", "-q")
    commit(tmp_path, "one")
    return tmp_path


def test_versions_are_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    told = describe_environment(tmp_path)
    assert told["truss_client_version"].startswith("bt-tui/")
    assert told["python_version"] == f"{sys.version_info[0]}.{sys.version_info[1]}.{sys.version_info[2]}"
    assert told["pydantic_version"] == pydantic.VERSION
    assert told["git_info"] is None
    assert set(told) == {
        "truss_client_version", "python_version", "pydantic_version", "mypy_version", "git_info",
    }  # fmt: skip


def test_a_repository_s_commit_and_tag_are_told(repository: Path) -> None:
    sha = git(repository, "rev-parse", "HEAD")
    assert describe_environment(repository)["git_info"] == {
        "latest_commit_sha": sha,
        "latest_tag": None,
        "commits_since_tag": None,
        "has_uncommitted_changes": False,
    }
    git(repository, "tag", "v1")
    commit(repository, "two")
    (repository / "three").write_text("not added")
    assert describe_environment(repository)["git_info"] == {
        "latest_commit_sha": git(repository, "rev-parse", "HEAD"),
        "latest_tag": "v1",
        "commits_since_tag": 1,
        "has_uncommitted_changes": True,
    }


def test_without_git_there_is_no_commit(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert describe_environment(repository)["git_info"] is None
