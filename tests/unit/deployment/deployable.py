"""A job with checkpoints of every kind, the account's machines, and answers to the wizard."""

from __future__ import annotations

from typing import Any

from api_client.deployment import DeployAnswers
from api_client.models import Checkpoint

JOB_ID = "gvpql31"
PROJECT_ID = "aghi527"
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
CREATED = "2026-01-02T03:04:05Z"


def checkpoint_data(
    name: str, kind: str | None = "lora", *, r: object = 16, base: str | None = LLAMA, **more: Any
) -> dict[str, Any]:
    """As the API answers it; ``r`` counts for LoRAs, ``...`` leaves it out of the adapter's config."""
    config = None if kind != "lora" else {"lora_alpha": 32} if r is ... else {"lora_alpha": 32, "r": r}
    return {
        "checkpoint_id": name,
        "created_at": CREATED,
        "checkpoint_type": kind,
        "base_model": base if kind == "lora" else None,
        "lora_adapter_config": config,
        "size_bytes": 83_945_296,
        "sync_status": "COMPLETE",
        "training_job_id": JOB_ID,
    } | more


def checkpoint(name: str, kind: str | None = "lora", **more: Any) -> Checkpoint:
    return Checkpoint.model_validate(checkpoint_data(name, kind, **more))


HOSTILE_NAME = 'it\'s "quoted" \\ {x}-4'

CHECKPOINT_DATA = [
    checkpoint_data("checkpoint-100"),
    checkpoint_data("checkpoint-200", r=24),
    checkpoint_data(HOSTILE_NAME, r=8),
    checkpoint_data("merged", "full"),
    checkpoint_data(".", "full"),
    checkpoint_data("whisper-5", "whisper"),
]
CHECKPOINTS = [Checkpoint.model_validate(each) for each in CHECKPOINT_DATA]


def listed_instance(gpu_type: str | None, gpu_count: int, node_count: int = 1) -> dict[str, Any]:
    """A machine as GraphQL lists it."""
    name = f"{gpu_type or 'CPU'}:{gpu_count}x{node_count}"
    return {
        "id": name.lower(),
        "name": name,
        "millicpuLimit": 8000,
        "memoryLimit": 32768,
        "gpuCount": gpu_count,
        "gpuType": gpu_type,
        "gpuMemory": 81920 if gpu_type else None,
        "default": False,
        "displayName": name,
        "nodeCount": node_count,
        "price": 0.1,
        "limitedCapacity": None,
    }


LISTED_INSTANCES = [
    listed_instance("H100", 2, node_count=2),
    listed_instance("H100", 8),
    listed_instance("H100", 4),
    listed_instance("H100", 1),
    listed_instance("A10G", 1),
    listed_instance(None, 0),
]

EXAMPLES: dict[str, DeployAnswers] = {
    "two_adapters": DeployAnswers(
        project_id=PROJECT_ID,
        job_id=JOB_ID,
        checkpoint_names=("checkpoint-100", "checkpoint-200"),
        base_model=LLAMA,
        lora_rank=32,
        model_name="llama-support",
        gpu_type="H100",
        gpu_count=2,
        hf_secret="hf_access_token",
        environment=(("VLLM_LOGGING_LEVEL", "DEBUG"),),
        secrets=(("WANDB_API_KEY", "wandb"),),
    ),
    "hostile": DeployAnswers(
        project_id=PROJECT_ID,
        job_id=JOB_ID,
        checkpoint_names=(HOSTILE_NAME,),
        base_model="o\"rg/mo'del\\n",
        lora_rank=8,
        model_name="naïve \u202e \"model\" '''",
        gpu_type="A10G",
        gpu_count=1,
        environment=(("LINES", "one\ntwo\ttab \x1b[31m\x00"), ("EMPTY", ""), ("Q'", '"""')),
    ),
    "full_root": DeployAnswers(
        project_id=PROJECT_ID,
        job_id=JOB_ID,
        checkpoint_names=(".",),
        model_name="root",
        gpu_type="H100",
        gpu_count=4,
        environment=(("A", "b"),),
    ),
    "whisper": DeployAnswers(
        project_id=PROJECT_ID,
        job_id=JOB_ID,
        checkpoint_names=("whisper-5",),
        base_model="openai/whisper-large-v3",
        model_name="whisper",
        gpu_type="A10G",
        hf_secret="hf",
    ),
    "without_gpu": DeployAnswers(
        project_id=PROJECT_ID,
        job_id=JOB_ID,
        checkpoint_names=("merged",),
        model_name="small",
        hf_secret="hf",
    ),
}
"""Answers whose files (``examples/``) were given to the official CLI (``record_official_requests.py``)."""
