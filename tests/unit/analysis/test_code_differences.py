"""What differs between two jobs' code: values of configs, names of variables, lines of files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.analysis.code import MAX_FILE_BYTES, MAX_LINES, Difference, code_differences

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


def of_configs(before: bytes, after: bytes) -> tuple[list[Difference], list[Difference]]:
    found = code_differences({"config.py": before}, {"config.py": after})
    assert [file.lines for file in found.files] == [()]
    return list(found.settings), list(found.environment)


@pytest.mark.proves("docs/commands.md", "`diff`")
def test_image_commands_and_constants_of_a_config_are_compared_by_value() -> None:
    before = config()
    after = config(image="torch:2.8", command="bash run.sh --fast", nodes="2").replace(b"1e-4", b"3e-4")
    settings, environment = of_configs(before, after)
    assert settings == [
        Difference("Image.base_image", "'torch:2.7'", "'torch:2.8'"),
        Difference("Compute.node_count", "1", "2"),
        Difference("Runtime.start_commands", "['bash run.sh']", "['bash run.sh --fast']"),
        Difference("LEARNING_RATE", "0.0001", "0.0003"),
    ]
    assert environment == []


ENVIRONMENTS = (
    ('{{"TOKEN": "{0}", "STEPS": "1"}}', ""),
    ("variables", 'variables = {{"TOKEN": "{0}", "STEPS": "1"}}'),
    ("{{**more}}", 'base = {{"TOKEN": "{0}"}}\nmore = dict(base, **{{"STEPS": "1"}})'),
)


@pytest.mark.parametrize(("environment", "more"), ENVIRONMENTS)
def test_of_environment_variables_only_the_names_are_shown(environment: str, more: str) -> None:
    before = config(environment='{"STEPS": "2", "OLD": "x"}')
    after = config(environment=environment.format(SECRET), more=more.format(SECRET))
    found = code_differences({"config.py": before}, {"config.py": after})
    assert {each.name: (each.before, each.after) for each in found.environment} == {
        "STEPS": ("set", "another value"),
        "OLD": ("set", None),
        "TOKEN": (None, "set"),
    }
    assert SECRET not in repr(found)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (".env", f"WHATEVER={SECRET}"),
        ("prod.env", f"export WHATEVER={SECRET}"),
        ("train.py", f'api_key = "{SECRET}"'),
        ("run.sh", f"wandb login --token {SECRET}"),
    ],
)
def test_secret_in_a_file_is_not_shown(path: str, line: str) -> None:
    found = code_differences({path: b"a = 1\n"}, {path: f"a = 2\n{line}\n".encode()})
    assert found.files[0].lines and SECRET not in repr(found)
    only = code_differences({path: line.encode()}, {path: line.replace(SECRET, SECRET + "7").encode()})
    assert SECRET not in repr(only) and "not shown" in only.files[0].lines[0]


def test_text_files_are_compared_line_by_line_and_others_by_content() -> None:
    before = {"a.py": b"x = 1\ny = 2\n", "same.py": b"1", "gone.txt": b"old\n", "data.bin": b"\0\1"}
    after = {"a.py": b"x = 1\ny = 3\n", "same.py": b"1", "new.txt": b"hello\n", "data.bin": b"\0\2"}
    files = {file.path: file for file in code_differences(before, after).files}
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
    files = {file.path: file for file in found.files}
    assert (len(files["long.txt"].lines), files["long.txt"].more) in ((MAX_LINES, 801), (0, 1_001))
    assert files["large.txt"].lines == ()
    assert sum(bool(file.lines) for file in found.files) <= MAX_LINES


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
    assert found.files[0].path == "config.py"


def test_config_is_read_and_not_run() -> None:
    after = config(more="raise SystemExit(7)")
    settings, _ = of_configs(config(), after)
    assert settings == []


@given(st.dictionaries(st.text(max_size=8), st.binary(max_size=40)))
def test_any_files_equal_to_themselves_differ_in_nothing(files: dict[str, bytes]) -> None:
    found = code_differences(files, files)
    assert (found.settings, found.environment, found.files) == ((), (), ())


def test_hostile_names_and_lines_are_sanitized() -> None:
    found = code_differences({}, {"\x1b[2J.py": b"\x1b]0;title\x07 hello\n"})
    assert "\x1b" not in repr((found.files[0].path, found.files[0].lines)).replace("\\x1b", "\x1b")
