"""What differs between two jobs' code: values of configs, names of variables, lines of files."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from tui.analysis.differences import MAX_FILE_BYTES, MAX_LINES, LargeFile, code_differences

CONFIG = """\
from truss_train import Compute, Image, Runtime, SecretReference, TrainingJob, TrainingProject

LEARNING_RATE = 1e-4
{more}
image = Image(base_image="{image}")
training_job = TrainingJob(
    image=image,
    compute=Compute(node_count={nodes}),
    runtime=Runtime(start_commands=["{command}"], environment_variables={environment}),
)
training_project = TrainingProject(name="p", job=training_job)
"""
DEFAULTS = {"more": "", "image": "torch:2.7", "nodes": "1", "command": "bash run.sh", "environment": "{}"}
SECRET = "s3cr3t-Value-0815"


def config(**fields: str) -> bytes:
    return CONFIG.format(**(DEFAULTS | fields)).encode()


def of_configs(before: bytes, after: bytes) -> list[str]:
    """Return the lines of a config that were removed and added."""
    (file,) = code_differences({"config.py": before}, {"config.py": after})
    return [line for line in file.lines if line[0] in "+-"]


@pytest.mark.proves("docs/commands.md", "`diff`")
def test_values_of_image_compute_and_commands_are_shown_also_behind_names() -> None:
    before = config(more='IMAGE: str = "torch:2.7"', image="x").replace(b'"x"', b"IMAGE")
    after = before.replace(b"torch:2.7", b"torch:2.8").replace(b"count=1", b"count=2")
    assert of_configs(before, after.replace(b"run.sh", b"run.sh --fast")) == [
        '-IMAGE: str = "torch:2.7"',
        '+IMAGE: str = "torch:2.8"',
        "-    compute=Compute(node_count=1),",
        '-    runtime=Runtime(start_commands=["bash run.sh"], environment_variables={}),',
        "+    compute=Compute(node_count=2),",
        '+    runtime=Runtime(start_commands=["bash run.sh --fast"], environment_variables={}),',
    ]


@pytest.mark.parametrize(
    "line",
    ["LR: float = 1e-{0}", "LR, B = 1e-{0}, 2", "if True:\n    LR = {0}", "LR = 1  # {0}", "LR += {0}"],
)
def test_change_whose_value_is_hidden_is_shown_without_it(line: str) -> None:
    before, after = of_configs(config(more=line.format(4)), config(more=line.format(5)))
    assert "<hidden>" in before and "<new value>" in after
    assert before.partition("<")[0][1:] == after.partition("<")[0][1:]


def test_variables_are_shown_by_name() -> None:
    before = config(environment='{"STEPS": "2", "OLD": "x"}')
    after = config(environment=f'{{"STEPS": "3", "TOKEN": "{SECRET}", "OLD": "x"}}')
    _, line = of_configs(before, after)
    assert line.endswith('{"STEPS": <new value>, "TOKEN": <new value>, "OLD": <hidden>}),')


def test_value_of_a_variable_is_hidden_where_it_is_written_again() -> None:
    after = config(environment=f'{{"A": "{SECRET}"}}', command=f"python train.py {SECRET}")
    found = code_differences({}, {"config.py": after, "train.py": f'run("{SECRET}")\n'.encode()})
    assert SECRET not in repr(found) and len(found[1].lines) == 2


@pytest.mark.parametrize(
    "source",
    ["from truss_train import (\nimport helper\nA = '{0}'", "import truss_train, helper\nprint '{0}'"],
)
def test_python_that_cannot_be_parsed_is_only_counted(source: str) -> None:
    helper = f"ENV = {{'a': '{SECRET}'}}\n".encode()
    before = {"config.py": b"import truss_train\n", "helper.py": b""}
    found = code_differences(before, {"config.py": source.format(SECRET).encode(), "helper.py": helper})
    assert SECRET not in repr(found)
    assert (found[0].lines, found[0].unshown_count >= 1) == ((), True)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("train.py", f'api_key = "{SECRET}"'),
        ("run.sh", f"wandb login --token {SECRET}"),
    ],
)
def test_secret_in_a_file_is_not_shown(path: str, line: str) -> None:
    (file,) = code_differences({path: b"a = 1\n"}, {path: f"a = 2\n{line}\n".encode()})
    assert file.lines and SECRET not in repr(file)
    (file,) = code_differences({path: line.encode()}, {path: line.replace(SECRET, SECRET + "7").encode()})
    assert SECRET not in repr(file)
    assert "<hidden>" in file.lines[1] and "<new value>" in file.lines[2]


def test_text_files_are_compared_line_by_line_and_others_by_content() -> None:
    before = {"a.py": b"x = 1\ny = 2\n", "same.py": b"1", "gone.txt": b"old\n", "data.bin": b"\0\1"}
    after = {"a.py": b"x = 1\ny = 3\n", "same.py": b"1", "new.txt": b"hello\n", "data.bin": b"\0\2"}
    files = {file.path: file for file in code_differences(before, after)}
    assert {path: file.change for path, file in files.items()} == {
        "a.py": "changed",
        "data.bin": "changed",
        "gone.txt": "removed",
        "new.txt": "added",
    }
    assert files["a.py"].lines == ("@@ -1,2 +1,2 @@", " x = 1", "-y = 2", "+y = 3")
    assert files["new.txt"].lines[-1] == "+hello" and files["data.bin"].lines == ()


def test_long_differences_and_large_files_are_bounded_and_counted() -> None:
    lines = "".join(f"line {number}\n" for number in range(1_000)).encode()
    many = {f"{number}.txt": b"x\n" for number in range(MAX_LINES + 5)}
    found = code_differences({}, {"long.txt": lines, "large.txt": b"a" * (MAX_FILE_BYTES + 1)} | many)
    files = {file.path: file for file in found}
    assert (len(files["long.txt"].lines), files["long.txt"].unshown_count) in ((MAX_LINES, 801), (0, 1_001))
    assert files["large.txt"].lines == ()
    assert sum(bool(file.lines) for file in found) <= MAX_LINES


@pytest.mark.parametrize(
    "source",
    [
        b"from truss_train import (\n",
        b"import truss_train\nx = " + b"(" * 500 + b")" * 500,
        b"import truss_train\n\xff\xfe",
        b"# truss_train\0",
    ],
)
def test_config_that_cannot_be_parsed_is_a_file_like_others(source: bytes) -> None:
    found = code_differences({"config.py": b"x\n"}, {"config.py": source})
    assert found[0].path == "config.py"


def test_config_is_read_and_not_run() -> None:
    after = config(more="raise SystemExit(7)")
    assert of_configs(config(), after) == ["-", "+raise SystemExit(<new value>)"]


@given(st.dictionaries(st.text(max_size=8), st.binary(max_size=40)))
def test_any_files_equal_to_themselves_differ_in_nothing(files: dict[str, bytes]) -> None:
    assert code_differences(files, files) == ()


def test_hostile_names_and_lines_are_sanitized() -> None:
    found = code_differences({}, {"\x1b[2J.py": b"\x1b]0;title\x07 hello\n"})
    assert "\x1b" not in repr((found[0].path, found[0].lines)).replace("\\x1b", "\x1b")


def test_moved_file_is_shown_once_and_with_what_changed_in_it() -> None:
    before = {"a.py": b"x = 1\n", "old/net.py": b"depth = 1\n", "data.bin": b"\0\1"}
    after = {"b.py": b"x = 1\n", "new/net.py": b"depth = 2\n", "moved.bin": b"\0\1"}
    found = [
        (each.former_path, each.path, each.change, each.lines) for each in code_differences(before, after)
    ]
    assert found == [
        ("a.py", "b.py", "renamed", ()),
        ("data.bin", "moved.bin", "renamed", ()),
        ("old/net.py", "new/net.py", "changed", ("@@ -1 +1 @@", "-depth = 1", "+depth = 2")),
    ]


def test_files_that_are_not_text_or_empty_have_their_sizes() -> None:
    large = LargeFile(600_000, "x")
    found = code_differences({"a.bin": b"\0", "large": large}, {"a.bin": b"\0\0", "empty.txt": b""})
    assert [(each.path, each.size_bytes_before, each.size_bytes_after, each.lines) for each in found] == [
        ("a.bin", 1, 2, ()),
        ("empty.txt", None, 0, ()),
        ("large", 600_000, None, ()),
    ]


def test_lines_are_numbered_as_in_the_file_and_too_many_are_counted() -> None:
    lines = [f"line {number}" for number in range(10_000)]
    text = "\n".join(lines).encode()
    (found,) = code_differences({"a": text}, {"a": text.replace(b"line 5000\n", b"line x\n")})
    assert found.lines[0] == "@@ -4998,7 +4998,7 @@" and len(found.lines) == 9
    (found,) = code_differences({"a": text}, {"a": "\n".join(reversed(lines)).encode()})
    assert (found.lines, found.unshown_count) == ((), 10_000)


def test_text_beyond_the_limit_is_compared_by_content() -> None:
    many = {f"{number:02}.txt": b"x\n" * 250_000 for number in range(6)}
    found = code_differences(many, {path: content + b"y\n" for path, content in many.items()})
    assert [bool(file.lines) for file in found] == [True] * 4 + [False] * 2
