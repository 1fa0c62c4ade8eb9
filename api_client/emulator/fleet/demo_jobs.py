"""All jobs of the demo world: running, waiting and ended when it begins; and its users and machines."""

from __future__ import annotations

from api_client.emulator.fleet import scenarios as runs
from api_client.emulator.fleet.plans import End, JobPlan, Stage
from api_client.models import JobStatus

ADA, GRACE, KAI, MIRA, TOMAS = (f"{name}@demo.example" for name in ("ada", "grace", "kai", "mira", "tomas"))
H100X8, H100 = "h100-8-208x1872", "h100-1-26x234"
H200X8 = "h200-8-208x1872"
A10G, L4, L4X4 = "a10g-1-8x32", "l4-1-4x16", "l4-4-48x192"
CPU_SMALL, CPU_LARGE = "cpu-4x16", "cpu-64x256"
MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0

HANG_AT_S, STALLED_S, WATCHDOG_S = 23_306.0, 9 * MINUTE_S, 90 * MINUTE_S
"""The hanging run: its last line, the silence since then, and the timeout of its collectives."""
OUT_OF_MEMORY = "CUDA out of memory"


def _failed(after_s: float, exit_code: int, why: str, node: int = 0) -> End:
    return End(JobStatus.FAILED, after_s, f"node-{node}: exit code {exit_code} ({why})", exit_code)


def _stopped(after_s: float) -> End:
    return End(JobStatus.STOPPED, after_s, "Stopped by a user", 143)


def _preempted(after_s: float) -> End:
    return End(JobStatus.PREEMPTED, after_s, "Spot capacity was reclaimed", 143)


def _never_deployed(message: str) -> End:
    return End(JobStatus.DEPLOY_FAILED, message=message, exit_code=None)


def _waits(lasts_s: float | None, reason: str = "Waiting for GPU capacity") -> Stage:
    return JobStatus.PENDING, lasts_s, reason


