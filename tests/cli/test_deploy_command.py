"""deploy_checkpoints: options, config files, what is missing, what is printed and asked at a terminal."""

import json
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from support.cli import RunCli
from support.deploying_server import LLAMA, TRUSS_CONFIG, DeployingServer, broken_loss, listed_checkpoint
from support.fake_baseten import Answer, job
from support.fake_runs import iso
from support.terminal import AtTerminal

NAMED = "deploy --job-id job1 --checkpoint checkpoint-100 --model-name tuned"
ENOUGH = f"{NAMED} --gpu H100:2"
ALL = f"{ENOUGH} --base-model {LLAMA} --lora-rank 32 --hf-secret hf_access_token"
RANKS = "use 16, 32, 64, 128, 256, 320, 512"


@pytest.fixture
def baseten(in_folder: None) -> Iterator[DeployingServer]:
    with DeployingServer() as server:
        yield server


def test_with_all_options_it_is_one_document_and_one_request(cli: RunCli, baseten: DeployingServer) -> None:
    command = f"{ALL} --env A=b=c --secret W=hf_access_token -o json"
    result = cli(f"{command} --yes".replace("deploy", "deploy_checkpoints", 1))
    document = result.json
    assert (document["model_id"], document["deployment_id"]) == ("model0", "dep0")
    assert document["link"] == f"{baseten.url}/models/model0/logs/dep0"
    assert document["models"] == ["checkpoint-100"]
    assert "checkpoint-100" in document["curl"] and "checkpoint-100" in document["python"]
    assert "on Baseten, call it as shown above" in result.err
    (request,) = baseten.requests
    assert (request["metadata"], request["instance_type_id"]) == ({"oracle_name": "tuned"}, "h100:2x1")
    assert request["inference_stack"]["environment_variables"] == [
        {"name": "HF_TOKEN", "value": "hf_access_token", "is_secret_reference": True},
        {"name": "A", "value": "b=c", "is_secret_reference": False},
        {"name": "W", "value": "hf_access_token", "is_secret_reference": True},
    ]
    for name in ("deploy-checkpoints", "deploy"):
        cli(f"{command} --dry-run".replace("deploy", name, 1))
    assert baseten.requests[1:] == [request | {"dry_run": True}] * 2


def test_a_dry_run_creates_nothing(cli: RunCli, baseten: DeployingServer, tmp_path: Path) -> None:
    """It writes the Truss config to a folder of its own, or the one that is named."""
    document = cli(f"{ENOUGH} --dry-run -o json").json
    assert (document["dry_run"], document["truss_config"]) == (True, TRUSS_CONFIG)
    written = tmp_path / document["truss_config_path"]
    assert yaml.safe_load(written.read_text()) == TRUSS_CONFIG
    assert written.parent.parent == tmp_path / "truss_configs"
    assert written.parent.name.startswith("dry_run_")
    told = cli(f"{ENOUGH} --dry-run --yes --truss-config-output-dir out")
    assert (tmp_path / "out" / "config.yaml").exists()
    assert "gpu           H100:2 · $12.00 an hour" in told.out
    assert (baseten.wet, len(baseten.requests)) == ([], 2)


def test_job_is_found_by_its_name(cli: RunCli, baseten: DeployingServer) -> None:
    baseten.jobs[0]["name"] = "llama-8b-lora"
    cli(f"{ENOUGH} --yes".replace("job1", "8b-lora"))
    assert baseten.requests == baseten.wet
    assert "job1" in str(baseten.requests)


