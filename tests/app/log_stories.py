"""The log of a run as it may come: four nodes, banners, bars, JSON, colours, a late line, a gap, a crash."""

from api_client.models.logs import LogEntry, LogGap, LogLine
from support.worlds import ONE_O_CLOCK

SECOND = 1_000_000_000
END = int(ONE_O_CLOCK.timestamp()) * SECOND
NODES = tuple(f"node-{number}" for number in range(4))
CRASH = """Traceback (most recent call last):
  File "/app/train.py", line 214, in <module>
    main()
  File "/app/train.py", line 180, in main
    loss = step(batch)
           ^^^^^^^^^^^
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB."""


def line(
    seconds_ago: float, message: str, node: int = 0, level: str | None = None, *, late: bool = False
) -> LogLine:
    """One line of a node, so long before the end."""
    return LogLine(END - int(seconds_ago * SECOND), message, NODES[node], level, late=late)


def story() -> tuple[LogEntry, ...]:
    """Two hours of it, in time order."""
    entries: list[LogEntry] = []
    entries += [line(7200 - node, f"NCCL version 2.21.5+cuda12.4, rank {node}", node) for node in range(4)]
    for percent in range(0, 101, 4):
        bar = "█" * (percent // 10)
        entries.append(
            line(7000 - percent, f"Loading shards: {percent:3d}%|{bar:<10}| {percent}/100 [00:10<00:12]", 0)
        )
    for number in range(120):
        entries.append(
            line(6000 - number * 30, f"{{'loss': {2.4 - number / 100:.3f}, 'step': {number * 10}}}", 0)
        )
        if number % 10 == 3:
            entries.append(line(5990 - number * 30, "dataloader: worker 3 took 4.1 s", 2, "WARNING"))
    entries.append(LogGap(END - 2300 * SECOND, END - 2000 * SECOND, "the server answered 503"))
    entries.append(line(1900, '{"event": "eval", "metrics": {"loss": 0.91, "accuracy": 0.74}}', 1, "INFO"))
    entries.append(line(1800, "\x1b[1;32mSaving checkpoint\x1b[0m to /mnt/ckpts/checkpoint-1200", 0))
    entries.append(line(900, "all_gather took 42 ms", 3, late=True))
    entries += [line(600 - number / 100, text, 2) for number, text in enumerate(CRASH.splitlines())]
    entries += [
        line(590 - number * 10, f"waiting for node-2, {number * 10} s", number % 2) for number in range(1, 31)
    ]
    entries.append(line(200, "NCCL watchdog: collective timed out", 1, "ERROR"))
    entries.append(line(100, "exit code 1", 2, "ERROR"))
    return tuple(entries)
