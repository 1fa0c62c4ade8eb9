"""Jobs that are running, or about to run, when the demo world begins."""

from __future__ import annotations

from api_client.emulator.fleet.plans import JobPlan, Stage
from api_client.emulator.fleet.scenarios import runs
from api_client.emulator.fleet.scenarios.jobs import (
    A10G,
    ADA,
    CPU_LARGE,
    GRACE,
    H100,
    H100X8,
    H200X8,
    HOUR_S,
    KAI,
    L4X4,
    MINUTE_S,
    MIRA,
    SPOT_HINT,
    TOMAS,
    running,
    upcoming,
)
from api_client.models import JobStatus

STALLED_S = 9 * MINUTE_S
"""Seconds since the last line of the hanging run when the world begins."""
HANG_AT_S = 23_306.0
WATCHDOG_S = 90 * MINUTE_S
"""Timeout of the hanging run's collectives."""

_FAILED = JobStatus.FAILED

RUNNING_JOBS: tuple[JobPlan, ...] = (
    running("llama-70b-sft-v3", "llama-sft", H100X8, 4, ADA, runs.LLAMA_70B_SFT, since_s=22_330),
    running(
        "qwen3-grpo-7",
        "qwen3-grpo",
        H200X8,
        2,
        KAI,
        runs.QWEN_GRPO_HANG,
        since_s=HANG_AT_S + STALLED_S,
        lasts_s=HANG_AT_S + WATCHDOG_S,
        outcome=_FAILED,
        message="node-1: exit code 134 (NCCL watchdog: collective operation timeout)",
        exit_code=134,
    ),
    running(
        "llama-70b-longctx-v1", "llama-sft", H100X8, 4, GRACE, runs.LLAMA_70B_STRAGGLER, since_s=3.4 * HOUR_S
    ),
    running("mistral-24b-dpo-2", "llama-sft", H100X8, 1, ADA, runs.MISTRAL_DPO_NAN, since_s=7_810),
    running("whisper-ft", "whisper-asr", A10G, 1, MIRA, runs.WHISPER_FT, since_s=1_510),
    running(
        "retrieval-embed-v5",
        "retrieval-embed",
        L4X4,
        1,
        TOMAS,
        runs.EMBEDDER_LEAK,
        since_s=1.5 * HOUR_S,
        lasts_s=3 * HOUR_S,
        outcome=_FAILED,
        message="node-0: exit code 1 (CUDA out of memory)",
        exit_code=1,
    ),
    running(
        "flux-lora-portraits",
        "flux-lora",
        H200X8,
        1,
        MIRA,
        runs.FLUX_FILLING_DISK,
        since_s=3 * HOUR_S,
        lasts_s=3.55 * HOUR_S,
        outcome=_FAILED,
        message="node-0: exit code 1 (no space left on device)",
        exit_code=1,
    ),
    running(
        "qwen3-14b-titan",
        "pretraining",
        H200X8,
        1,
        KAI,
        runs.TITAN,
        since_s=4.2 * HOUR_S,
        availability="spot",
    ),
    running(
        "nemotron-8b-cpt",
        "pretraining",
        H100X8,
        1,
        GRACE,
        runs.NEMOTRON,
        since_s=26 * HOUR_S,
        availability="spot",
        priority=2,
    ),
    running("qwen3-8b-dpo-4", "qwen3-grpo", H100, 1, KAI, runs.QWEN_8B_SAVES_NO_MORE, since_s=3 * HOUR_S),
    running("reward-model-v2", "qwen3-grpo", H100, 1, GRACE, runs.REWARD_MODEL_EXPLODES, since_s=5_420),
    running(
        "embed-multilingual-v1",
        "retrieval-embed",
        H100,
        2,
        TOMAS,
        runs.EMBEDDER_LOSES_A_NODE,
        since_s=2.25 * HOUR_S,
    ),
    running(
        "whisper-calls-resume",
        "whisper-asr",
        A10G,
        1,
        MIRA,
        runs.SPEECH_RESTARTS,
        since_s=2.6 * HOUR_S,
        lasts_s=8 * HOUR_S,
        outcome=_FAILED,
        message="node-0: exit code 1 (restarted too often)",
        exit_code=1,
    ),
    running("whisper-debug", "whisper-asr", A10G, 1, MIRA, runs.IDLE, since_s=2.5 * HOUR_S, lasts_s=None),
    running("tokenize-fineweb", "pretraining", CPU_LARGE, 1, KAI, runs.TOKENIZING, since_s=2_600),
    running("mmlu-llama-70b-v2", "evals", L4X4, 1, TOMAS, runs.EVALUATION, since_s=13 * MINUTE_S),
    running(
        "ifeval-qwen3-grpo-6",
        "evals",
        A10G,
        1,
        TOMAS,
        runs.EVALUATION_LOSES_DATA,
        since_s=3 * MINUTE_S,
        lasts_s=19 * MINUTE_S,
        outcome=_FAILED,
        message="node-0: exit code 1",
        exit_code=1,
    ),
    running(
        "qwen3-8b-ablate-lr",
        "qwen3-grpo",
        H100,
        1,
        KAI,
        runs.QWEN_8B_SFT,
        since_s=35 * MINUTE_S,
        lasts_s=49 * MINUTE_S,
        outcome=JobStatus.PREEMPTED,
        message="Spot capacity was reclaimed",
        exit_code=143,
        availability="spot",
    ),
)

