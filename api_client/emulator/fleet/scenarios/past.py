"""Jobs that have ended when the demo world begins."""

from __future__ import annotations

from dataclasses import replace

from api_client.emulator.fleet.plans import JobPlan, Stage
from api_client.emulator.fleet.scenarios import runs
from api_client.emulator.fleet.scenarios.jobs import (
    A10G,
    ADA,
    CPU_SMALL,
    DAY_S,
    GRACE,
    H100,
    H100X8,
    H200X8,
    HOUR_S,
    KAI,
    L4,
    L4X4,
    MINUTE_S,
    MIRA,
    TOMAS,
    finished,
)
from api_client.models import JobStatus

_FAILED, _STOPPED = JobStatus.FAILED, JobStatus.STOPPED


def _never_deployed(plan: JobPlan, message: str) -> JobPlan:
    stages = (Stage(JobStatus.CREATED, 15.0), Stage(JobStatus.DEPLOYING, 95.0, "Pulling the image"))
    return replace(plan, stages=stages, outcome=JobStatus.DEPLOY_FAILED, message=message, exit_code=None)


PAST_JOBS: tuple[JobPlan, ...] = (
    finished(
        "llama-70b-sft-v2", "llama-sft", H100X8, 4, ADA, runs.LLAMA_70B_SFT, ago_s=21 * HOUR_S, waited_s=840
    ),
    finished(
        "llama-70b-sft-v1",
        "llama-sft",
        H100X8,
        4,
        ADA,
        runs.LLAMA_OUT_OF_MEMORY,
        ago_s=2.1 * DAY_S,
        ran_s=22 * MINUTE_S,
        outcome=_FAILED,
        message="node-0: exit code 1 (CUDA out of memory)",
        exit_code=1,
    ),
    finished("llama-8b-lora-r16", "llama-sft", H100X8, 1, GRACE, runs.LLAMA_8B_LORA, ago_s=5.2 * HOUR_S),
    finished(
        "mistral-24b-dpo-1", "llama-sft", H100X8, 1, ADA, runs.MISTRAL_DPO, ago_s=8 * HOUR_S, waited_s=600
    ),
    finished(
        "llama-8b-lora-draft",
        "llama-sft",
        H100X8,
        1,
        GRACE,
        runs.LLAMA_8B_LORA,
        ago_s=6.5 * HOUR_S,
        ran_s=11 * MINUTE_S,
        outcome=_STOPPED,
        message="Stopped by a user",
        exit_code=143,
    ),
    finished(
        "qwen3-grpo-6",
        "qwen3-grpo",
        H200X8,
        2,
        KAI,
        replace(runs.QWEN_GRPO, incidents=runs.LLAMA_OUT_OF_MEMORY.incidents),
        ago_s=7.4 * HOUR_S,
        ran_s=41 * MINUTE_S,
        outcome=_FAILED,
        message="node-0: exit code 1 (CUDA out of memory)",
        exit_code=1,
    ),
    finished(
        "qwen3-grpo-5", "qwen3-grpo", H200X8, 2, KAI, runs.QWEN_GRPO, ago_s=1.2 * DAY_S, waited_s=2 * HOUR_S
    ),
    finished(
        "qwen3-grpo-4",
        "qwen3-grpo",
        H200X8,
        2,
        KAI,
        runs.QWEN_GRPO,
        ago_s=2.8 * DAY_S,
        ran_s=4 * HOUR_S,
        outcome=JobStatus.PREEMPTED,
        message="Spot capacity was reclaimed",
        exit_code=143,
        availability="spot",
    ),
    finished("qwen3-8b-sft", "qwen3-grpo", H200X8, 1, GRACE, runs.QWEN_8B_SFT, ago_s=4 * MINUTE_S),
    finished("whisper-large-ft-2", "whisper-asr", A10G, 1, MIRA, runs.WHISPER_FT, ago_s=3.1 * HOUR_S),
    finished(
        "whisper-large-ft-1",
        "whisper-asr",
        A10G,
        1,
        MIRA,
        runs.WHISPER_FT,
        ago_s=1.9 * DAY_S,
        ran_s=8 * MINUTE_S,
        outcome=_STOPPED,
        message="Stopped by a user",
        exit_code=143,
    ),
    finished("whisper-small-ft", "whisper-asr", A10G, 1, MIRA, runs.WHISPER_SMALL, ago_s=26 * HOUR_S),
    finished("flux-lora-products", "flux-lora", H100, 1, MIRA, runs.FLUX_LORA, ago_s=50 * MINUTE_S),
    finished("flux-lora-sketches", "flux-lora", H100, 1, MIRA, runs.FLUX_LORA, ago_s=2.4 * DAY_S),
    _never_deployed(
        finished(
            "flux-lora-custom-image", "flux-lora", H100, 1, TOMAS, runs.BROKEN_IMAGE, ago_s=2.2 * HOUR_S
        ),
        'Failed to pull image "registry.demo.example/research/trainer:2.7-cu129": manifest unknown',
    ),
    finished(
        "retrieval-embed-v4", "retrieval-embed", L4X4, 1, TOMAS, runs.EMBEDDER, ago_s=1.4 * DAY_S, waited_s=90
    ),
    finished(
        "retrieval-embed-v3",
        "retrieval-embed",
        L4X4,
        1,
        TOMAS,
        runs.EMBEDDER,
        ago_s=3.3 * DAY_S,
        ran_s=95 * MINUTE_S,
        outcome=_FAILED,
        message="node-0: exit code 137 (killed: out of host memory)",
        exit_code=137,
    ),
    finished(
        "titan-warmup-test",
        "pretraining",
        H200X8,
        1,
        KAI,
        runs.TITAN,
        ago_s=5.1 * HOUR_S,
        ran_s=34 * MINUTE_S,
        outcome=_STOPPED,
        message="Stopped by a user",
        exit_code=143,
    ),
    finished("tokenize-slimpajama", "pretraining", CPU_SMALL, 1, KAI, runs.TOKENIZING, ago_s=1.7 * DAY_S),
    _never_deployed(
        finished("tokenize-typo", "pretraining", CPU_SMALL, 1, KAI, runs.NEVER_STARTED, ago_s=1.8 * DAY_S),
        'Secret "hf_acess_token" is not known to the project\'s team',
    ),
    finished("mmlu-llama-70b-v1", "evals", L4X4, 1, TOMAS, runs.EVALUATION, ago_s=1.0 * DAY_S),
    finished("mmlu-mistral-dpo-1", "evals", L4X4, 1, TOMAS, runs.EVALUATION, ago_s=6.8 * HOUR_S),
    finished(
        "ifeval-first-try",
        "evals",
        L4,
        1,
        TOMAS,
        runs.EVALUATION_IMPORT_ERROR,
        ago_s=20 * MINUTE_S,
        ran_s=6.0,
        outcome=_FAILED,
        message="node-0: exit code 1 (ModuleNotFoundError: No module named 'lm_eval')",
        exit_code=1,
    ),
)
