"""All jobs of the demo world: running, waiting and ended when it begins; and its users and machines."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from types import MappingProxyType

from api_client.emulator.fleet.logs import (
    errs,
    fails,
    json_lines,
    nan_loss,
    out_of_memory,
    progress_bar,
    restarting,
    transformers,
    warns,
)
from api_client.emulator.fleet.plans import End, JobPlan, Load, Saves, Scenario, Stage
from api_client.emulator.fleet.scenarios import (
    EMBEDDER,
    EVALUATION,
    FLUX_LORA,
    LLAMA_8B_LORA,
    LLAMA_8B_NAME,
    LLAMA_70B_NAME,
    LLAMA_70B_SFT,
    MISTRAL_DPO,
    NEMOTRON,
    PICTURES,
    QWEN_8B_SFT,
    QWEN_GRPO,
    QWEN_NAME,
    RERANKER,
    SCORES,
    TITAN,
    TOKENIZING,
    WHISPER_FT,
    WHISPER_SMALL,
    curves,
)
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
IMAGE = "registry.demo.example/research/trainer:2.7-cu129"
PER_HOUR = 1 / 3600


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
    JobPlan("llama-70b-sft-v3", "llama-sft", ADA, H100X8, LLAMA_70B_SFT, 22_330, nodes=4),
    JobPlan(
        "qwen3-grpo-7",
        "qwen3-grpo",
        KAI,
        H200X8,
        replace(
            QWEN_GRPO,
            key="hang at full utilisation",
            curves=replace(QWEN_GRPO.curves, pace=replace(QWEN_GRPO.curves.pace, halts_after_s=23306)),
            incidents=(
                fails(
                    4.0,
                    "[rank11]:[E ProcessGroupNCCL.cpp:629] [Rank 11] Watchdog caught collective operation "
                    "timeout: WorkNCCL(SeqNum=88214, OpType=ALLREDUCE, NumelIn=134217728, "
                    "Timeout(ms)=5400000)",
                    node=1,
                ),
            ),
        ),
        HANG_AT_S + STALLED_S,
        nodes=2,
        end=_failed(HANG_AT_S + WATCHDOG_S, 134, "NCCL watchdog: collective operation timeout", node=1),
    ),
    JobPlan(
        "llama-70b-longctx-v1",
        "llama-sft",
        GRACE,
        H100X8,
        Scenario(
            "one slow node",
            curves(3000, 11.4, 140, pause=(250, 30), loss=(2.3, 1.12), half=180, rate=1e-4, epoch=1500),
            transformers(LLAMA_70B_NAME, noise_s=10),
            Load(gpu=0.955, gpu_memory=0.91, node_factor=MappingProxyType({2: 0.63})),
            Saves("llama-70b-lora", 250),
            incidents=(
                warns(
                    11.0,
                    "WARNING dataloader: worker {local} took {x:.1f}4 s for one batch (usual: 0.2 s)",
                    "WARNING dataloader: /scratch reads at 0.{ms} GB/s, expected 1.7 GB/s",
                    "WARNING step waited for this rank: {x:.2f} s behind the fastest",
                    node=2,
                ),
            ),
            cache_share=0.34,
        ),
        12_240,
        nodes=4,
    ),
    JobPlan(
        "mistral-24b-dpo-2",
        "llama-sft",
        ADA,
        H100X8,
        replace(
            MISTRAL_DPO,
            key="loss is not a number",
            curves=replace(MISTRAL_DPO.curves, peak_learning_rate=5e-5, nan_from=2074),
            incidents=(nan_loss,),
        ),
        7_810,
    ),
    JobPlan("whisper-ft", "whisper-asr", MIRA, A10G, WHISPER_FT, 1_510),
    JobPlan(
        "retrieval-embed-v5",
        "retrieval-embed",
        TOMAS,
        L4X4,
        replace(
            EMBEDDER,
            key="GPU memory leak",
            log=json_lines(every=5),
            load=Load(gpu=0.84, gpu_noise=0.05, gpu_memory=0.62, gpu_memory_growth=0.127 * PER_HOUR),
            incidents=(
                warns(40.0, "WARNING allocator: {count} MiB in {ms} cached blocks not released, call {n}"),
                out_of_memory,
            ),
        ),
        1.5 * HOUR_S,
        end=_failed(3 * HOUR_S, 1, OUT_OF_MEMORY),
    ),
    JobPlan(
        "flux-lora-portraits",
        "flux-lora",
        MIRA,
        H200X8,
        Scenario(
            "scratch disk fills up",
            curves(
                12000,
                2.33,
                50,
                pause=(1000, 40),
                loss=(0.33, 0.079),
                half=700,
                noise=0.2,
                rate=1e-4,
                epoch=640,
            ),
            progress_bar(
                "Steps", "Training FLUX.1-dev LoRA, previews every 10 steps", *PICTURES, has_loss=True
            ),
            Load(gpu=0.97, gpu_memory=0.61, disk_growth=0.235 * PER_HOUR),
            Saves("flux-lora", 1000, write_s=3, sync_s=12),
            incidents=(
                warns(
                    30.0,
                    "WARNING scratch disk is filling up: previews written to /scratch/samples/{n:05}.png",
                ),
                fails(3.0, "OSError: [Errno 28] No space left on device: '/scratch/samples/06120.png'"),
            ),
        ),
        3 * HOUR_S,
        end=_failed(3.55 * HOUR_S, 1, "no space left on device"),
    ),
    JobPlan("qwen3-14b-titan", "pretraining", KAI, H200X8, TITAN, 4.2 * HOUR_S, is_spot=True),
    JobPlan("nemotron-8b-cpt", "pretraining", GRACE, H100X8, NEMOTRON, 93_600, priority=2, is_spot=True),
    JobPlan(
        "qwen3-8b-dpo-4",
        "qwen3-grpo",
        KAI,
        H100,
        Scenario(
            "checkpoints that stopped coming",
            curves(24000, 1.9, 60, pause=(300, 20), loss=(0.693, 0.38), half=900, rate=5e-6, epoch=8000),
            transformers(QWEN_NAME, every=5),
            Load(gpu=0.94, gpu_memory=0.72),
            Saves("qwen3-8b-full", 300, write_s=14, sync_s=60, until_s=8_640.0),
            cache_share=0.61,
        ),
        3 * HOUR_S,
    ),
    JobPlan(
        "reward-model-v2",
        "qwen3-grpo",
        GRACE,
        H100,
        Scenario(
            "exploding loss",
            curves(
                9000, 2.6, 45, pause=(500, 15), loss=(0.71, 0.24), half=400, rate=9e-5, explodes_from=1900
            ),
            transformers(QWEN_NAME, every=5),
            Load(gpu=0.93, gpu_memory=0.66),
            cache_share=0.61,
        ),
        5_420,
    ),
    JobPlan(
        "embed-multilingual-v1",
        "retrieval-embed",
        TOMAS,
        H100,
        Scenario(
            "a node without metrics",
            curves(40000, 1.1, 50, pause=(2000, 20), loss=(3.4, 0.41), half=1200, rate=3e-5, epoch=9000),
            json_lines(every=10),
            Load(gpu=0.9, gpu_noise=0.03, gpu_memory=0.55, vanishes=MappingProxyType({1: 7_200.0})),
        ),
        8_100,
        nodes=2,
    ),
    JobPlan(
        "whisper-calls-resume",
        "whisper-asr",
        MIRA,
        A10G,
        Scenario(
            "restarts again and again",
            curves(6000, 4.0, 60, pause=(200, 12), loss=(1.4, 0.22), half=260, rate=1e-5, epoch=2000),
            restarting(
                transformers("openai/whisper-large-v3", every=2),
                attempt_s=2_400.0,
                break_s=45.0,
                save_every=200,
            ),
            Load(
                gpu=0.88,
                gpu_memory=0.7,
                cpu=0.4,
                idle=tuple((n * 2_400.0 - 45.0, n * 2_400.0 + 50.0) for n in range(1, 13)),
            ),
            Saves(None, 200),
        ),
        2.6 * HOUR_S,
        end=_failed(8 * HOUR_S, 1, "restarted too often"),
    ),
    JobPlan(
        "whisper-debug",
        "whisper-asr",
        MIRA,
        A10G,
        Scenario(
            "idle GPU",
            curves(40, 20, 20),
            progress_bar(
                "trial",
                "sleep infinity: session open over SSH",
                "session: client connected from the proxy, latency {ms} ms",
                "session: heartbeat {n}",
            ),
            Load(gpu=0.6, gpu_memory=0.3, idle=((860.0, inf),)),
        ),
        2.5 * HOUR_S,
        end=None,
    ),
    JobPlan("tokenize-fineweb", "pretraining", KAI, CPU_LARGE, TOKENIZING, 2_600),
    JobPlan("mmlu-llama-70b-v2", "evals", TOMAS, L4X4, EVALUATION, 13 * MINUTE_S),
    JobPlan(
        "ifeval-qwen3-grpo-6",
        "evals",
        TOMAS,
        A10G,
        Scenario(
            "evaluation that loses its data",
            curves(541, 2.4, 60),
            progress_bar("Running generate_until requests", "lm-eval: ifeval, 541 prompts", *SCORES),
            Load(gpu=0.83, gpu_noise=0.08, gpu_memory=0.74),
            incidents=(
                fails(40.0, "huggingface_hub: read timed out, retry 1 of 3"),
                fails(5.0, "ERROR huggingface_hub: 3 of 3 attempts failed: ConnectionError(datasets-server)"),
            ),
        ),
        3 * MINUTE_S,
        end=_failed(19 * MINUTE_S, 1, "ConnectionError"),
    ),
    JobPlan(
        "qwen3-8b-ablate-lr",
        "qwen3-grpo",
        KAI,
        H100,
        QWEN_8B_SFT,
        35 * MINUTE_S,
        is_spot=True,
        end=_preempted(49 * MINUTE_S),
    ),
    JobPlan(
        "embed-crawl-v2",
        "retrieval-embed",
        TOMAS,
        A10G,
        Scenario(
            "cache fills up",
            curves(30000, 0.9, 30, loss=(3.2, 0.41), half=1100, rate=3e-5, epoch=10_000),
            json_lines(every=5),
            Load(gpu=0.84, gpu_noise=0.05, gpu_memory=0.52, cpu=0.4),
            cache_share=0.67,
            cache_growth=0.12 * PER_HOUR,
        ),
        1.2 * HOUR_S,
    ),
    JobPlan(
        "llama-8b-32k",
        "llama-sft",
        ADA,
        H100,
        Scenario(
            "GPU memory near its limit",
            curves(6000, 4.6, 60, loss=(1.88, 0.97), half=260, rate=1e-4, epoch=2000),
            transformers(LLAMA_8B_NAME, every=5),
            Load(gpu=0.95, gpu_memory=0.983),
            cache_share=0.34,
        ),
        2 * HOUR_S,
    ),
    JobPlan("flux-lora-interiors", "flux-lora", MIRA, H100, FLUX_LORA, -60.0),
)
WAITING_JOBS = (
    JobPlan(
        "llama-405b-lora-v0",
        "llama-sft",
        ADA,
        H100X8,
        Scenario(
            "one slow node",
            curves(3000, 11.4, 140, pause=(250, 30), loss=(2.3, 1.12), half=180, rate=1e-4, epoch=1500),
            transformers(LLAMA_70B_NAME, noise_s=10),
            Load(gpu=0.955, gpu_memory=0.91, node_factor=MappingProxyType({2: 0.63})),
            Saves("llama-70b-lora", 250),
            incidents=(
                warns(
                    11.0,
                    "WARNING dataloader: worker {local} took {x:.1f}4 s for one batch (usual: 0.2 s)",
                    "WARNING dataloader: /scratch reads at 0.{ms} GB/s, expected 1.7 GB/s",
                    "WARNING step waited for this rank: {x:.2f} s behind the fastest",
                    node=2,
                ),
            ),
            cache_share=0.34,
        ),
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
        replace(
            LLAMA_8B_LORA,
            key="shorter LoRA fine-tuning",
            curves=curves(900, 1.45, 40, pause=(300, 12), loss=(1.94, 0.99), half=80, rate=1e-4, epoch=600),
        ),
        14 * MINUTE_S,
        since=JobStatus.PENDING,
        wait=_waits(18 * MINUTE_S, "Waiting for 8 H100"),
    ),
    JobPlan(
        "qwen3-grpo-8",
        "qwen3-grpo",
        KAI,
        H200X8,
        QWEN_GRPO,
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
        TITAN,
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
        WHISPER_SMALL,
        40.0,
        since=JobStatus.QUEUED,
        wait=(JobStatus.QUEUED, 150.0, "Queued"),
    ),
    JobPlan(
        "rerank-v1",
        "retrieval-embed",
        TOMAS,
        A10G,
        RERANKER,
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
        LLAMA_70B_SFT,
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
        replace(
            LLAMA_70B_SFT,
            key="out of GPU memory",
            load=Load(gpu=0.9, gpu_memory=0.9, gpu_memory_growth=7e-5),
            saves=None,
            incidents=(out_of_memory,),
        ),
        2.1 * DAY_S,
        nodes=4,
        since=None,
        end=_failed(22 * MINUTE_S, 1, OUT_OF_MEMORY),
    ),
    JobPlan("llama-8b-lora-r16", "llama-sft", GRACE, H100X8, LLAMA_8B_LORA, 5.2 * HOUR_S, since=None),
    JobPlan(
        "mistral-24b-dpo-1",
        "llama-sft",
        ADA,
        H100X8,
        MISTRAL_DPO,
        8 * HOUR_S,
        wait=_waits(600),
        since=None,
    ),
    JobPlan(
        "llama-8b-lora-draft",
        "llama-sft",
        GRACE,
        H100X8,
        LLAMA_8B_LORA,
        6.5 * HOUR_S,
        since=None,
        end=_stopped(11 * MINUTE_S),
    ),
    JobPlan(
        "qwen3-grpo-6",
        "qwen3-grpo",
        KAI,
        H200X8,
        replace(QWEN_GRPO, incidents=(out_of_memory,)),
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
        QWEN_GRPO,
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
        QWEN_GRPO,
        2.8 * DAY_S,
        nodes=2,
        is_spot=True,
        since=None,
        end=_preempted(4 * HOUR_S),
    ),
    JobPlan("qwen3-8b-sft", "qwen3-grpo", GRACE, H200X8, QWEN_8B_SFT, 4 * MINUTE_S, since=None),
    JobPlan("whisper-large-ft-2", "whisper-asr", MIRA, A10G, WHISPER_FT, 3.1 * HOUR_S, since=None),
    JobPlan(
        "whisper-large-ft-1",
        "whisper-asr",
        MIRA,
        A10G,
        WHISPER_FT,
        1.9 * DAY_S,
        since=None,
        end=_stopped(8 * MINUTE_S),
    ),
    JobPlan("whisper-small-ft", "whisper-asr", MIRA, A10G, WHISPER_SMALL, 26 * HOUR_S, since=None),
    JobPlan("flux-lora-products", "flux-lora", MIRA, H100, FLUX_LORA, 50 * MINUTE_S, since=None),
    JobPlan("flux-lora-sketches", "flux-lora", MIRA, H100, FLUX_LORA, 2.4 * DAY_S, since=None),
    JobPlan(
        "flux-lora-custom-image",
        "flux-lora",
        TOMAS,
        H100,
        replace(
            EVALUATION,
            key="image that cannot be pulled",
            incidents=(
                errs(
                    (20.0, f'Failed to pull image "{IMAGE}": manifest unknown'),
                    (50.0, f'Back-off pulling image "{IMAGE}" (ErrImagePull)'),
                ),
            ),
        ),
        2.2 * HOUR_S,
        since=None,
        end=_never_deployed(f'Failed to pull image "{IMAGE}": manifest unknown'),
    ),
    JobPlan(
        "retrieval-embed-v4",
        "retrieval-embed",
        TOMAS,
        L4X4,
        EMBEDDER,
        1.4 * DAY_S,
        wait=_waits(90),
        since=None,
    ),
    JobPlan(
        "retrieval-embed-v3",
        "retrieval-embed",
        TOMAS,
        L4X4,
        EMBEDDER,
        3.3 * DAY_S,
        since=None,
        end=_failed(95 * MINUTE_S, 137, "killed: out of host memory"),
    ),
    JobPlan(
        "titan-warmup-test",
        "pretraining",
        KAI,
        H200X8,
        TITAN,
        5.1 * HOUR_S,
        since=None,
        end=_stopped(34 * MINUTE_S),
    ),
    JobPlan("tokenize-slimpajama", "pretraining", KAI, CPU_SMALL, TOKENIZING, 1.7 * DAY_S, since=None),
    JobPlan(
        "tokenize-typo",
        "pretraining",
        KAI,
        CPU_SMALL,
        replace(EVALUATION, key="never started"),
        1.8 * DAY_S,
        since=None,
        end=_never_deployed('Secret "hf_acess_token" is not known to the project\'s team'),
    ),
    JobPlan("mmlu-llama-70b-v1", "evals", TOMAS, L4X4, EVALUATION, 1.0 * DAY_S, since=None),
    JobPlan("mmlu-mistral-dpo-1", "evals", TOMAS, L4X4, EVALUATION, 6.8 * HOUR_S, since=None),
    JobPlan(
        "ifeval-first-try",
        "evals",
        TOMAS,
        L4,
        Scenario(
            "missing package",
            curves(541, 2.4, 60),
            progress_bar("Running generate_until requests", "python evaluate.py"),
            incidents=(
                errs(
                    (
                        3.5,
                        "Traceback (most recent call last):\n"
                        '  File "/b10/workspace/evaluate.py", line 9, in <module>\n'
                        "    import lm_eval\n"
                        "ModuleNotFoundError: No module named 'lm_eval'",
                    )
                ),
            ),
        ),
        20 * MINUTE_S,
        since=None,
        end=_failed(6.0, 1, "ModuleNotFoundError: No module named 'lm_eval'"),
    ),
)
