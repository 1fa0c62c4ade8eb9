"""Which files go into the archive by workspace and ignore rules, and what is said of the others."""

import os
from pathlib import Path

import pytest

from api_client.definitions import Workspace
from api_client.errors import ArchiveError
from api_client.submission import archive
from api_client.submission.archive import ArchivePlan, plan_archive


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def names(plan: ArchivePlan) -> list[str]:
    return [each.name for each in plan.files]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with two jobs in it, and data beside it."""
    root = tmp_path / "repository"
    make(root, "jobs/sft/config.py", "jobs/sft/run.sh", "jobs/grpo/config.py", "common/util.py", "notes/a.md")
    make(tmp_path, "datasets/train.jsonl", "other/common/x.py")
    return root


SFT = ["config.py", "run.sh"]
OTHER_COMMON = "../../../other/common"
TREE = ["common/util.py", "jobs/grpo/config.py", "jobs/sft/config.py", "jobs/sft/run.sh", "notes/a.md"]


@pytest.mark.parametrize(
    ("workspace", "found"),
    [
        (None, SFT),
        (Workspace(), SFT),
        (Workspace(workspace_root="../.."), TREE),
        (Workspace(external_dirs=["../../../datasets", "../../common"]),
         ["common/util.py", "config.py", "datasets/train.jsonl", "run.sh"]),
        (Workspace(workspace_root="../..", exclude_dirs=["../../common"], external_dirs=[OTHER_COMMON]),
         ["common/x.py", *TREE[1:]]),
    ],
)  # fmt: skip
def test_a_workspace_has_its_root_s_tree_and_folders_from_outside_at_the_top(
    repository: Path, workspace: Workspace | None, found: list[str]
) -> None:
    plan = plan_archive(repository / "jobs/sft", workspace)
    assert names(plan) == found
    assert all(each.size_bytes == each.path.stat().st_size for each in plan.files)


def test_excluded_folders_are_listed_and_one_from_inside_is_skipped_with_a_warning(repository: Path) -> None:
    excluded = ["../../notes", "../grpo/../../common"]
    workspace = Workspace(workspace_root="../..", exclude_dirs=excluded, external_dirs=["../grpo"])
    plan = plan_archive(repository / "jobs/sft", workspace)
    assert names(plan) == TREE[1:-1]
    assert dict(plan.dropped) == {"common/": "excluded by exclude_dirs", "notes/": "excluded by exclude_dirs"}
    assert any("'../grpo' is already inside" in warning for warning in plan.warnings)


@pytest.mark.parametrize(
    ("workspace", "reason"),
    [
        (Workspace(workspace_root="../grpo"), "workspace_root: .*does not contain"),
        (Workspace(exclude_dirs=["../../common"]), "exclude_dirs: '../../common' is .*not directly inside"),
        (Workspace(workspace_root="../..", exclude_dirs=["../sft"]), "exclude_dirs: '../sft' is .*not"),
        (Workspace(external_dirs=["../../../missing"]), "external_dirs: '../../../missing' .*does not exist"),
        (Workspace(external_dirs=["../grpo/config.py"]), "external_dirs: .*is not a folder"),
        (
            Workspace(workspace_root="../..", external_dirs=[OTHER_COMMON]),
            "external_dirs: .*would be 'common'",
        ),
    ],
)
def test_a_workspace_without_sense_is_refused(repository: Path, workspace: Workspace, reason: str) -> None:
    with pytest.raises(ArchiveError, match=reason):
        plan_archive(repository / "jobs/sft", workspace)


def test_the_rules_of_the_workspace_s_root_hold_everywhere(repository: Path) -> None:
    (repository / ".truss_ignore").write_text("*.md\ndatasets/\n")
    workspace = Workspace(workspace_root="../..", external_dirs=["../../../datasets"])
    plan = plan_archive(repository / "jobs/sft", workspace)
    rules = {"datasets/": "datasets/", "notes/a.md": "*.md"}
    assert dict(plan.dropped) == {name: f"ignored by the .truss_ignore rule {rules[name]}" for name in rules}


def test_nothing_is_dropped_without_a_word(tmp_path: Path) -> None:
    make(tmp_path, "train.py", "real/x.py")
    (tmp_path / "empty").mkdir()
    (tmp_path / "to_folder").symlink_to("real")
    (tmp_path / "to_nothing").symlink_to("gone")
    (tmp_path / "to_itself").symlink_to("to_itself")
    os.mkfifo(tmp_path / "pipe")
    plan = plan_archive(tmp_path)
    assert names(plan) == ["real/x.py", "train.py"]
    assert dict(plan.dropped) == {
        "empty/": "empty folder (archives contain only files)",
        "pipe": "not a plain file",
        "to_folder": "a link to a folder, which is not followed",
        "to_itself": "a broken link",
        "to_nothing": "a broken link",
    }
    assert sorted(warning.split()[0] for warning in plan.warnings) == ["to_folder", "to_itself", "to_nothing"]


def test_plain_folder_keeps_links_to_its_files_only(tmp_path: Path) -> None:
    make(tmp_path, "job/train.py", "shared/util.py")
    (tmp_path / "job/inside").symlink_to("train.py")
    (tmp_path / "job/outside").symlink_to("../shared/util.py")
    (tmp_path / "job/absolute").symlink_to(tmp_path / "job/train.py")
    plan = plan_archive(tmp_path / "job")
    sizes = {each.name: each.size_bytes for each in plan.files}
    assert sizes == {"inside": 0, "train.py": len("job/train.py")}
    left_out = "is not in the archive: it is a link that leads out of the folder"
    assert sorted(plan.warnings) == [f"absolute {left_out}", f"outside {left_out}"]


def test_a_workspace_is_taken_as_if_copied_with_links_resolved(tmp_path: Path) -> None:
    make(tmp_path, "job/config.py", "shared/util.py", "shared/sub/deep.py")
    (tmp_path / "job/util.py").symlink_to("../shared/util.py")
    (tmp_path / "job/shared").symlink_to("../shared")
    (tmp_path / "shared/sub/up").symlink_to("..")
    (tmp_path / "job/.truss_ignore").write_text("")
    plan = plan_archive(tmp_path / "job", Workspace(workspace_root="."))
    assert names(plan) == [".truss_ignore", "config.py", "shared/sub/deep.py", "shared/util.py", "util.py"]
    assert dict(plan.dropped) == {"shared/sub/up": "a link to a folder that contains it"}
    assert plan.files[-1].size_bytes == len("shared/util.py")


@pytest.mark.proves("docs/commands.md", "Submit a job")
def test_a_large_archive_is_warned_about_and_a_huge_one_refused(tmp_path: Path) -> None:
    make(tmp_path, "config.py", "weights.bin")
    os.truncate(tmp_path / "weights.bin", 1_000_000_000)
    (warning,) = plan_archive(tmp_path).warnings
    assert "above 1 GB" in warning
    os.truncate(tmp_path / "weights.bin", archive.MAX_ARCHIVE_BYTES - 20_480)
    assert plan_archive(tmp_path).size_bytes <= archive.MAX_ARCHIVE_BYTES
    os.truncate(tmp_path / "weights.bin", archive.MAX_ARCHIVE_BYTES)
    with pytest.raises(ArchiveError, match=r"at most 5 GiB; largest files: weights\.bin \(5\.37 GB\)"):
        plan_archive(tmp_path)


def test_built_in_rules_drop_some_folders_at_any_depth_some_files_and_leave_the_rest(tmp_path: Path) -> None:
    kept = [".gitignore", "a.spec.py", "build", "library/x.py", "logs.txt", "run.sh", "src/deep/kept.py"]
    folders = ["__pycache__", "lib", "src/deep/build"]
    make(tmp_path, *kept, ".env", "run.log", "x.tmp", "kernel.so", ".git/config", ".venv/bin/python")
    make(tmp_path, *(f"{folder}/model.py" for folder in folders))
    plan = plan_archive(tmp_path)
    assert names(plan) == kept
    for folder in folders:
        rule = folder.rpartition("/")[2]
        assert dict(plan.dropped)[f"{folder}/"] == f"ignored by the built-in rule {rule}/"
    warning = next(each for each in plan.warnings if "lib/" in each)  # people write it by hand
    assert ".truss_ignore" in warning
    assert "__pycache__" not in warning


def test_a_truss_ignore_replaces_the_built_in_rules(tmp_path: Path) -> None:
    make(tmp_path, "lib/model.py", "run.log", "data/big.bin", "data/small.txt", "top.bin")
    (tmp_path / ".truss_ignore").write_text("# data\n\n  data/*.bin  \n")
    plan = plan_archive(tmp_path)
    assert names(plan) == [".truss_ignore", "data/small.txt", "lib/model.py", "run.log", "top.bin"]
    assert dict(plan.dropped) == {"data/big.bin": "ignored by the .truss_ignore rule data/*.bin"}
    assert plan.warnings == ()
    (tmp_path / ".truss_ignore").write_text("")
    make(tmp_path, "build/x", ".git/HEAD", "sub/.truss_ignore")
    (tmp_path / "sub/.truss_ignore").write_text("*")  # only the root's counts
    assert dict(plan_archive(tmp_path).dropped) == {}


def test_git_s_syntax_holds(tmp_path: Path) -> None:
    make(tmp_path, "a/x.txt", "a/keep.txt", "b.txt", "c.md", "keep.txt")
    top = ["b.txt", "c.md", "keep.txt"]
    rules = {"*.txt\n!keep.txt": ["a/keep.txt", "c.md", "keep.txt"], "/a/": top, "a/\n!a/keep.txt": top}
    for rule, kept in rules.items():
        (tmp_path / ".truss_ignore").write_text(rule)
        assert names(plan_archive(tmp_path)) == [".truss_ignore", *kept]


def test_a_pipe_named_truss_ignore_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".truss_ignore")
    with pytest.raises(ArchiveError, match="truss_ignore cannot be read: it is not a regular file"):
        plan_archive(tmp_path)


def test_a_truss_ignore_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".truss_ignore").mkdir()
    with pytest.raises(ArchiveError, match="truss_ignore cannot be read"):
        plan_archive(tmp_path)
    (tmp_path / ".truss_ignore").rmdir()
    (tmp_path / ".truss_ignore").write_text("!")
    for folder, words in ((tmp_path, "invalid pattern in"), (tmp_path / "nowhere", "is not a folder")):
        with pytest.raises(ArchiveError, match=words):
            plan_archive(folder)