RUNNING_JOBS = (
    JobPlan("llama-70b-sft-v3", "llama-sft", ADA, H100X8, runs.LLAMA_70B_SFT, 22_330, nodes=4),
    JobPlan(
        "qwen3-grpo-7",
        "qwen3-grpo",
        KAI,
        H200X8,
        runs.QWEN_GRPO_HANG,
        HANG_AT_S + STALLED_S,
        nodes=2,
        end=_failed(HANG_AT_S + WATCHDOG_S, 134, "NCCL watchdog: collective operation timeout", node=1),
    ),
    JobPlan("llama-70b-longctx-v1", "llama-sft", GRACE, H100X8, runs.LLAMA_70B_SLOW_NODE, 12_240, nodes=4),
    JobPlan("mistral-24b-dpo-2", "llama-sft", ADA, H100X8, runs.MISTRAL_DPO_NAN, 7_810),
    JobPlan("whisper-ft", "whisper-asr", MIRA, A10G, runs.WHISPER_FT, 1_510),
    JobPlan(
        "retrieval-embed-v5",
        "retrieval-embed",
        TOMAS,
        L4X4,
        runs.EMBEDDER_LEAK,
        1.5 * HOUR_S,
        end=_failed(3 * HOUR_S, 1, OUT_OF_MEMORY),
    ),
    JobPlan(
        "flux-lora-portraits",
        "flux-lora",
        MIRA,
        H200X8,
        runs.FLUX_FILLING_DISK,
        3 * HOUR_S,
        end=_failed(3.55 * HOUR_S, 1, "no space left on device"),
    ),
    JobPlan("qwen3-14b-titan", "pretraining", KAI, H200X8, runs.TITAN, 4.2 * HOUR_S, is_spot=True),
    JobPlan("nemotron-8b-cpt", "pretraining", GRACE, H100X8, runs.NEMOTRON, 93_600, priority=2, is_spot=True),
    JobPlan("qwen3-8b-dpo-4", "qwen3-grpo", KAI, H100, runs.QWEN_8B_SAVES_NO_MORE, 3 * HOUR_S),
    JobPlan("reward-model-v2", "qwen3-grpo", GRACE, H100, runs.REWARD_MODEL_EXPLODES, 5_420),
    JobPlan(
        "embed-multilingual-v1", "retrieval-embed", TOMAS, H100, runs.EMBEDDER_LOSES_NODE, 8_100, nodes=2
    ),
    JobPlan(
        "whisper-calls-resume",
        "whisper-asr",
        MIRA,
        A10G,
        runs.SPEECH_RESTARTS,
        2.6 * HOUR_S,
        end=_failed(8 * HOUR_S, 1, "restarted too often"),
    ),
    JobPlan("whisper-debug", "whisper-asr", MIRA, A10G, runs.IDLE, 2.5 * HOUR_S, end=None),
    JobPlan("tokenize-fineweb", "pretraining", KAI, CPU_LARGE, runs.TOKENIZING, 2_600),
    JobPlan("mmlu-llama-70b-v2", "evals", TOMAS, L4X4, runs.EVALUATION, 13 * MINUTE_S),
    JobPlan(
        "ifeval-qwen3-grpo-6",
        "evals",
        TOMAS,
        A10G,
        runs.EVALUATION_LOSES_DATA,
        3 * MINUTE_S,
        end=_failed(19 * MINUTE_S, 1, "ConnectionError"),
    ),
    JobPlan(
        "qwen3-8b-ablate-lr",
        "qwen3-grpo",
        KAI,
        H100,
        runs.QWEN_8B_SFT,
        35 * MINUTE_S,
        is_spot=True,
        end=_preempted(49 * MINUTE_S),
    ),
    JobPlan("embed-crawl-v2", "retrieval-embed", TOMAS, A10G, runs.EMBEDDER_FILLS_CACHE, 1.2 * HOUR_S),
    JobPlan("llama-8b-32k", "llama-sft", ADA, H100, runs.LLAMA_8B_NEARLY_FULL_GPU, 2 * HOUR_S),
    JobPlan("flux-lora-interiors", "flux-lora", MIRA, H100, runs.FLUX_LORA, -60.0),
)
WAITING_JOBS = (
    JobPlan(
        "llama-405b-lora-v0",
        "llama-sft",
        ADA,
        H100X8,
        runs.LLAMA_70B_SLOW_NODE,
        3_120,
        nodes=4,
        since=JobStatus.PENDING,
        wait=_waits(7 * HOUR_S, "Waiting for 32 H100"),
    ),
    JobPlan(
        "llama-8b-ablate",
        "llama-sft",
        GRACE,
        H100X8,
        runs.LLAMA_8B_ABLATION,
        14 * MINUTE_S,
        since=JobStatus.PENDING,
        wait=_waits(18 * MINUTE_S, "Waiting for 8 H100"),
    ),
    JobPlan(
        "qwen3-grpo-8",
        "qwen3-grpo",
        KAI,
        H200X8,
        runs.QWEN_GRPO,
        31 * MINUTE_S,
        nodes=2,
        priority=5,
        since=JobStatus.PENDING,
        wait=_waits(None, "Waiting for 16 H200"),
    ),
    JobPlan(
        "qwen3-14b-titan-long",
        "pretraining",
        GRACE,
        H200X8,
        runs.TITAN,
        18_000,
        nodes=4,
        priority=-1,
        since=JobStatus.PENDING,
        wait=_waits(None, "Waiting for 32 H200"),
    ),
    JobPlan(
        "whisper-small-distil",
        "whisper-asr",
        MIRA,
        A10G,
        runs.WHISPER_SMALL,
        40.0,
        since=JobStatus.QUEUED,
        wait=(JobStatus.QUEUED, 150.0, "Queued"),
    ),
    JobPlan(
        "rerank-v1",
        "retrieval-embed",
        TOMAS,
        A10G,
        runs.RERANKER,
        3 * MINUTE_S,
        since=JobStatus.CREATED,
        wait=(JobStatus.CREATED, 9 * MINUTE_S, "Mirroring weights"),
    ),
)
PAST_JOBS = (
    JobPlan(
        "llama-70b-sft-v2",
        "llama-sft",
        ADA,
        H100X8,
        runs.LLAMA_70B_SFT,
        75_600,
        nodes=4,
        wait=_waits(840),
        since=None,
    ),
    JobPlan(
        "llama-70b-sft-v1",
        "llama-sft",
        ADA,
        H100X8,
        runs.LLAMA_OUT_OF_MEMORY,
        2.1 * DAY_S,
        nodes=4,
        since=None,
        end=_failed(22 * MINUTE_S, 1, OUT_OF_MEMORY),
    ),
    JobPlan("llama-8b-lora-r16", "llama-sft", GRACE, H100X8, runs.LLAMA_8B_LORA, 5.2 * HOUR_S, since=None),
    JobPlan(
        "mistral-24b-dpo-1",
        "llama-sft",
        ADA,
        H100X8,
        runs.MISTRAL_DPO,
        8 * HOUR_S,
        wait=_waits(600),
        since=None,
    ),
    JobPlan(
        "llama-8b-lora-draft",
        "llama-sft",
        GRACE,
        H100X8,
        runs.LLAMA_8B_LORA,
        6.5 * HOUR_S,
        since=None,
        end=_stopped(11 * MINUTE_S),
    ),
    JobPlan(
        "qwen3-grpo-6",
        "qwen3-grpo",
        KAI,
        H200X8,
        runs.QWEN_GRPO_OUT_OF_MEMORY,
        7.4 * HOUR_S,
        nodes=2,
        since=None,
        end=_failed(41 * MINUTE_S, 1, OUT_OF_MEMORY),
    ),
    JobPlan(
        "qwen3-grpo-5",
        "qwen3-grpo",
        KAI,
        H200X8,
        runs.QWEN_GRPO,
        1.2 * DAY_S,
        nodes=2,
        wait=_waits(7_200),
        since=None,
    ),
    JobPlan(
        "qwen3-grpo-4",
        "qwen3-grpo",
        KAI,
        H200X8,
        runs.QWEN_GRPO,
        2.8 * DAY_S,
        nodes=2,
        is_spot=True,
        since=None,
        end=_preempted(4 * HOUR_S),
    ),
    JobPlan("qwen3-8b-sft", "qwen3-grpo", GRACE, H200X8, runs.QWEN_8B_SFT, 4 * MINUTE_S, since=None),
    JobPlan("whisper-large-ft-2", "whisper-asr", MIRA, A10G, runs.WHISPER_FT, 3.1 * HOUR_S, since=None),
    JobPlan(
        "whisper-large-ft-1",
        "whisper-asr",
        MIRA,
        A10G,
        runs.WHISPER_FT,
        1.9 * DAY_S,
        since=None,
        end=_stopped(8 * MINUTE_S),
    ),
    JobPlan("whisper-small-ft", "whisper-asr", MIRA, A10G, runs.WHISPER_SMALL, 26 * HOUR_S, since=None),
    JobPlan("flux-lora-products", "flux-lora", MIRA, H100, runs.FLUX_LORA, 50 * MINUTE_S, since=None),
    JobPlan("flux-lora-sketches", "flux-lora", MIRA, H100, runs.FLUX_LORA, 2.4 * DAY_S, since=None),
    JobPlan(
        "flux-lora-custom-image",
        "flux-lora",
        TOMAS,
        H100,
        runs.BROKEN_IMAGE,
        2.2 * HOUR_S,
        since=None,
        end=_never_deployed(f'Failed to pull image "{runs.IMAGE}": manifest unknown'),
    ),
    JobPlan(
        "retrieval-embed-v4",
        "retrieval-embed",
        TOMAS,
        L4X4,
        runs.EMBEDDER,
        1.4 * DAY_S,
        wait=_waits(90),
        since=None,
    ),
    JobPlan(
        "retrieval-embed-v3",
        "retrieval-embed",
        TOMAS,
        L4X4,
        runs.EMBEDDER,
        3.3 * DAY_S,
        since=None,
        end=_failed(95 * MINUTE_S, 137, "killed: out of host memory"),
    ),
    JobPlan(
        "titan-warmup-test",
        "pretraining",
        KAI,
        H200X8,
        runs.TITAN,
        5.1 * HOUR_S,
        since=None,
        end=_stopped(34 * MINUTE_S),
    ),
    JobPlan("tokenize-slimpajama", "pretraining", KAI, CPU_SMALL, runs.TOKENIZING, 1.7 * DAY_S, since=None),
    JobPlan(
        "tokenize-typo",
        "pretraining",
        KAI,
        CPU_SMALL,
        runs.NEVER_STARTED,
        1.8 * DAY_S,
        since=None,
        end=_never_deployed('Secret "hf_acess_token" is not known to the project\'s team'),
    ),
    JobPlan("mmlu-llama-70b-v1", "evals", TOMAS, L4X4, runs.EVALUATION, 1.0 * DAY_S, since=None),
    JobPlan("mmlu-mistral-dpo-1", "evals", TOMAS, L4X4, runs.EVALUATION, 6.8 * HOUR_S, since=None),
    JobPlan(
        "ifeval-first-try",
        "evals",
        TOMAS,
        L4,
        runs.EVALUATION_IMPORT_ERROR,
        20 * MINUTE_S,
        since=None,
        end=_failed(6.0, 1, "ModuleNotFoundError: No module named 'lm_eval'"),
    ),
)