def test_missing_answers_are_named(cli: RunCli, baseten: DeployingServer) -> None:
    every_flag = "--job-id --checkpoint --model-name --gpu --yes"
    for command, missing in (("deploy", every_flag), (f"{NAMED} --yes", "--gpu"), (ALL, "--yes")):
        result = cli(f"{command} -o json", code=2)
        assert (result.out, baseten.requests) == ("", [])
        assert [flag for flag in missing.split() if flag not in result.err] == []
        assert "no checkpoints" not in result.err, "as no job was named"
    baseten.checkpoints = []
    none = cli("deploy --job-id job1 --model-name tuned --yes", code=2)
    assert "--checkpoint: this job has no checkpoints" in none.err and none.err.endswith("give --gpu\n")


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ("--lora-rank 24", 2, RANKS),
        ("--gpu H100:3", 2, "no GPU 'H100:3'; use H100:1"),
        ("--hf-secret nope", 2, "no secret 'nope'"),
        ("--env s3cret", 2, "NAME=value"),
        ("--env A=s3cret --env A=2", 2, "set twice"),
        ("--job-id nonesuch", 7, "nonesuch"),
        ("--checkpoint b", 7, "job job1 has no checkpoint 'b' (it has: bare, checkpoint-100, full, wide)"),
        ("--checkpoint checkpoint-100 --checkpoint full", 2, "only LoRA checkpoints"),
        ("--checkpoint wide", 2, "512"),
        ("--checkpoint bare", 2, "--base-model"),
    ],
)
def test_wrong_answers(cli: RunCli, baseten: DeployingServer, options: str, code: int, words: str) -> None:
    baseten.checkpoints += [
        listed_checkpoint("full", "full"),
        listed_checkpoint("wide", r=600),
        listed_checkpoint("bare", base=None),
    ]
    enough = ENOUGH.replace("--checkpoint checkpoint-100", "") if "--checkpoint" in options else ENOUGH
    result = cli(f"{enough} {options} --yes", code=code)
    assert (words in result.err, baseten.requests) == (True, []), result.err
    assert "s3cret" not in result.out + result.err


CONFIG = f"""
from truss.base import truss_config
from truss_train import definitions as of

adapter = of.LoRACheckpoint(
    training_job_id="job1", checkpoint_name="checkpoint-100", lora_details=of.LoRADetails(rank=32)
)
gpu = truss_config.AcceleratorSpec(accelerator=truss_config.Accelerator.H100, count=1)
config = of.DeployCheckpointsConfig(
    model_name="from-file",
    checkpoint_details=of.CheckpointList(base_model_id="{LLAMA}", checkpoints=[adapter]),
    compute=of.Compute(accelerator=gpu),
)
"""


@pytest.mark.proves("docs/commands.md", "`deploy_checkpoints`")
def test_options_win_over_a_config_file(cli: RunCli, baseten: DeployingServer, tmp_path: Path) -> None:
    (tmp_path / "deploy.py").write_text(CONFIG)
    by_file = "deploy --config deploy.py --dry-run"
    plain = cli(f"{by_file} -o json")
    cli(f"{by_file} -o json --gpu L4 --model-name x")
    other = cli(f"{by_file} --job-id job9", code=2)
    first, second = baseten.requests
    assert (first["metadata"], first["instance_type_id"]) == ({"oracle_name": "from-file"}, "h100:1x1")
    assert (second["metadata"], second["instance_type_id"]) == ({"oracle_name": "x"}, "l4:1x1")
    details = plain.json["config"]["checkpoint_details"]
    assert details["checkpoints"][0]["lora_details"]["rank"] == 32
    assert "job1" in other.err


def test_the_command_of_a_dry_run_sends_the_same_request(cli: RunCli, baseten: DeployingServer) -> None:
    first = cli(f'{ALL} --env "A=it\'s s3cret \\$HOME" --dry-run -o json')
    program, *arguments = shlex.split(first.json["command"])
    again = cli(*arguments, "--dry-run")
    assert program == "bt-tui"
    assert baseten.requests[0] == baseten.requests[1]
    assert "s3cret" not in again.out + again.err, "the value of a variable is not printed for people"


