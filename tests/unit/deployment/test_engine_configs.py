"""Configs of an engine and of a Truss with vLLM: what Baseten documents, and nothing for what it does not."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from api_client.deployment import ENGINE, VLLM, checkpoint_address, engine_configs
from api_client.models import Checkpoint, TrainingJob
from support.wizard_facts import checkpoint, job, lora

JOB = job("abc123", training_project={"id": "p1", "name": "my-training-project"})
FULL = checkpoint("checkpoint-100", "full")
NAME = 'mine: "the\nbest" #1'


def configs(
    checkpoint: Checkpoint = FULL, of_job: TrainingJob = JOB, gpu_count: int = 1
) -> dict[str, dict[str, Any]]:
    made = engine_configs(of_job, checkpoint, model_name=NAME, gpu=f"H100:{gpu_count}")
    assert all("truss push" in text for text in made.values())
    return {name: yaml.safe_load(text) for name, text in made.items()}


@pytest.mark.proves("docs/commands.md", "Inspect, download and deploy checkpoints")
def test_engine_config_is_the_documented_one() -> None:
    assert configs()[ENGINE] == {
        "model_name": NAME,
        "resources": {"accelerator": "H100", "use_gpu": True},
        "trt_llm": {
            "build": {
                "base_model": "decoder",
                "checkpoint_repository": {
                    "source": "BASETEN_TRAINING",
                    "repo": "my-training-project",
                    "revision": "abc123/checkpoint-100",
                },
            }
        },
    }


def test_truss_with_vllm_mounts_the_checkpoint_by_its_address() -> None:
    made = configs()[VLLM]
    address = "bt://my-training-project@abc123/checkpoint-100"
    assert made["weights"] == [{"source": address, "mount_location": "/models/checkpoint"}]
    assert made["docker_server"]["start_command"] == (
        "vllm serve /models/checkpoint --served-model-name checkpoint-100 --host 0.0.0.0 --port 8000"
    )
    assert made["docker_server"]["server_port"] == 8000 and made["model_name"] == NAME


def test_several_gpus_share_the_weights() -> None:
    made = configs(gpu_count=4)
    assert {each["resources"]["accelerator"] for each in made.values()} == {"H100:4"}
    assert made[ENGINE]["trt_llm"]["build"]["tensor_parallel_count"] == 4
    assert "--tensor-parallel-size 4" in made[VLLM]["docker_server"]["start_command"]


@pytest.mark.parametrize(
    ("other", "of_job"),
    [
        (lora("adapter"), JOB),
        (checkpoint("speech", "whisper"), JOB),
        (checkpoint(".", "full"), JOB),
        (checkpoint("a/b", "full"), JOB),
        (checkpoint("$(rm)\n", "full"), JOB),
        (FULL, job("abc123")),
        (FULL, job("abc123", training_project={"id": "p1", "name": "two words"})),
    ],
)
def test_nothing_is_made_of_what_is_not_documented(other: Checkpoint, of_job: TrainingJob) -> None:
    assert configs(other, of_job) == {}


def test_address_names_project_job_and_checkpoint() -> None:
    assert checkpoint_address(JOB, "checkpoint-1") == "bt://my-training-project@abc123/checkpoint-1"
    assert checkpoint_address(JOB, ".") == checkpoint_address(job("abc123"), "checkpoint-1") == ""
