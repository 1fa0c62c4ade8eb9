"""deploy_checkpoints asking at a real terminal, answered with keys."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cli import RunCli
from support.deploying_server import DeployingServer, broken_loss, listed_checkpoint
from support.fake_baseten import job
from support.terminal import AtTerminal

ENTER, DOWN, BACK, ESCAPE, WIPE = b"\r", b"\x1b[B", b"\x1b[Z", b"\x1b", b"\x15"
LAST_QUESTION = "What next?"
CHOSEN = "deploy --job-id job1 --checkpoint checkpoint-100 --model-name tuned --gpu L4"
"""Options that leave nothing to ask but the last question."""


class Person(AtTerminal):
    """Somebody at a terminal of 80×24; standard output is a pipe."""

    def __init__(self, server: DeployingServer, folder: Path, command: str) -> None:
        settings = {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
        environ = {**os.environ, **server.environ(), **settings}
        super().__init__(*command.split(), environ=environ, folder=folder, output_apart=True)


@pytest.fixture
def server() -> Iterator[DeployingServer]:
    with DeployingServer() as server:
        server.checkpoints = [listed_checkpoint("checkpoint-100", r=24)]
        yield server


def test_from_a_filtered_job_to_the_model_with_a_wrong_rank_and_a_step_back(
    server: DeployingServer, tmp_path: Path
) -> None:
    server.jobs = [job(), *(job(f"other{number}") for number in range(30))]
    with Person(server, tmp_path, "deploy -o json") as someone:
        someone.sees("[1/", "type to filter")
        someone.types(b"job1")
        someone.answers(("/ job1", ENTER))
        someone.sees("Which job's checkpoints? job1", "Which checkpoints?")
        someone.types(ENTER)
        someone.answers(
            ("Which base model?", ENTER),
            ("Which LoRA rank? 32", WIPE + b"24\r"),
            ("8, 16, 32, 64, 128, 256, 320, 512", WIPE + b"64\r"),
            ("What's the model's name?", BACK),
            ("Which LoRA rank? 64", ENTER),
            ("What's the model's name?", WIPE + b"tuned\r"),
            ("Which GPUs?", DOWN + ENTER),
            ("Hugging Face token?", ENTER),
            ("environment variables?", b"A=1\r"),
            ("set: A", ENTER),
            ("from secrets?", ENTER),
            (LAST_QUESTION, ENTER),
        )
        someone.sees("Deploy tuned (checkpoint-100) on L4:1 · $6.00 an hour?")
        assert server.requests == []
        someone.types(b"y")
        assert someone.end() == 0
    document = json.loads(someone.output)
    assert document["model_id"] == "model0"
    (chosen,) = document["config"]["checkpoint_details"]["checkpoints"]
    assert chosen["lora_details"]["rank"] == 64
    (request,) = server.requests
    assert request["instance_type_id"] == "l4:1x1"
    assert [each["name"] for each in request["inference_stack"]["environment_variables"]] == ["HF_TOKEN", "A"]


def test_warnings_a_refusal_and_enter_alone_deploy_nothing_and_what_is_saved_can_be_deployed(
    cli: RunCli, server: DeployingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_loss(server)
    server.trouble = "refused"
    faulty = CHOSEN.replace("checkpoint-100", "checkpoint-200")
    with Person(server, tmp_path, f"{faulty} --env A=its") as someone:
        someone.sees("after the loss became NaN (")
        someone.answers((LAST_QUESTION, ENTER), ("despite the warnings above?", ENTER))
        assert server.requests == []
        someone.answers((LAST_QUESTION, ENTER), ("despite the warnings above?", b"y"))
        someone.sees("no such checkpoint")
        someone.answers((LAST_QUESTION, ESCAPE), ("Leave without deploying?", b"n"))
        # "Save as" alone is also in the list before the question.
        someone.answers((LAST_QUESTION, DOWN * 2 + ENTER), ("Save as deploy.py", WIPE + b"saved.py\r"))
        someone.sees("saved saved.py")
        someone.answers((LAST_QUESTION, ESCAPE), ("Leave without deploying?", b"y"))
        assert (someone.end(), someone.output, len(server.requests)) == (0, b"", 1)
    server.trouble = ""
    monkeypatch.chdir(tmp_path)
    again = cli("deploy --config saved.py --dry-run -o json", environ=server.environ())
    assert again.code == 0
    assert again.json["config"]["runtime"]["environment_variables"] == {"A": "its"}


def test_a_dry_run_that_fails_stays_a_dry_run(server: DeployingServer, tmp_path: Path) -> None:
    server.trouble = "refused"
    with Person(server, tmp_path, "deploy --job-id job1 --dry-run") as someone:
        asked = ("checkpoints?", "base model?", "LoRA rank?", "model's name?", "GPUs?")
        for words in (*asked, "token?", "environment variables?", "from secrets?"):
            someone.answers((words, ENTER))
        someone.sees("no such checkpoint")
        someone.sees(LAST_QUESTION)
        server.trouble = ""
        someone.types(ENTER)
        assert (someone.end(), b"dry_run" in someone.output) == (0, True)
    assert server.wet == []
