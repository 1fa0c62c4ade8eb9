"""No value of an environment variable is shown in what differs between two jobs, however it is written."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable
from dataclasses import asdict
from functools import reduce
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from api_client.models import TrainingJob as Job
from support.fake_baseten import job
from tui.analysis import redaction
from tui.analysis.differences import JobDifferences, code_differences

CONFIG = """\
import json, os
from truss_train import Compute, Image, Runtime, Runtime as R, TrainingJob, TrainingProject
NODES = 2
{setup}
training_job = TrainingJob(
    image=Image(base_image="torch:2.7"),
    compute=Compute(node_count=NODES),
    runtime={runtime},
)
training_project = TrainingProject(name="p", job=training_job)
"""
DICTIONARIES = (
    "{{'A': {v}}}",
    "dict(A={v})",
    "dict([('a', {v})])",
    "dict(zip(['A'], [{v}]))",
    "{{k: v for k, v in [('A', {v})]}}",
    "{{**{{'A': {v}}}, 'B': '2'}}",
    "{{'A': {v} if NODES else ''}}",
    "json.loads('{{\"A\": \"' + {v} + '\"}}')",
    "{{'A': 'x' + {v}}}",
    "{{'A': (lambda: {v})()}}",
)
RUNTIMES = (
    ("", "Runtime(environment_variables={d})"),
    ("", "R(environment_variables={d})"),
    ("E = {d}", "Runtime(environment_variables=E)"),
    ("A = ENV = {d}", "Runtime(environment_variables=ENV)"),
    ("E: dict = {d}", "Runtime(environment_variables=dict(E))"),
    ("KW = {{'environment_variables': {d}}}", "Runtime(**KW)"),
    ("KW = dict(environment_variables={d})", "Runtime(**KW, start_commands=['x'])"),
    ("if NODES:\n    E = {d}\nelse:\n    E = {{}}", "Runtime(environment_variables=E)"),
    ("def env():\n    return {d}", "Runtime(environment_variables=env())"),
    ("class Settings:\n    env = {d}", "Runtime(environment_variables=Settings.env)"),
    ("r = Runtime()\nr.environment_variables.update({d})", "r"),
    ("r = Runtime()\nfor k, v in {d}.items():\n    r.environment_variables.setdefault(k, v)", "r"),
    ("old = Runtime(environment_variables={d})", "(Runtime() if NODES else old)"),
    ("def make(runtime):\n    return runtime", "make(runtime=make(Runtime(environment_variables={d})))"),
    ("from helper import E", "Runtime(environment_variables=E)"),
    ("E = json.load(open('vars.json'))", "Runtime(environment_variables=E)"),
    ("", "Runtime(start_commands=['export A=' + {v} + ' && python train.py'])"),
    ("X = {v}\nenv = {{}}\nenv['A'] = X", "Runtime(environment_variables=env, start_commands=[X])"),
)
PROGRAMS = {
    "train.py": (
        "os.environ['A'] = {v}",
        "os.environ.setdefault('A', {v})",
        "os.environ.update({d})",
        "os.environ.update(a={v})",
        "os.putenv('a', {v})",
    ),
    "run.sh": ("export a={w}", "export A='{w} {w}'", "if true; then export A={w}; fi"),
    ".env": ("a={w}", "export B='{w}'"),
    "prod.env": ("a = {w}", "B: {w}"),
    "conf/.env.local": ("a={w}",),
    "Dockerfile": ("ENV a {w}", "ENV A={w}"),
}

values = st.text("abcdefghijkmnopqrstuvwxyzABCDEF0123456789", min_size=4, max_size=30).map("zq{}".format)
programs = st.sampled_from([(path, text) for path, texts in PROGRAMS.items() for text in texts])


def files(
    value: str, dictionary: str, runtime: tuple[str, str], program: tuple[str, str]
) -> dict[str, bytes]:
    """Return the files of a job that sets a variable to a value in a config and in what it runs."""
    words = {"v": repr(value), "w": value, "d": dictionary.format(v=repr(value))}
    setup, argument = (part.format(**words) for part in runtime)
    path, text = program
    texts = {
        "config.py": CONFIG.format(setup=setup, runtime=argument),
        **({"helper.py": f"E = {words['d']}\n"} if "helper" in setup else {}),
        **({"vars.json": json.dumps({"a": value})} if "vars.json" in setup else {}),
        path: f"import os\n{text.format(**words)}\n" if path == "train.py" else f"{text.format(**words)}\n",
    }
    ast.parse(texts["config.py"])
    return {path: text.encode() for path, text in texts.items()}


def everything_shown(before: dict[str, bytes], after: dict[str, bytes]) -> str:
    differences = code_differences(before, after)
    jobs = [Job.model_validate(job(name)) for name in ("before", "after")]
    lines = JobDifferences(*jobs, differences).lines()
    return "\n".join([*(line for line, _ in lines), *(json.dumps(asdict(each)) for each in differences)])


@given(values, st.sampled_from(DICTIONARIES), st.sampled_from(RUNTIMES), programs, st.booleans())
def test_no_value_of_a_variable_is_shown_in_any_shape(
    value: str, dictionary: str, runtime: tuple[str, str], program: tuple[str, str], is_new: bool
) -> None:
    after = files(value, dictionary, runtime, program)
    before = {} if is_new else files("zqWas0815", dictionary, RUNTIMES[0], program)
    shown = everything_shown(before, after)
    assert value not in shown and "zqWas0815" not in shown
    assert "config.py" in shown and "<new value>" in shown


@given(values, values, st.sampled_from(DICTIONARIES), st.sampled_from(RUNTIMES), programs)
def test_changed_value_is_reported_for_each_file(
    value: str, other: str, dictionary: str, runtime: tuple[str, str], program: tuple[str, str]
) -> None:
    before = files(value, dictionary, runtime, program)
    after = files(other, dictionary, runtime, program)
    changed = {path for path in after if before[path] != after[path]}
    found = code_differences(before, after)
    assert {each.path for each in found} == changed
    assert all(each.unshown_count or any("<new value>" in line for line in each.lines) for each in found)


SHAPES: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("hidden_values.json").read_text())
"""Files that set a variable to VALUE, by what is special about them."""
HEAD = "from truss_train import *\nfrom truss_train import Image, Runtime, TrainingJob, Compute\nimport os, json\n"
END = "training_job = TrainingJob(image=Image(base_image='torch:2.7'), runtime=runtime)\n"


@pytest.mark.parametrize("texts", SHAPES.values(), ids=SHAPES)
def test_value_is_hidden_and_its_change_reported(texts: dict[str, str]) -> None:
    def files_with(value: str) -> dict[str, bytes]:
        replaced = {"HEAD\n": HEAD, "END\n": END, "VALUE": value}
        return {
            path: reduce(lambda source, word: source.replace(word, replaced[word]), replaced, text).encode()
            for path, text in texts.items()
        }

    before, after = files_with("zqBEFOREzq11"), files_with("zqAFTERzq22")
    shown = everything_shown(before, after) + everything_shown({}, after)
    assert not re.search("zqBEFORE|zqAFTER", shown)
    found = code_differences(before, after)
    assert found and all(
        each.unshown_count or any("<new value>" in line for line in each.lines) for each in found
    )


@pytest.mark.parametrize("line", ["image=Image(base_image='torch:2.8')", "compute=Compute(node_count=3)"])
def test_literals_of_harmless_arguments_are_shown(line: str) -> None:
    source = f"from truss_train import *\njob = TrainingJob({line})\n"
    assert line in everything_shown({}, {"config.py": source.encode()})


PLAIN = """\
import os