@pytest.mark.usefixtures("no_waits")
def test_waiting_fails_with_the_deployment(cli: RunCli, baseten: DeployingServer) -> None:
    baseten.created_at = iso(time.time())
    baseten.statuses = ["BUILDING", "LOADING_MODEL", "ACTIVE"]
    start = {"duration_ms": 9_000, "outcome": "SUCCESS", "phase_summary": []}
    baseten.on("GET", ".*/startups", Answer({"items": [start]}))
    good = cli(f"{ENOUGH} --yes --wait -o json")
    baseten.on("GET", ".*/startups", Answer(is_reset=True))
    baseten.statuses = ["BUILDING", "BUILD_FAILED"]
    bad = cli(f"{ENOUGH} --yes --wait -o json", code=5)
    assert good.json["status"] == "ACTIVE"
    assert "status: LOADING_MODEL" in good.err
    assert "last start: 9s" in good.err
    assert bad.json["status"] == "BUILD_FAILED"
    baseten.trouble, baseten.makes_it = "bad gateway", False
    cli(f"{ENOUGH} --yes", code=8)


def test_a_checkpoint_after_a_broken_loss_is_warned_about(cli: RunCli, baseten: DeployingServer) -> None:
    broken_loss(baseten)
    command = "deploy --job-id job1 --model-name x --gpu L4 --yes --checkpoint"
    bad, good = cli(f"{command} checkpoint-200"), cli(f"{command} checkpoint-100")
    assert "'checkpoint-200' was written" in bad.err and "after the loss became NaN (" in bad.err
    assert "best: 'checkpoint-100'" in bad.err
    assert "NaN" not in good.err


Start = Callable[..., AtTerminal]
ENTER, DOWN, BACK, ESCAPE, WIPE = b"\r", b"\x1b[B", b"\x1b[Z", b"\x1b", b"\x15"
LAST_QUESTION = "What next?"
CHOSEN = "deploy --job-id job1 --checkpoint checkpoint-100 --model-name tuned --gpu L4"
"""Options that leave nothing to ask but the last question."""


@pytest.mark.proves("docs/commands.md", "`deploy_checkpoints`")
def test_from_a_filtered_job_to_the_model_with_a_wrong_rank_and_a_step_back(
    at_terminal: Start, baseten: DeployingServer
) -> None:
    baseten.checkpoints = [listed_checkpoint("checkpoint-100", r=24)]
    baseten.jobs = [job(), *(job(f"other{number}") for number in range(30))]
    with at_terminal("deploy", "-o", "json", output_apart=True) as someone:
        someone.sees("[1] ", "type to filter")
        someone.types(b"job1")
        someone.answers(("/ job1", ENTER))
        someone.sees("Which job's checkpoints? job1", "Which checkpoints?")
        someone.types(ENTER)
        someone.answers(
            ("Which base model?", ENTER),
            ("Which LoRA rank? 32", WIPE + b"24\r"),
            ("use 32, 64, 128, 256, 320, 512", WIPE + b"64\r"),
            ("What's the model's name?", BACK),
            ("Which LoRA rank? 64", ENTER),
            ("What's the model's name?", WIPE + b"tuned\r"),
            ("Which GPUs?", DOWN + ENTER),
            ("Hugging Face token?", ENTER),
            ("environment variables?", b"A=1\r"),
            ("from secrets?", ENTER),
            (LAST_QUESTION, ENTER),
        )
        someone.sees("Deploy tuned (checkpoint-100) on L4:1 · $6.00 an hour?")
        assert baseten.requests == []
        someone.types(b"y")
        assert someone.end() == 0
    document = json.loads(someone.output)
    assert document["model_id"] == "model0"
    (chosen,) = document["config"]["checkpoint_details"]["checkpoints"]
    assert chosen["lora_details"]["rank"] == 64
    (request,) = baseten.requests
    assert request["instance_type_id"] == "l4:1x1"
    assert [each["name"] for each in request["inference_stack"]["environment_variables"]] == ["HF_TOKEN", "A"]


