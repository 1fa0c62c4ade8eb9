"""All jobs of the demo world: running, waiting and ended when it begins; and its users and machines."""

from __future__ import annotations

from dataclasses import dataclass

from api_client.emulator.fleet import scenarios as runs
from api_client.emulator.fleet.plans import CLOSING_S, End, JobPlan, Scenario, Stage
from api_client.models import JobStatus

ADA, GRACE, KAI, MIRA, TOMAS = (f"{name}@demo.example" for name in ("ada", "grace", "kai", "mira", "tomas"))
H100X8, H100 = "h100-8-208x1872", "h100-1-26x234"
H200X8 = "h200-8-208x1872"
A10G, L4, L4X4 = "a10g-1-8x32", "l4-1-4x16", "l4-4-48x192"
CPU_SMALL, CPU_LARGE = "cpu-4x16", "cpu-64x256"
MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0

CREATED_S, DEPLOYING_S = 22.0, 145.0
HANG_AT_S, STALLED_S, WATCHDOG_S = 23_306.0, 9 * MINUTE_S, 90 * MINUTE_S
"""The hanging run: its last line, the silence since then, and the timeout of its collectives."""
SPOT_HINT = "Waiting for capacity. Spot capacity of this GPU type would let the job start sooner."
OUT_OF_MEMORY = "CUDA out of memory"


def _failed(after_s: float, exit_code: int, why: str, node: int = 0) -> End:
    return End(JobStatus.FAILED, after_s, f"node-{node}: exit code {exit_code} ({why})", exit_code)


def _stopped(after_s: float) -> End:
    return End(JobStatus.STOPPED, after_s, "Stopped by a user", 143)


def _preempted(after_s: float) -> End:
    return End(JobStatus.PREEMPTED, after_s, "Spot capacity was reclaimed", 143)


def _never_deployed(message: str) -> End:
    return End(JobStatus.DEPLOY_FAILED, message=message, exit_code=None)


ENDS: dict[str, End | None] = {
    "whisper-debug": None,
    "qwen3-grpo-7": _failed(
        HANG_AT_S + WATCHDOG_S, 134, "NCCL watchdog: collective operation timeout", node=1
    ),
    "retrieval-embed-v5": _failed(3 * HOUR_S, 1, OUT_OF_MEMORY),
    "flux-lora-portraits": _failed(3.55 * HOUR_S, 1, "no space left on device"),
    "whisper-calls-resume": _failed(8 * HOUR_S, 1, "restarted too often"),
    "ifeval-qwen3-grpo-6": _failed(19 * MINUTE_S, 1, "ConnectionError"),
    "qwen3-8b-ablate-lr": _preempted(49 * MINUTE_S),
    "llama-70b-sft-v1": _failed(22 * MINUTE_S, 1, OUT_OF_MEMORY),
    "llama-8b-lora-draft": _stopped(11 * MINUTE_S),
    "qwen3-grpo-6": _failed(41 * MINUTE_S, 1, OUT_OF_MEMORY),
    "qwen3-grpo-4": _preempted(4 * HOUR_S),
    "whisper-large-ft-1": _stopped(8 * MINUTE_S),
    "flux-lora-custom-image": _never_deployed(f'Failed to pull image "{runs.IMAGE}": manifest unknown'),
    "retrieval-embed-v3": _failed(95 * MINUTE_S, 137, "killed: out of host memory"),
    "titan-warmup-test": _stopped(34 * MINUTE_S),
    "tokenize-typo": _never_deployed('Secret "hf_acess_token" is not known to the project\'s team'),
    "ifeval-first-try": _failed(6.0, 1, "ModuleNotFoundError: No module named 'lm_eval'"),
}
"""How jobs end that do not complete; None for one that never ends."""


def _pending(lasts_s: float | None, why: str) -> Stage:
    return Stage(JobStatus.PENDING, lasts_s, why)


WAITS = {
    "llama-405b-lora-v0": _pending(7 * HOUR_S, "Waiting for 32 H100"),
    "llama-8b-ablate": _pending(18 * MINUTE_S, "Waiting for 8 H100"),
    "qwen3-grpo-8": _pending(None, "Waiting for 16 H200"),
    "qwen3-14b-titan-long": _pending(None, "Waiting for 32 H200"),
    "whisper-small-distil": Stage(JobStatus.QUEUED, 150.0, "Queued"),
    "rerank-v1": Stage(JobStatus.CREATED, 9 * MINUTE_S, "Mirroring weights"),
}
"""What jobs wait for; None for one that waits forever."""


def _stages(scenario: Scenario, end: End | None) -> tuple[Stage, ...]:
    if end is not None and end.outcome == JobStatus.DEPLOY_FAILED:
        return Stage(JobStatus.CREATED, 15.0), Stage(JobStatus.DEPLOYING, 95.0, "Pulling the image")
    runs_s = None if end is None else end.after_s or scenario.curves.pace.duration_s + CLOSING_S
    return (
        Stage(JobStatus.CREATED, CREATED_S, "Released; weights are mirrored"),
        Stage(JobStatus.DEPLOYING, DEPLOYING_S, "Compute is provisioned, the image pulled"),
        Stage(JobStatus.RUNNING, runs_s, "start_commands run"),
    )


