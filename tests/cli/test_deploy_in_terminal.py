"""deploy_checkpoints asking at a real terminal, answered with keys."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.deploying_server import DeployingServer, broken_loss, listed_checkpoint
from support.stranger import job
from support.terminal import AtTerminal

ENTER, DOWN, BACK, ESCAPE, WIPE = b"\r", b"\x1b[B", b"\x1b[Z", b"\x1b", b"\x15"
LAST_QUESTION = "What next?"


def person(environ: dict[str, str], folder: Path, *arguments: str) -> AtTerminal:
    """Somebody at a terminal of 80×24; standard output is a pipe."""
    settings = {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    return AtTerminal(
        *arguments, environ={**os.environ, **environ, **settings}, folder=folder, output_apart=True
    )


@pytest.fixture
def server() -> Iterator[DeployingServer]:
    with DeployingServer() as server:
        server.checkpoints = [listed_checkpoint("checkpoint-100", r=24)]
        yield server


def test_from_a_filtered_job_to_the_model_with_a_wrong_rank_and_a_step_back(
    server: DeployingServer, tmp_path: Path
) -> None:
    server.jobs = [job(), *(job(f"other{number}") for number in range(30))]
    with person(server.environ(), tmp_path, "deploy", "-o", "json") as someone:
        someone.sees("[1/", "type to filter")
        someone.types(b"job1")
        someone.sees("/ job1")
        someone.types(ENTER)
        someone.sees("Which job's checkpoints? job1", "Which checkpoints?")
        someone.types(ENTER)
        someone.sees("Which base model?")
        someone.types(ENTER)
        someone.sees("Which LoRA rank? 32")
        someone.types(WIPE + b"24\r")
        someone.sees("8, 16, 32, 64, 128, 256, 320, 512")
        someone.types(WIPE + b"64\r")
        someone.sees("What's the model's name?")
        someone.types(BACK)
        someone.sees("Which LoRA rank? 64")
        someone.types(ENTER)
        someone.sees("What's the model's name?")
        someone.types(WIPE + b"tuned\r")
        someone.sees("Which GPUs?")
        someone.types(DOWN + ENTER)
        someone.sees("Hugging Face token?")
        someone.types(ENTER)
        someone.sees("environment variables?")
        someone.types(b"A=1\r")
        someone.sees("set: A")
        someone.types(ENTER)
        someone.sees("from secrets?")
        someone.types(ENTER)
        someone.sees(LAST_QUESTION)
        assert server.requests == []
        someone.types(ENTER)
        someone.sees("Deploy tuned (checkpoint-100) on L4:1 · $6.00 an hour?")
        assert server.requests == []
        someone.types(b"y")
        code, out = someone.end(), someone.output.decode()

    assert code == 0
    document = json.loads(out)
    assert document["model_id"] == "model0"
    (chosen,) = document["config"]["checkpoint_details"]["checkpoints"]
    assert chosen["lora_details"]["rank"] == 64
    (request,) = server.requests
    assert request["instance_type_id"] == "l4:1x1"
    assert [each["name"] for each in request["inference_stack"]["environment_variables"]] == ["HF_TOKEN", "A"]


def given(*more: str) -> tuple[str, ...]:
    """Options that leave nothing to ask but the last question."""
    return (
        *("deploy", "--job-id", "job1", "--checkpoint", "checkpoint-100"),
        *("--model-name", "tuned", "--gpu", "L4", *more),
    )


def test_a_failed_call_and_enter_alone_deploy_nothing_and_lose_no_answer(
    server: DeployingServer, tmp_path: Path
) -> None:
    server.trouble = "refused"
    with person(server.environ(), tmp_path, *given()) as someone:
        someone.sees(LAST_QUESTION)
        someone.types(ENTER)
        someone.sees("Deploy tuned")
        someone.types(b"y")
        someone.sees("no such checkpoint")
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
        code, out = someone.end(), someone.output.decode()

    assert (code, out) == (130, "")
    assert len(server.requests) == 1


def test_saved_from_the_review_and_deployed_from_the_file(server: DeployingServer, tmp_path: Path) -> None:
    with person(server.environ(), tmp_path, *given("--env", "A=it's")) as someone:
        someone.sees(LAST_QUESTION)
        someone.types(DOWN * 2 + ENTER)
        someone.sees("Save as deploy.py")  # the question; "Save as" alone is also in the list before it
        someone.types(WIPE + b"saved.py\r")
        someone.sees("saved saved.py")
        someone.sees(LAST_QUESTION)
        someone.types(ESCAPE)
        someone.sees("Leave without deploying?")
        someone.types(b"y")
        assert someone.end() == 0
    with person(
        server.environ(), tmp_path, "deploy", "--config", "saved.py", "--dry-run", "-o", "json"
    ) as again:
        code, out = again.end(), again.output.decode()

    assert code == 0
    assert json.loads(out)["config"]["runtime"]["environment_variables"] == {"A": "it's"}
    assert server.wet == []


def test_a_dry_run_that_fails_does_not_turn_into_a_deployment(
    server: DeployingServer, tmp_path: Path
) -> None:
    server.trouble = "refused"
    with person(server.environ(), tmp_path, "deploy", "--job-id", "job1", "--dry-run") as someone:
        asked = ("checkpoints?", "base model?", "LoRA rank?", "model's name?", "GPUs?")
        for words in (*asked, "token?", "environment variables?", "from secrets?"):
            someone.sees(words)
            someone.types(ENTER)
        someone.sees("no such checkpoint")
        someone.sees(LAST_QUESTION)
        server.trouble = ""
        someone.types(ENTER)
        code, out = someone.end(), someone.output.decode()
    assert code == 0
    assert "dry_run" in out
    assert server.wet == []


def test_words_of_the_server_do_not_reach_the_terminal_as_commands(
    server: DeployingServer, tmp_path: Path
) -> None:
    server.checkpoints = [listed_checkpoint("evil\x1b]0;pwned\x07", base="b\x1b[2Jad")]
    with person(server.environ(), tmp_path, "deploy", "--job-id", "job1") as someone:
        someone.sees("Which checkpoints?")
        someone.types(ENTER)
        someone.sees("Which base model?")
        someone.types(b"\x03")
        code = someone.end()
    assert code == 130
    assert b"\x1b]0;" not in someone.shown
    assert b"pwned\x07" not in someone.shown
    assert b"b\x1b[2Jad" not in someone.shown


def test_an_unfinished_checkpoint_is_named_and_not_marked(server: DeployingServer, tmp_path: Path) -> None:
    unfinished = listed_checkpoint("checkpoint-200", r=8, sync_status="SYNCING")
    server.checkpoints = [unfinished, *server.checkpoints]
    chosen = ("--job-id", "job1", "--checkpoint", "checkpoint-200")
    with person(server.environ(), tmp_path, "deploy", *chosen) as someone:
        someone.sees("checkpoint-200: still uploading")
        someone.sees("Which checkpoints?")
        someone.types(b" \r")
        someone.sees("Which base model?")
        someone.types(ESCAPE)
        someone.sees("Leave without deploying?")
        someone.types(b"y")
        assert someone.end() == 130


def test_a_checkpoint_after_a_broken_loss_is_asked_for_again(server: DeployingServer, tmp_path: Path) -> None:
    broken_loss(server)
    chosen = ("--job-id", "job1", "--checkpoint", "checkpoint-200", "--model-name", "tuned", "--gpu", "L4")
    with person(server.environ(), tmp_path, "deploy", *chosen) as someone:
        someone.sees("after the loss became NaN (")
        someone.sees(LAST_QUESTION)
        someone.types(ENTER)
        someone.sees("despite the warning above?")
        someone.types(ENTER)
        someone.sees(LAST_QUESTION)
        someone.types(ESCAPE)
        someone.sees("Leave without deploying?")
        someone.types(b"y")
        assert someone.end() == 130
    assert server.requests == []