NEARLY_FULL_JOBS: tuple[JobPlan, ...] = (
    running(
        "embed-crawl-v2", "retrieval-embed", A10G, 1, TOMAS, runs.EMBEDDER_FILLS_CACHE, since_s=1.2 * HOUR_S
    ),
    running("llama-8b-32k", "llama-sft", H100, 1, ADA, runs.LLAMA_8B_NEARLY_FULL_GPU, since_s=2 * HOUR_S),
)
"""Runs that are still healthy but about to fill the cache or the GPU memory."""

UPCOMING_JOBS: tuple[JobPlan, ...] = (
    upcoming(
        "llama-405b-lora-v0",
        "llama-sft",
        H100X8,
        4,
        ADA,
        runs.LLAMA_70B_STRAGGLER,
        (Stage(JobStatus.PENDING, 7 * HOUR_S, "Waiting for 32 H100"), Stage(JobStatus.DEPLOYING, 200.0)),
        since_s=52 * MINUTE_S,
        hint=SPOT_HINT,
    ),
    upcoming(
        "llama-8b-ablate",
        "llama-sft",
        H100X8,
        1,
        GRACE,
        runs.LLAMA_8B_ABLATION,
        (
            Stage(JobStatus.PENDING, 18 * MINUTE_S, "Waiting for 8 H100"),
            Stage(JobStatus.CREATED, 20.0),
            Stage(JobStatus.DEPLOYING, 90.0),
        ),
        since_s=14 * MINUTE_S,
    ),
    upcoming(
        "qwen3-grpo-8",
        "qwen3-grpo",
        H200X8,
        2,
        KAI,
        runs.QWEN_GRPO,
        (Stage(JobStatus.PENDING, None, "Waiting for 16 H200"),),
        since_s=31 * MINUTE_S,
        priority=5,
        hint=SPOT_HINT,
    ),
    upcoming(
        "qwen3-14b-titan-long",
        "pretraining",
        H200X8,
        4,
        GRACE,
        runs.TITAN,
        (Stage(JobStatus.PENDING, None, "Waiting for 32 H200"),),
        since_s=5 * HOUR_S,
        priority=-1,
    ),
    upcoming(
        "whisper-small-distil",
        "whisper-asr",
        A10G,
        1,
        MIRA,
        runs.WHISPER_SMALL,
        (
            Stage(JobStatus.QUEUED, 150.0, "Queued"),
            Stage(JobStatus.CREATED, 12.0),
            Stage(JobStatus.DEPLOYING, 50.0),
        ),
        since_s=40.0,
    ),
    upcoming(
        "rerank-v1",
        "retrieval-embed",
        A10G,
        1,
        TOMAS,
        runs.RERANKER,
        (Stage(JobStatus.CREATED, 9 * MINUTE_S, "Mirroring weights"), Stage(JobStatus.DEPLOYING, 60.0)),
        since_s=3 * MINUTE_S,
    ),
    upcoming(
        "flux-lora-interiors",
        "flux-lora",
        H100,
        1,
        MIRA,
        runs.FLUX_LORA,
        (Stage(JobStatus.CREATED, 15.0), Stage(JobStatus.DEPLOYING, 135.0)),
        since_s=105.0,
    ),
)