@dataclass(frozen=True, slots=True)
class DemoJob:
    """A row of the tables below; ``ago_s`` is before the world begins: the start, the end or the wait."""

    name: str
    project: str
    user: str
    machine: str
    scenario: Scenario
    ago_s: float
    nodes: int = 1
    priority: int = 0
    spot: bool = False
    waited_s: float = 0.0

    def plan(self, born_s: float, stages: tuple[Stage, ...], end: End | None) -> JobPlan:
        who, what = (self.name, self.project, self.user), (self.machine, self.scenario)
        hint = SPOT_HINT if stages[0].status == JobStatus.PENDING else None
        return JobPlan(*who, *what, born_s, stages, end, self.nodes, self.spot, self.priority, hint)


def running(row: DemoJob) -> JobPlan:
    """Build a job that started to run ``ago_s`` before the world begins."""
    end = ENDS.get(row.name, End())
    return row.plan(-(row.ago_s + CREATED_S + DEPLOYING_S), _stages(row.scenario, end), end)


def ended(row: DemoJob) -> JobPlan:
    """Build a job that ended ``ago_s`` before the world begins."""
    end = ENDS.get(row.name, End())
    stages = _stages(row.scenario, end)
    if row.waited_s:
        stages = (_pending(row.waited_s, "Waiting for GPU capacity"), *stages)
    return row.plan(-(row.ago_s + sum(stage.lasts_s or 0.0 for stage in stages)), stages, end)


def waiting(row: DemoJob) -> JobPlan:
    """Build a job that waits since ``ago_s`` before the world begins; it runs unless that never ends."""
    waits = WAITS[row.name]
    if waits.lasts_s is None:
        return row.plan(-row.ago_s, (waits,), None)
    after = [each for each in _stages(row.scenario, End()) if each.status != waits.status]
    return row.plan(-row.ago_s, (waits, *after), End())


_RUNNING = (
    DemoJob("llama-70b-sft-v3", "llama-sft", ADA, H100X8, runs.LLAMA_70B_SFT, 22_330, nodes=4),
    DemoJob("qwen3-grpo-7", "qwen3-grpo", KAI, H200X8, runs.QWEN_GRPO_HANG, HANG_AT_S + STALLED_S, nodes=2),
    DemoJob("llama-70b-longctx-v1", "llama-sft", GRACE, H100X8, runs.LLAMA_70B_SLOW_NODE, 12_240, nodes=4),
    DemoJob("mistral-24b-dpo-2", "llama-sft", ADA, H100X8, runs.MISTRAL_DPO_NAN, 7_810),
    DemoJob("whisper-ft", "whisper-asr", MIRA, A10G, runs.WHISPER_FT, 1_510),
    DemoJob("retrieval-embed-v5", "retrieval-embed", TOMAS, L4X4, runs.EMBEDDER_LEAK, 1.5 * HOUR_S),
    DemoJob("flux-lora-portraits", "flux-lora", MIRA, H200X8, runs.FLUX_FILLING_DISK, 3 * HOUR_S),
    DemoJob("qwen3-14b-titan", "pretraining", KAI, H200X8, runs.TITAN, 4.2 * HOUR_S, spot=True),
    DemoJob("nemotron-8b-cpt", "pretraining", GRACE, H100X8, runs.NEMOTRON, 93_600, priority=2, spot=True),
    DemoJob("qwen3-8b-dpo-4", "qwen3-grpo", KAI, H100, runs.QWEN_8B_SAVES_NO_MORE, 3 * HOUR_S),
    DemoJob("reward-model-v2", "qwen3-grpo", GRACE, H100, runs.REWARD_MODEL_EXPLODES, 5_420),
    DemoJob(
        "embed-multilingual-v1", "retrieval-embed", TOMAS, H100, runs.EMBEDDER_LOSES_NODE, 8_100, nodes=2
    ),
    DemoJob("whisper-calls-resume", "whisper-asr", MIRA, A10G, runs.SPEECH_RESTARTS, 2.6 * HOUR_S),
    DemoJob("whisper-debug", "whisper-asr", MIRA, A10G, runs.IDLE, 2.5 * HOUR_S),
    DemoJob("tokenize-fineweb", "pretraining", KAI, CPU_LARGE, runs.TOKENIZING, 2_600),
    DemoJob("mmlu-llama-70b-v2", "evals", TOMAS, L4X4, runs.EVALUATION, 13 * MINUTE_S),
    DemoJob("ifeval-qwen3-grpo-6", "evals", TOMAS, A10G, runs.EVALUATION_LOSES_DATA, 3 * MINUTE_S),
    DemoJob("qwen3-8b-ablate-lr", "qwen3-grpo", KAI, H100, runs.QWEN_8B_SFT, 35 * MINUTE_S, spot=True),
    DemoJob("embed-crawl-v2", "retrieval-embed", TOMAS, A10G, runs.EMBEDDER_FILLS_CACHE, 1.2 * HOUR_S),
    DemoJob("llama-8b-32k", "llama-sft", ADA, H100, runs.LLAMA_8B_NEARLY_FULL_GPU, 2 * HOUR_S),
    DemoJob("flux-lora-interiors", "flux-lora", MIRA, H100, runs.FLUX_LORA, -60.0),
)

