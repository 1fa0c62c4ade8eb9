"""deploy_checkpoints asking at a real terminal, answered with keys."""

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from deployer import Deployer, checkpoint

from support.stranger import Answer, Stranger, job

ROOT = Path(__file__).parents[2]
LIMIT_S = 60.0
ROWS, COLUMNS = 24, 80
ENTER, DOWN, BACK, ESCAPE, WIPE = b"\r", b"\x1b[B", b"\x1b[Z", b"\x1b", b"\x15"
CONTROL = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\r")
LAST_QUESTION = "What now?"


class Person:
    """Somebody at a terminal of 80×24; standard output is a pipe."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int) -> None:
        self.process = process
        self.terminal = terminal
        self.shown = b""
        self._read_to = 0

    def sees(self, words: str) -> None:
        """Wait until these words come, after those seen before."""
        deadline = time.monotonic() + LIMIT_S
        while words not in self._fresh():
            readable, _, _ = select.select([self.terminal], [], [], max(0.0, deadline - time.monotonic()))
            assert readable, f"{words!r} was not shown: {self._fresh()}"
            chunk = self._read()
            assert chunk, f"it ended without {words!r}: {self._fresh()}"
            self.shown += chunk
        self._read_to = len(self.shown)

    def types(self, keys: bytes) -> None:
        os.write(self.terminal, keys)

    def ends(self) -> tuple[int, str]:
        """Exit code and standard output."""
        while chunk := self._read():
            self.shown += chunk
        out, _ = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, out.decode()

    def _fresh(self) -> str:
        # The terminal's own line breaks at its edge are no part of the words.
        return CONTROL.sub(b"", self.shown[self._read_to :]).decode(errors="replace").replace("\n", "")

    def _read(self) -> bytes:
        try:
            return os.read(self.terminal, 65536)
        except OSError:  # Linux's way to say that the other end is closed
            return b""


@contextmanager
def person(environ: dict[str, str], folder: Path, *arguments: str) -> Iterator[Person]:
    terminal, other_end = pty.openpty()
    fcntl.ioctl(other_end, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    settings = {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "tui", *arguments],
        cwd=folder,
        env={**os.environ, **environ, **settings},
        stdin=other_end,
        stdout=subprocess.PIPE,
        stderr=other_end,
    )
    os.close(other_end)
    try:
        yield Person(process, terminal)
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
        os.close(terminal)


@pytest.fixture
def deployer() -> Iterator[Deployer]:
    with Stranger() as stranger:
        yield Deployer(stranger, checkpoints=[checkpoint("checkpoint-100", lora_adapter_config={"r": 24})])


def test_from_the_job_to_the_model_with_a_wrong_rank_and_a_step_back(deployer, tmp_path):
    deployer.stranger.jobs = [job(), job("job0", created_at="2020-01-01T00:00:00Z")]
    with person(deployer.stranger.environ(), tmp_path, "deploy", "-o", "json") as someone:
        someone.sees("[1/")
        someone.types(ENTER)
        someone.sees("Which checkpoints?")
        someone.types(ENTER)
        someone.sees("Which base model?")
        someone.types(ENTER)
        someone.sees("Which LoRA rank? 32")
        someone.types(WIPE + b"24\r")
        someone.sees("8, 16, 32, 64, 128, 256, 320, 512")
        someone.types(WIPE + b"64\r")
        someone.sees("What is the model called?")
        someone.types(BACK)
        someone.sees("Which LoRA rank? 64")
        someone.types(ENTER)
        someone.sees("What is the model called?")
        someone.types(WIPE + b"tuned\r")
        someone.sees("Which GPUs?")
        someone.types(DOWN + ENTER)
        someone.sees("Hugging Face token?")
        someone.types(ENTER)
        someone.sees("environment variables?")
        someone.types(b"A=1\r")
        someone.sees("set: A")
        someone.types(ENTER)
        someone.sees("out of secrets?")
        someone.types(ENTER)
        someone.sees(LAST_QUESTION)
        assert deployer.requests == []
        someone.types(ENTER)
        someone.sees("Deploy tuned (checkpoint-100) on L4:1 · L4:1 · $6.00 an hour?")
        assert deployer.requests == []
        someone.types(b"y")
        code, out = someone.ends()

    assert code == 0
    document = json.loads(out)
    assert document["model_id"] == "m1"
    (chosen,) = document["config"]["checkpoint_details"]["checkpoints"]
    assert chosen["lora_details"]["rank"] == 64
    (request,) = deployer.requests
    assert request["instance_type_id"] == "L4-1"
    assert [each["name"] for each in request["inference_stack"]["environment_variables"]] == ["HF_TOKEN", "A"]


def given(*more: str) -> tuple[str, ...]:
    """Options that leave nothing to ask but the last question."""
    return (
        *("deploy", "--job-id", "job1", "--checkpoint", "checkpoint-100"),
        *("--model-name", "tuned", "--gpu", "L4", *more),
    )


def test_enter_alone_at_the_last_question_deploys_nothing(deployer, tmp_path):
    with person(deployer.stranger.environ(), tmp_path, *given()) as someone:
        someone.sees(LAST_QUESTION)
        someone.types(ENTER)
        someone.sees("Deploy tuned")
        someone.types(ENTER)
        someone.sees(LAST_QUESTION)
        someone.types(ESCAPE)
        someone.sees("Leave without deploying?")
        someone.types(b"n")
        someone.sees(LAST_QUESTION)
        someone.types(ESCAPE)
        someone.sees("Leave without deploying?")
        someone.types(b"y")
        code, out = someone.ends()

    assert (code, out) == (130, "")
    assert deployer.requests == []


def test_a_failed_call_loses_no_answer(deployer, tmp_path):
    deployer.fails = Answer(body={"errors": [{"message": "no machine is free"}]})
    with person(deployer.stranger.environ(), tmp_path, *given()) as someone:
        someone.sees(LAST_QUESTION)
        someone.types(ENTER)
        someone.sees("Deploy tuned")
        someone.types(b"y")
        someone.sees("no machine is free")
        someone.sees(LAST_QUESTION)
        deployer.fails = None
        someone.types(ENTER)
        someone.sees("Deploy tuned")
        someone.types(b"y")
        code, _ = someone.ends()

    assert code == 0
    assert deployer.requests[0] == deployer.requests[1]


def test_saved_from_the_review_and_deployed_from_the_file(deployer, tmp_path):
    with person(deployer.stranger.environ(), tmp_path, *given("--env", "A=it's")) as someone:
        someone.sees(LAST_QUESTION)
        someone.types(DOWN * 2 + ENTER)
        someone.sees("Save as")
        someone.types(WIPE + b"saved.py\r")
        someone.sees("saved saved.py")
        someone.sees(LAST_QUESTION)
        someone.types(ESCAPE)
        someone.sees("Leave without deploying?")
        someone.types(b"y")
        assert someone.ends()[0] == 0
    with person(
        deployer.stranger.environ(), tmp_path, "deploy", "--config", "saved.py", "--dry-run", "-o", "json"
    ) as again:
        code, out = again.ends()

    assert code == 0
    assert json.loads(out)["config"]["runtime"]["environment_variables"] == {"A": "it's"}
    assert deployer.wet == []


def test_a_dry_run_that_fails_does_not_turn_into_a_deployment(deployer, tmp_path):
    deployer.fails = Answer(body={"errors": [{"message": "not today"}]})
    with person(deployer.stranger.environ(), tmp_path, "deploy", "--job-id", "job1", "--dry-run") as someone:
        for words in (
            "Which checkpoints?",
            "Which base model?",
            "Which LoRA rank?",
            "called?",
            "Which GPUs?",
        ):
            someone.sees(words)
            someone.types(ENTER)
        for words in ("token?", "environment variables?", "out of secrets?"):
            someone.sees(words)
            someone.types(ENTER)
        someone.sees("not today")
        someone.sees(LAST_QUESTION)
        deployer.fails = None
        someone.types(ENTER)
        code, out = someone.ends()

    assert code == 0
    assert "dry_run" in out
    assert deployer.wet == []


def test_words_of_the_server_do_not_reach_the_terminal_as_commands(deployer, tmp_path):
    deployer.checkpoints = [checkpoint("evil\x1b]0;pwned\x07", base_model="b\x1b[2Jad")]
    with person(deployer.stranger.environ(), tmp_path, "deploy", "--job-id", "job1") as someone:
        someone.sees("Which checkpoints?")
        someone.types(ENTER)
        someone.sees("Which base model?")
        someone.types(b"\x03")
        code, _ = someone.ends()

    assert code == 130
    assert b"\x1b]0;" not in someone.shown
    assert b"pwned\x07" not in someone.shown
    assert b"b\x1b[2Jad" not in someone.shown


def test_a_long_list_is_filtered_by_typing(deployer, tmp_path):
    deployer.stranger.jobs = [job(f"job{number}") for number in range(1, 31)]
    with person(deployer.stranger.environ(), tmp_path, "deploy") as someone:
        someone.sees("type to filter")
        someone.types(b"job27")
        someone.sees("/ job27")
        someone.types(ENTER)
        someone.sees("Which job's checkpoints? job27")
        someone.types(b"\x03")
        assert someone.ends()[0] == 130

    assert "/v1/training_projects/proj1/jobs/job27/checkpoints" in [
        each.path for each in deployer.stranger.asked
    ]