lr = 3e-4  # found by a sweep
MODEL = "Qwen/Qwen3"
rank = int(os.environ["RANK"])
args = {"batch": 8, "data": "s3://bucket/data"}
model = load(MODEL, dtype="bf16", lr=lr)
print(f"step {rank} loss={lr}")
"""


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("train.py", PLAIN),
        ("run.sh", 'set -e\npython train.py --lr=3e-4 data.path=x $TOKEN\nif [ "$A" = x ]; then\n  ls\nfi\n'),
        (
            "axolotl.yaml",
            "base_model: Qwen/Qwen3\nlearning_rate: 2e-4\ndatasets:\n  - path: x\n    type: alpaca\n",
        ),
        ("ds.json", '{\n  "zero_optimization": {\n    "stage": 3\n  }\n}\n'),
    ],
)
def test_code_that_sets_no_environment_is_shown_as_it_is(path: str, text: str) -> None:
    (found,) = code_differences({}, {path: text.encode()})
    assert [line[1:] for line in found.lines[1:]] == text.splitlines()


def test_command_is_shown_without_what_it_assigns() -> None:
    command = """f"export TOKEN={T} A='x y' && python train.py --lr={LR}\""""
    source = f"from truss_train import *\nT = 'zq1'\nLR = 3e-4\nr = Runtime(start_commands=[{command}])\n"
    shown = everything_shown({}, {"config.py": source.encode(), "train.py": b"x = 'shown'\n"})
    assert "f'export TOKEN=<new value> A=<new value> && python train.py --lr={LR}'" in shown
    assert "LR = 3e-4" in shown and "zq1" not in shown and "x = 'shown'" in shown


def test_only_what_a_config_reads_is_treated_like_it() -> None:
    config = "from truss_train import Runtime\nfrom lib.vars import E\nr = Runtime(start_commands=['bash run.sh'])\n"
    texts = {
        "config.py": config,
        "lib/vars.py": "E = {'a': 'zq1'}\nB = 'zq2'\n",
        "lib/net.py": "DEPTH = 12\n",
        "run.sh": "python lib/net.py\n",
    }
    shown = everything_shown({}, {path: text.encode() for path, text in texts.items()})
    assert (
        "zq" not in shown
        and re.search(r"DEPTH = 12\n", shown)
        and "python lib/net.py" in shown
        and "'bash run.sh'" in shown
    )


@pytest.mark.parametrize("named_by", ["config.py", "second.py"])
def test_module_that_one_file_names_and_another_imports_is_treated_like_a_config(named_by: str) -> None:
    texts = {
        "config.py": "import truss_train, loader, second\n",
        "second.py": "",
        "loader.py": "import importlib\ndef load(name): return importlib.import_module(name)\n",
        "values.py": "TOKEN = 'zq1'\n",
        "net.py": "DEPTH = 'shown'\n",
    }
    texts[named_by] += "loader.load('values')\n"
    shown = everything_shown({}, {path: text.encode() for path, text in texts.items()})
    assert "zq1" not in shown and "DEPTH = 'shown'" in shown


def test_each_module_of_a_long_chain_of_imports_is_read_a_constant_number_of_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read_counts: list[int] = []
    shown_literals = redaction._shown_literals

    def counted(configs: Iterable[ast.Module]) -> set[int]:
        trees = list(configs)
        read_counts.append(len(trees))
        return shown_literals(trees)

    monkeypatch.setattr(redaction, "_shown_literals", counted)
    chain = {f"m{n}.py": f"import m{n + 1}\nA = 'zq{n}'\n".encode() for n in range(30)}
    shown = everything_shown({}, {"config.py": b"import truss_train, m0\n", **chain})
    assert "zq" not in shown and sum(read_counts) <= 2 * (len(chain) + 1)