_WAITING = (
    DemoJob("llama-405b-lora-v0", "llama-sft", ADA, H100X8, runs.LLAMA_70B_SLOW_NODE, 3_120, nodes=4),
    DemoJob("llama-8b-ablate", "llama-sft", GRACE, H100X8, runs.LLAMA_8B_ABLATION, 14 * MINUTE_S),
    DemoJob("qwen3-grpo-8", "qwen3-grpo", KAI, H200X8, runs.QWEN_GRPO, 31 * MINUTE_S, nodes=2, priority=5),
    DemoJob("qwen3-14b-titan-long", "pretraining", GRACE, H200X8, runs.TITAN, 18_000, nodes=4, priority=-1),
    DemoJob("whisper-small-distil", "whisper-asr", MIRA, A10G, runs.WHISPER_SMALL, 40.0),
    DemoJob("rerank-v1", "retrieval-embed", TOMAS, A10G, runs.RERANKER, 3 * MINUTE_S),
)

_PAST = (
    DemoJob("llama-70b-sft-v2", "llama-sft", ADA, H100X8, runs.LLAMA_70B_SFT, 75_600, nodes=4, waited_s=840),
    DemoJob("llama-70b-sft-v1", "llama-sft", ADA, H100X8, runs.LLAMA_OUT_OF_MEMORY, 2.1 * DAY_S, nodes=4),
    DemoJob("llama-8b-lora-r16", "llama-sft", GRACE, H100X8, runs.LLAMA_8B_LORA, 5.2 * HOUR_S),
    DemoJob("mistral-24b-dpo-1", "llama-sft", ADA, H100X8, runs.MISTRAL_DPO, 8 * HOUR_S, waited_s=600),
    DemoJob("llama-8b-lora-draft", "llama-sft", GRACE, H100X8, runs.LLAMA_8B_LORA, 6.5 * HOUR_S),
    DemoJob("qwen3-grpo-6", "qwen3-grpo", KAI, H200X8, runs.QWEN_GRPO_OUT_OF_MEMORY, 7.4 * HOUR_S, nodes=2),
    DemoJob("qwen3-grpo-5", "qwen3-grpo", KAI, H200X8, runs.QWEN_GRPO, 1.2 * DAY_S, nodes=2, waited_s=7_200),
    DemoJob("qwen3-grpo-4", "qwen3-grpo", KAI, H200X8, runs.QWEN_GRPO, 2.8 * DAY_S, nodes=2, spot=True),
    DemoJob("qwen3-8b-sft", "qwen3-grpo", GRACE, H200X8, runs.QWEN_8B_SFT, 4 * MINUTE_S),
    DemoJob("whisper-large-ft-2", "whisper-asr", MIRA, A10G, runs.WHISPER_FT, 3.1 * HOUR_S),
    DemoJob("whisper-large-ft-1", "whisper-asr", MIRA, A10G, runs.WHISPER_FT, 1.9 * DAY_S),
    DemoJob("whisper-small-ft", "whisper-asr", MIRA, A10G, runs.WHISPER_SMALL, 26 * HOUR_S),
    DemoJob("flux-lora-products", "flux-lora", MIRA, H100, runs.FLUX_LORA, 50 * MINUTE_S),
    DemoJob("flux-lora-sketches", "flux-lora", MIRA, H100, runs.FLUX_LORA, 2.4 * DAY_S),
    DemoJob("flux-lora-custom-image", "flux-lora", TOMAS, H100, runs.BROKEN_IMAGE, 2.2 * HOUR_S),
    DemoJob("retrieval-embed-v4", "retrieval-embed", TOMAS, L4X4, runs.EMBEDDER, 1.4 * DAY_S, waited_s=90),
    DemoJob("retrieval-embed-v3", "retrieval-embed", TOMAS, L4X4, runs.EMBEDDER, 3.3 * DAY_S),
    DemoJob("titan-warmup-test", "pretraining", KAI, H200X8, runs.TITAN, 5.1 * HOUR_S),
    DemoJob("tokenize-slimpajama", "pretraining", KAI, CPU_SMALL, runs.TOKENIZING, 1.7 * DAY_S),
    DemoJob("tokenize-typo", "pretraining", KAI, CPU_SMALL, runs.NEVER_STARTED, 1.8 * DAY_S),
    DemoJob("mmlu-llama-70b-v1", "evals", TOMAS, L4X4, runs.EVALUATION, 1.0 * DAY_S),
    DemoJob("mmlu-mistral-dpo-1", "evals", TOMAS, L4X4, runs.EVALUATION, 6.8 * HOUR_S),
    DemoJob("ifeval-first-try", "evals", TOMAS, L4, runs.EVALUATION_IMPORT_ERROR, 20 * MINUTE_S),
)

RUNNING_JOBS = tuple(map(running, _RUNNING))
WAITING_JOBS = tuple(map(waiting, _WAITING))
PAST_JOBS = tuple(map(ended, _PAST))
