"""What the built-in rules and a .truss_ignore drop."""

from pathlib import Path

import pytest

from api_client.errors import ArchiveError
from api_client.submission.archive import plan_archive


def make(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return root


def names(root: Path) -> list[str]:
    return [each.name for each in plan_archive(root).files]


def dropped(root: Path) -> dict[str, str]:
    return {each.name: each.reason for each in plan_archive(root).dropped}


@pytest.mark.parametrize("folder", ["lib", "build", "__pycache__"])
@pytest.mark.parametrize("depth", ["", "src/deep/"])
def test_built_in_rules_drop_folders_at_any_depth_and_say_so(tmp_path: Path, folder: str, depth: str) -> None:
    make(tmp_path, "train.py", "src/deep/kept.py", f"{depth}{folder}/model.py")
    assert names(tmp_path) == ["src/deep/kept.py", "train.py"]
    assert dropped(tmp_path) == {f"{depth}{folder}/": f"ignored by the built-in rule {folder}/"}


@pytest.mark.parametrize("name", [".env", "run.log", "x.tmp", "kernel.so", ".git/config", ".venv/bin/python"])
def test_built_in_rules_drop_files(tmp_path: Path, name: str) -> None:
    make(tmp_path, "train.py", name)
    assert names(tmp_path) == ["train.py"]


@pytest.mark.parametrize("name", ["library/x.py", "build", "run.sh", ".gitignore", "logs.txt", "a.spec.py"])
def test_built_in_rules_leave_the_rest(tmp_path: Path, name: str) -> None:
    assert names(make(tmp_path, name)) == [name]


def test_what_people_write_by_hand_is_warned_about(tmp_path: Path) -> None:
    make(tmp_path, "train.py", "lib/model.py", "__pycache__/x.pyc")
    (warning,) = plan_archive(tmp_path).warnings
    assert "lib/" in warning
    assert ".truss_ignore" in warning
    assert "__pycache__" not in warning


def test_a_truss_ignore_replaces_the_built_in_rules(tmp_path: Path) -> None:
    make(tmp_path, "lib/model.py", "run.log", "data/big.bin", "data/small.txt", "top.bin")
    (tmp_path / ".truss_ignore").write_text("# data\n\n  data/*.bin  \n")
    assert names(tmp_path) == [".truss_ignore", "data/small.txt", "lib/model.py", "run.log", "top.bin"]
    assert dropped(tmp_path) == {"data/big.bin": "ignored by the .truss_ignore rule data/*.bin"}
    assert plan_archive(tmp_path).warnings == ()
    (tmp_path / ".truss_ignore").write_text("")
    make(tmp_path, "build/x", ".git/HEAD", "sub/.truss_ignore")
    (tmp_path / "sub/.truss_ignore").write_text("*")  # only the root's counts
    assert dropped(tmp_path) == {}


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        ("*.txt\n!keep.txt", ["a/keep.txt", "c.md", "keep.txt"]),
        ("/a/", ["b.txt", "c.md", "keep.txt"]),
        ("a/**\n", ["b.txt", "c.md", "keep.txt"]),
        ("a/\n!a/keep.txt", ["b.txt", "c.md", "keep.txt"]),
        ("/*.txt", ["a/keep.txt", "a/x.txt", "c.md"]),
    ],
)
def test_git_s_syntax_holds(tmp_path: Path, rules: str, kept: list[str]) -> None:
    make(tmp_path, "a/x.txt", "a/keep.txt", "b.txt", "c.md", "keep.txt")
    (tmp_path / ".truss_ignore").write_text(rules)
    assert [name for name in names(tmp_path) if name != ".truss_ignore"] == kept


def test_a_truss_ignore_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".truss_ignore").mkdir()
    with pytest.raises(ArchiveError, match="truss_ignore cannot be read"):
        plan_archive(tmp_path)
    (tmp_path / ".truss_ignore").rmdir()
    (tmp_path / ".truss_ignore").write_text("!")
    with pytest.raises(ArchiveError, match="invalid pattern in"):
        plan_archive(tmp_path)
    with pytest.raises(ArchiveError, match="is not a folder"):
        plan_archive(tmp_path / "nowhere")