def test_warnings_a_refusal_and_enter_alone_deploy_nothing_and_what_is_saved_can_be_deployed(
    cli: RunCli, at_terminal: Start, baseten: DeployingServer
) -> None:
    broken_loss(baseten)
    baseten.trouble = "refused"
    faulty = CHOSEN.replace("checkpoint-100", "checkpoint-200")
    with at_terminal(*faulty.split(), "--env", "A=its", output_apart=True) as someone:
        someone.sees("after the loss became NaN (", LAST_QUESTION)
        someone.types(ENTER)
        someone.answers(("above?", ENTER))
        assert baseten.requests == []
        someone.answers((LAST_QUESTION, ENTER), ("above?", b"y"))
        someone.sees("no such checkpoint", LAST_QUESTION)
        someone.types(ESCAPE)
        someone.answers(("Leave without deploying?", b"n"))
        # "Save as" alone is also in the list before the question.
        someone.answers((LAST_QUESTION, DOWN * 2 + ENTER), ("Save as deploy.py", WIPE + b"saved.py\r"))
        someone.sees("saved saved.py", LAST_QUESTION)
        someone.types(ESCAPE)
        someone.answers(("Leave without deploying?", b"y"))
        assert (someone.end(), someone.output, len(baseten.requests)) == (0, b"", 1)
    baseten.trouble = ""
    again = cli("deploy --config saved.py --dry-run -o json")
    variables = again.json["config"]["runtime"]["environment_variables"]
    assert (variables["A"], variables["HF_TOKEN"]["name"]) == ("its", "hf_access_token")


@pytest.mark.parametrize("option", ["--env HF_TOKEN=mine", "--secret HF_TOKEN=hf_access_token"])
def test_token_that_is_given_takes_the_place_of_the_usual_secret(
    cli: RunCli, baseten: DeployingServer, option: str
) -> None:
    document = cli(f"{ENOUGH} --base-model {LLAMA} --lora-rank 32 {option} --dry-run -o json").json
    names = document["config"]["runtime"]["environment_variables"]
    assert list(names) == ["HF_TOKEN"]


def test_rank_that_no_adapter_fits_is_refused_first_and_replaced_by_one_that_does(
    at_terminal: Start, baseten: DeployingServer
) -> None:
    with at_terminal("deploy", "--job-id", "job1", "--lora-rank", "8") as someone:
        someone.sees("--lora-rank: 8 is below the adapter's rank 16; use 16, 32", "Which checkpoints?")
        someone.types(ENTER)
        someone.answers(("Which base model?", ENTER))
        someone.sees("Which LoRA rank? 16")


def test_full_checkpoint_is_saved_as_an_engine_config_with_the_command_that_deploys_it(
    at_terminal: Start, baseten: DeployingServer, tmp_path: Path
) -> None:
    baseten.checkpoints = [listed_checkpoint("checkpoint-100", kind="full", base_model="org/tuned-8B")]
    with at_terminal(*CHOSEN.split(), output_apart=True) as someone:
        someone.answers((LAST_QUESTION, DOWN * 3 + ENTER), ("Save as engine/config.yaml", ENTER))
        someone.sees("deploy it with: truss push engine", LAST_QUESTION)
        someone.types(ESCAPE)
        someone.answers(("Leave without deploying?", b"y"))
        assert someone.end() == 0
    assert "source: BASETEN_TRAINING" in (tmp_path / "engine" / "config.yaml").read_text()
    assert baseten.requests == []


def test_a_dry_run_that_fails_stays_a_dry_run(at_terminal: Start, baseten: DeployingServer) -> None:
    baseten.trouble = "refused"
    baseten.checkpoints.append(listed_checkpoint("other", base="meta-llama/Another-Model-8B-Instruct"))
    with at_terminal("deploy", "--job-id", "job1", "--dry-run", output_apart=True) as someone:
        mark = DOWN + b" " + ENTER
        someone.answers(("checkpoints?", mark), ("cannot be served together", mark))
        asked = "base model?,LoRA rank?,model's name?,GPUs?,token?,environment variables?,from secrets?"
        for words in asked.split(","):
            someone.answers((words, ENTER))
        someone.sees("no such checkpoint", LAST_QUESTION)
        baseten.trouble = ""
        someone.types(ENTER)
        assert (someone.end(), b"dry_run" in someone.output) == (0, True)
    assert baseten.wet == []
