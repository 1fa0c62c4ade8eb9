"""Log lines for the benchmarks of the log view: all of one kind, or of all kinds that jobs print."""

from __future__ import annotations

from collections.abc import Callable

from api_client.models.logs import LogLine

NS_PER_LINE = 1_000_000
START_NS = 1_700_000_000_000_000_000
NODES = 4
BAR_STATES = 100

TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "/workspace/train.py", line 212, in <module>',
    "    trainer.train(resume_from_checkpoint=last)",
    '  File "/usr/lib/python3.11/site-packages/torch/autograd/graph.py", line 825, in _engine_run_backward',
    "    return Variable._execution_engine.run_backward(",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB.",
)

MakeLines = Callable[..., list[LogLine]]


def make_lines(count: int, first: int = 0, last: int | None = None) -> list[LogLine]:
    """Return lines ``first`` to ``last`` (exclusive) of a log of ``count`` lines, from four nodes."""
    return [
        LogLine(START_NS + index * NS_PER_LINE, _step_text(index, count), f"node-{index % NODES}", None)
        for index in range(first, count if last is None else last)
    ]


def make_mixed(count: int, first: int = 0, last: int | None = None) -> list[LogLine]:
    """Like ``make_lines``, but of many kinds; a fifth are not ASCII or have escape sequences."""
    return [
        LogLine(
            START_NS + index * NS_PER_LINE,
            _mixed_text(index, count),
            f"node-{index // len(TRACEBACK) % NODES}",
            None,
        )
        for index in range(first, count if last is None else last)
    ]


def _step_text(index: int, count: int) -> str:
    return (
        f"step {index} {{'loss': {2 - index / count:.4f}, 'grad_norm': 0.71, 'learning_rate': 1.9e-05, "
        f"'epoch': {index / count:.3f}}}"
    )


def _mixed_text(index: int, count: int) -> str:
    if index // len(TRACEBACK) % 100 == 99:
        return TRACEBACK[index % len(TRACEBACK)]
    kind = index % 10
    if kind == 1:
        clock = f"\x1b[2m2026-11-21 10:00:{index % 60:02}\x1b[0m"
        return f"\x1b[32mINFO\x1b[0m {clock} worker {index % 8}: batch {index} ready"
    if kind == 2:
        return f"Prüfpunkt {index} gespeichert – 検証損失 {2 - index / count:.4f} ✓"
    if kind == 3:
        loss = f"{2 - index / count:.4f}"
        return f'{{"step": {index}, "loss": {loss}, "tags": ["train", "main"], "node": {index % 4}}}'
    if kind == 4:
        percent = index // 10 % BAR_STATES
        bar = "█" * (percent // 10)
        return "".join(
            f"\rEpoch 1: {state:3}%|{bar:<10}| {state}/100 [00:01<00:09]"
            for state in range(percent, percent + 3)
        )
    if kind == 5:
        return f"WARNING dataloader: worker {index % 8} took {index % 50 / 10} s"
    if kind == 6:
        percent = index // 10 % BAR_STATES
        return (
            f"Loading shards:  {percent}%|{'█' * (percent // 10):<10}| {percent}/100 [00:01<00:09, 1.2it/s]"
        )
    return _step_text(index, count)
