"""The lines that trainers print, for simulated runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.simulated_runs import Run


def hms(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


def hf(run: Run, loss: float, norm: float) -> list[str]:
    rate, epoch = run.learning_rate(), round(run.step / run.epoch_steps, 2)
    values = {"loss": round(loss, 4), "grad_norm": norm, "learning_rate": rate, "epoch": epoch}
    return [run.bar(), str(values)]


def axolotl(run: Run, loss: float, norm: float) -> list[str]:
    values = {
        "loss": f"{loss:.4g}", "grad_norm": f"{norm:.4g}", "learning_rate": f"{run.learning_rate():.4g}",
        "ppl": f"{math.exp(min(50, loss)):.4g}", "memory/max_active (GiB)": "61.2",
        "tokens/train_per_sec_per_gpu": f"{16384 / run.step_s:.0f}",
        "epoch": f"{run.step / run.epoch_steps:.4g}",
    }  # fmt: skip
    return [str(values), run.bar()]


def grpo(run: Run, loss: float, norm: float) -> list[str]:
    reward, length = run.value("reward"), run.value("length")
    values = {
        "loss": f"{loss:.4g}", "grad_norm": f"{norm:.4g}", "learning_rate": f"{run.learning_rate(1e-6):.3g}",
        "num_tokens": f"{run.step * length * 64:.4g}", "completions/mean_length": f"{length:.1f}",
        "completions/max_length": "4096", "completions/clipped_ratio": f"{length / 9000:.4g}",
        "rewards/accuracy_reward/mean": f"{reward:.4f}", "reward": f"{reward:.4f}", "reward_std": "0.2134",
        "frac_reward_zero_std": "0.25", "kl": f"{run.value('kl'):.4g}", "entropy": "0.3123",
        "clip_ratio/region_mean": "0.0012", "step_time": f"{run.step_s:.2f}",
        "epoch": f"{run.step / run.epoch_steps:.4g}",
    }  # fmt: skip
    return [run.bar(), str(values)]


def verl(run: Run, loss: float, norm: float) -> list[str]:
    length, score = run.value("length"), run.value("reward")
    return [
        f"(TaskRunner pid=87031) step:{run.step} - actor/entropy:0.314 - actor/kl_loss:{run.value('kl'):.6f}"
        f" - actor/pg_loss:{loss:.8f} - actor/pg_clipfrac:0.001 - actor/grad_norm:{norm:.6f}"
        f" - actor/lr:1e-06 - training/global_step:{run.step} - training/epoch:{run.step // run.epoch_steps}"
        f" - critic/score/mean:{score:.4f} - critic/rewards/mean:{score:.4f}"
        f" - response_length/mean:{length:.3f} - timing_s/gen:{run.step_s * 0.7:.3f}"
        f" - timing_s/step:{run.step_s:.3f} - perf/time_per_step:{run.step_s:.3f}"
        f" - perf/throughput:{512 * length / run.step_s:.3f}"
    ]


def megatron(run: Run, loss: float, norm: float) -> list[str]:
    flops = run.flops * run.batch / run.step_s
    length = "" if run.sequence is None else f" actual seqlen: {run.sequence:5d} |"
    return [
        f" [{run.now():%Y-%m-%d %H:%M:%S}] iteration {run.step:8d}/{run.steps:8d} | consumed samples:"
        f" {run.step * run.batch:12d} | elapsed time per iteration (ms): {run.step_s * 1e3:.1f} |"
        f" throughput per GPU (TFLOP/s/GPU): {flops:.1f} | learning rate: {run.learning_rate(3e-4):.6E} |"
        f" global batch size: {run.batch:5d} | lm loss: {loss:.6E} | loss scale: 1.0 |"
        f" grad norm: {norm:.3f} |"
        f"{length} number of skipped iterations: {run.skipped:3d} | number of nan iterations:   0 |"
    ]


def torchtune(run: Run, loss: float, norm: float) -> list[str]:
    return [f"{run.step // run.epoch_steps + 1}|{run.step}|Loss: {loss}: {run.bar()}"]


def lightning(run: Run, loss: float, norm: float) -> list[str]:
    epoch, batch = divmod(run.step - 1, run.epoch_steps)
    done, rate = (batch + 1) / run.epoch_steps, f"{1 / run.step_s:.2f}it/s"
    usual_s = (run.minute - run.fit_began) * 60 / run.step
    passed, left = hms(batch * usual_s), hms((run.epoch_steps - batch) * usual_s)
    return [
        f"Epoch {epoch}: {done:4.0%}|{'█' * int(10 * done):<10}| {batch + 1}/{run.epoch_steps}"
        f" [{passed}<{left}, {rate}, v_num=88,"
        f" train_loss_step={loss:.3f}, train_loss_epoch={loss * 1.01:.3f}]"
    ]


def nemo(run: Run, loss: float, norm: float) -> list[str]:
    return [
        f"Training epoch 0, iteration {run.step - 1}/{run.steps - 1} | lr: {run.learning_rate():.4g} |"
        f" global_batch_size: {run.batch} | global_step: {run.step - 1} | reduced_train_loss: {loss:.4g} |"
        f" train_step_timing in s: {run.step_s:.4g} | consumed_samples: {run.step * run.batch} |"
        f" grad_norm: {norm:.4g}"
    ]


def deepspeed(run: Run, loss: float, norm: float) -> list[str]:
    stamp, speed = f"[{run.now():%Y-%m-%d %H:%M:%S},421] [INFO]", 64 / run.step_s
    return [
        f"{stamp} [logging.py:128:log_dist] [Rank 0] step={run.step}, skipped={run.skipped},"
        f" lr=[{run.learning_rate():.6g}], mom=[[0.9, 0.95]]",
        f"{stamp} [timer.py:264:stop] epoch=0/micro_step={run.step}/global_step={run.step},"
        f" RunningAvgSamplesPerSec={speed:.4f}, CurrSamplesPerSec={speed:.4f},"
        " MemAllocated=21.4GB, MaxMemAllocated=61.31GB",
        f"Epoch: {run.step // run.epoch_steps}, Step: {run.step}, Rank: 0, loss = {loss:.4f}",
    ]


def titan(run: Run, loss: float, norm: float) -> list[str]:
    return [
        f"[rank0]:[titan] {run.now():%Y-%m-%d %H:%M:%S},316 - root - INFO - step: {run.step:2d}"
        f"  loss: {loss:8.5f}  grad_norm: {norm:7.4f}  memory: 61.46GiB(76.99%)"
        f"  tps: {16384 / run.step_s:,.0f}  tflops: {900 / run.step_s:.2f}  mfu: {90 / run.step_s:.2f}%"
    ]


def loop(run: Run, loss: float, norm: float) -> list[str]:
    signals = "".join(f", {name}={run.value(name):.3g}" for name in run.signals)
    return [f"train: {run.bar(f', loss={loss:.4g}, lr={run.learning_rate():.3g}{signals}')}"]


def gan(run: Run, loss: float, norm: float) -> list[str]:
    epoch, batch = divmod(run.step, run.epoch_steps)
    return [
        f"[Epoch {epoch}/{run.steps // run.epoch_steps}] [Batch {batch}/{run.epoch_steps}]"
        f" [D loss: {loss:.6f}] [G loss: {run.value('generator'):.6f}]"
    ]


STYLES: Mapping[str, Callable[[Run, float, float], list[str]]] = {
    "hf": hf,
    "axolotl": axolotl,
    "grpo": grpo,
    "verl": verl,
    "megatron": megatron,
    "torchtune": torchtune,
    "lightning": lightning,
    "nemo": nemo,
    "deepspeed": deepspeed,
    "titan": titan,
    "loop": loop,
    "gan": gan,
}
SAVES: Mapping[str, tuple[str, ...]] = {
    "hf": ("Saving model checkpoint to /mnt/ckpts/run/checkpoint-{step}",),
    "verl": ("(TaskRunner pid=87031) local_global_step_folder: /mnt/ckpts/run/global_step_{step}",),
    "megatron": ("saving checkpoint at iteration {step:7d} to /mnt/ckpts/run in torch_dist format",),
    "torchtune": (
        "INFO:torchtune.utils._logging:Model checkpoint of size 14.96 GiB saved to"
        " /mnt/ckpts/run/step_{step}",
    ),
    "deepspeed": (
        "[{stamp},120] [INFO] [torch_checkpoint_engine.py:21:save] [Torch] Saving"
        " /mnt/ckpts/run/global_step{step}/mp_rank_00_model_states.pt...",
    ),
    "titan": (
        "[rank0]:[titan] {stamp},120 - root - INFO - Saving the checkpoint (or staging if async is enabled).",
    ),
}
SAVED = "  successfully saved checkpoint from iteration {step:7d} to /mnt/ckpts/run [ t 1/1, p 1/1 ]"
"""What Megatron-LM adds when it is done."""

EVALUATIONS: Mapping[str, tuple[tuple[str, ...], str, str]] = {
    "hf": (
        ("***** Running Evaluation *****", "  Num examples = 12800", "  Batch size = 8"),
        "",
        "{{'eval_loss': {loss:.4f}, 'eval_runtime': {seconds:.2f}, 'eval_samples_per_second': 10.6,"
        " 'eval_steps_per_second': 0.33, 'epoch': {epoch:.2f}}}",
    ),
    "lightning": (
        (),
        "Validation DataLoader 0",
        "Epoch {epoch:.0f}, global step {step}: 'val_loss' reached {loss:.5f} (best {loss:.5f}),"
        " saving model to '/mnt/ckpts/run/epoch={epoch:.0f}-step={step}.ckpt' as top 3",
    ),
}
"""What announces an evaluation, its progress bar, and its result."""
