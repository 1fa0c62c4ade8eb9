"""A job with checkpoints of every kind, the account's machines, and answers to the wizard."""

from __future__ import annotations

from functools import partial
from typing import Any

from api_client.deployment import DeployAnswers
from api_client.models import Checkpoint
from support.deploying_server import LLAMA, listed_checkpoint, listed_instance

JOB_ID = "gvpql31"
PROJECT_ID = "aghi527"
checkpoint_data = partial(listed_checkpoint, job_id=JOB_ID)


def checkpoint(name: str, kind: str | None = "lora", **more: Any) -> Checkpoint:
    return Checkpoint.model_validate(checkpoint_data(name, kind, **more))


HOSTILE_NAME = 'it\'s "quoted" \\ {x}-4'

CHECKPOINT_DATA = [
    *(checkpoint_data("checkpoint-100"), checkpoint_data("checkpoint-200", r=24)),
    *(checkpoint_data(HOSTILE_NAME, r=8), checkpoint_data("merged", "full"), checkpoint_data(".", "full")),
    checkpoint_data("whisper-5", "whisper"),
]
CHECKPOINTS = [Checkpoint.model_validate(each) for each in CHECKPOINT_DATA]


LISTED_INSTANCES = [
    listed_instance("H100", 2, node_count=2),
    *(listed_instance("H100", count) for count in (8, 4, 1)),
    *(listed_instance("A10G", 1), listed_instance(None, 0)),
]

answers = partial(DeployAnswers, job_id=JOB_ID)
EXAMPLES: dict[str, DeployAnswers] = {
    "two_adapters": answers(
        checkpoint_names=("checkpoint-100", "checkpoint-200"),
        base_model=LLAMA,
        lora_rank=32,
        model_name="llama-support",
        gpu="H100:2",
        hf_secret="hf_access_token",
        environment=(("VLLM_LOGGING_LEVEL", "DEBUG"),),
        secrets=(("WANDB_API_KEY", "wandb"),),
    ),
    "hostile": answers(
        checkpoint_names=(HOSTILE_NAME,),
        base_model="o\"rg/mo'del\\n",
        lora_rank=8,
        model_name="naïve \u202e \"model\" '''",
        gpu="A10G:1",
        environment=(("LINES", "one\ntwo\ttab \x1b[31m\x00"), ("EMPTY", ""), ("Q'", '"""')),
    ),
    "full_root": answers(checkpoint_names=(".",), model_name="root", gpu="H100:4", environment=(("A", "b"),)),
    "whisper": answers(
        checkpoint_names=("whisper-5",),
        base_model="openai/whisper-large-v3",
        model_name="whisper",
        gpu="A10G",
        hf_secret="hf",
    ),
    "without_gpu": answers(checkpoint_names=("merged",), model_name="small", hf_secret="hf"),
}
"""Answers whose files (``examples/``) were given to the official CLI (``support/record_official.py``)."""
