"""What is told about the sender's side."""

import subprocess
import sys
from pathlib import Path

import pydantic
import pytest

from api_client.submission.submitting import describe_environment


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def test_versions_a_commit_and_its_tag_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    told = describe_environment(tmp_path)
    assert told.pop("truss_client_version").startswith("bt-tui/")
    assert told.pop("mypy_version", "") != ""
    assert told == {
        "python_version": ".".join(map(str, sys.version_info[:3])),
        "pydantic_version": pydantic.VERSION,
        "git_info": None,
    }
    fields = ("latest_commit_sha", "latest_tag", "commits_since_tag", "has_uncommitted_changes")
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "--allow-empty", "-m", "one")
    clean = (git(tmp_path, "rev-parse", "HEAD"), None, None, False)
    assert describe_environment(tmp_path)["git_info"] == dict(zip(fields, clean, strict=True))
    git(tmp_path, "tag", "v1")
    git(tmp_path, "commit", "--allow-empty", "-m", "two")
    (tmp_path / "three").write_text("not added")
    changed = (git(tmp_path, "rev-parse", "HEAD"), "v1", 1, True)
    assert describe_environment(tmp_path)["git_info"] == dict(zip(fields, changed, strict=True))
    monkeypatch.setenv("PATH", "/nowhere")
    assert describe_environment(tmp_path)["git_info"] is None
