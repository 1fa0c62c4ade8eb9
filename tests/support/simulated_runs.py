"""Simulated training runs: healthy ones that look sick, and sick ones.

A run is a seeded script: it advances a clock in minutes, and writes the lines of a trainer and what its nodes
are busy with. The samples of the nodes follow from that. All numbers are typical of real runs; none is
derived from the checks.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from api_client.models import Checkpoint, InstanceType, JobMetrics, JobStatus, TrainingJob
from api_client.models.logs import LogLine
from api_client.models.metrics import MetricSample, NodeMetrics, NodeSeries, StorageMetrics
from support.trainer_lines import EVALUATIONS, SAVED, SAVES, STYLES, hms
from support.watched_run import WatchedRun
from tui.analysis.run.finding import HealthFinding

BEGIN = datetime(2026, 3, 2, 7, 30, tzinfo=UTC)
GPU_BYTES = 80 * 1024**3
NODE_BYTES = 400 * 1024**3
DISK_BYTES = 2 * 1024**4
SAMPLE_S = 30

Curve = Callable[[float], float]
Level = float | Curve


@dataclass(frozen=True)
class Noise:
    """``loss`` and ``step`` are relative, ``use`` is of a GPU (0–1), ``chatter`` is lines per minute."""

    name: str
    loss: float
    step: float
    use: float
    dip: float
    missing: float
    chatter: float


NOISES = (
    Noise("calm", 0.005, 0.01, 0.01, 0.0, 0.0, 0.0),
    Noise("rough", 0.05, 0.12, 0.06, 0.04, 0.02, 0.5),
)
CHATTER = (
    "torch/utils/checkpoint.py:295: FutureWarning: `torch.cpu.amp.autocast(args...)` is deprecated.",
    "wandb: Network error (ConnectionError), entering retry loop.",
    "[W socket.cpp:436] [c10d] The server socket cannot be initialized on [::]:29500 (errno: 97).",
    "Token indices sequence length is longer than the specified maximum sequence length (9211 > 8192).",
    "huggingface/tokenizers: The current process just got forked, after parallelism has already been used.",
)  # fmt: skip


# Curves over minutes.


def at(level: Level, minute: float) -> float:
    return level(minute) if callable(level) else level


def path(*points: tuple[float, float]) -> Curve:
    """Return straight lines between points (minute, value), flat before the first and after the last."""
    minutes = [minute for minute, _ in points]

    def curve(minute: float) -> float:
        index = bisect_right(minutes, minute)
        if index == 0 or index == len(points):
            return points[min(index, len(points) - 1)][1]
        (left, low), (right, high) = points[index - 1], points[index]
        return low + (high - low) * (minute - left) / (right - left)

    return curve


def settle(start: float, end: float, tau: float) -> Curve:
    return lambda minute: end + (start - end) * math.exp(-minute / tau)


def power(start: float, end: float, first: float = 1.0, exponent: float = 0.5) -> Curve:
    """Return a loss that falls as a power of time, as those of language models do."""
    return lambda minute: end + (start - end) * (1 + minute / first) ** -exponent


def saw(period: float, low: float, high: float) -> Curve:
    return lambda minute: low + (high - low) * (minute % period) / period


def wave(period: float, mean: float, height: float) -> Curve:
    return lambda minute: mean + height * math.sin(2 * math.pi * minute / period)


def total(*curves: Level) -> Curve:
    return lambda minute: sum(at(curve, minute) for curve in curves)


def bump(begin: float, height: float, tau: float, rise: float = 0.3) -> Curve:
    """Return a spike that rises in ``rise`` minutes and decays with ``tau``."""

    def curve(minute: float) -> float:
        since = minute - begin
        if since <= 0:
            return 0.0
        return height * min(1.0, since / rise) * math.exp(-max(0.0, since - rise) / tau)

    return curve


# Nodes.

LOADS: Mapping[str, Level] = {
    "start": 0.0, "data": 0.0, "idle": 0.0, "compile": 0.05, "save": 0.03, "train": 0.94, "eval": 0.6,
    "rollout": 0.85, "update": 0.93, "hang": 1.0,
}  # fmt: skip
CORES: Mapping[str, float] = {"data": 70.0, "start": 6.0, "idle": 1.0, "compile": 20.0, "hang": 3.0}


@dataclass
class Node:
    """``loads`` are GPU utilizations by activity; ``gpu_loads`` those of single GPUs, as a factor."""

    name: str
    gpus: int = 2
    loads: dict[str, Level] = field(default_factory=dict)
    gpu_loads: dict[int, Level] = field(default_factory=dict)
    cores: Level | None = None
    gpu_memory: Level = 0.8
    memory: Level = 0.35
    disk: Level = 0.25
    skew_s: float = 0.0
    gone: float = math.inf


class Run:
    """A run that is being written: ``minute`` is its clock, ``trained`` the minutes of training so far."""

    def __init__(
        self, seed: str, noise: Noise, style: str, *, nodes: int = 1, gpus: int = 2, steps: int = 10_000
    ) -> None:
        self.random = random.Random(f"{seed} {noise.name}")
        self.noise, self.style, self.steps = noise, style, steps
        self.nodes = [Node(f"node-{index}", gpus) for index in range(nodes)]
        self.speaker = nodes - 1 if style == "megatron" else 0
        self.minute = self.trained = self.fit_began = 0.0
        self.step, self.step_s, self.epoch_steps = 0, 1.0, 1000
        self.norm: Level = 0.7
        self.skipped, self.batch, self.flops = 0, 512, 2.4
        self.sequence: int | None = None
        self.signals: dict[str, Level] = {}
        self.lines: list[tuple[float, LogLine]] = []
        self.spans: list[tuple[float, str]] = []
        self.checkpoints: list[Checkpoint] = []
        self._next_chatter = self._chatter_gap()

    def now(self) -> datetime:
        return BEGIN + timedelta(minutes=self.minute)

    def say(self, *texts: str, node: int | None = None, level: str | None = None) -> None:
        one = self.nodes[self.speaker if node is None else node]
        for text in texts:
            stamp = self.now() + timedelta(seconds=one.skew_s, microseconds=len(self.lines) % 1000)
            stamp_ns = round(stamp.timestamp() * 1e6) * 1000
            self.lines.append((self.minute, LogLine(stamp_ns, text, one.name, level)))

    def spend(self, minutes: float, activity: str, *texts: str) -> None:
        """Say the texts, then be busy for that long."""
        self.say(*texts)
        self.spans.append((self.minute, activity))
        end = self.minute + minutes
        while self._next_chatter < end:
            self.minute = self._next_chatter
            node = self.random.randrange(len(self.nodes))
            if self.minute < self.nodes[node].gone:
                self.say(self.random.choice(CHATTER), node=node)
            self._next_chatter += self._chatter_gap()
        self.minute = end

    def _chatter_gap(self) -> float:
        return self.random.expovariate(self.noise.chatter) if self.noise.chatter else math.inf

    def bars(self, minutes: float, activity: str, name: str, count: int, every: float = 1.0) -> None:
        """Be busy with a progress bar, one line each ``every`` minutes."""
        parts = max(1, round(minutes / every))
        for part in range(parts):
            self.spend(minutes / parts, activity)
            done = (part + 1) / parts
            passed, left = hms(done * minutes * 60), hms((1 - done) * minutes * 60)
            rate, shown = f"{count / minutes / 60:.2f}it/s", int(count * done)
            blocks = f"{'█' * int(10 * done):<10}"
            self.say(f"{name}: {done:4.0%}|{blocks}| {shown}/{count} [{passed}<{left}, {rate}]")

    def start(self, minutes: float = 4.0, *texts: str) -> None:
        third = minutes / 3
        self.spend(third, "start", f"Launching on {len(self.nodes)} nodes, torch 2.8.0+cu128", *texts)
        self.spend(third, "start", "Loading checkpoint shards:  50%|█████     | 2/4 [00:21<00:21, 10.52s/it]")
        self.spend(third, "start", "Loading checkpoint shards: 100%|██████████| 4/4 [00:42<00:00, 10.49s/it]")

    def train(
        self, minutes: float, step_s: Level, loss: Level, *, every: int = 1, steps: float = math.inf,
        parts: Sequence[tuple[str, float]] = (("train", 1.0),), spread: float = 1.0,
    ) -> None:  # fmt: skip
        """Make steps of ``step_s`` seconds for that long, or that many, and print each ``every``-th."""
        end, last = self.minute + minutes, self.step + steps
        if self.step == 0:
            self.fit_began = self.minute
        values: list[float] = []
        while self.minute < end and self.step < last:
            jitter = math.exp(self.random.gauss(0, self.noise.step))
            self.step_s = at(step_s, self.trained) * jitter
            for activity, share in parts:
                self.spend(self.step_s * share / 60, activity)
            self.trained += self.step_s / 60
            self.step += 1
            level = at(loss, self.trained)
            values.append(level + max(abs(level), 0.02) * self.random.gauss(0, self.noise.loss * spread))
            if self.step % every == 0:
                self.print_step(sum(values) / len(values))
                values.clear()

    def print_step(self, loss: float) -> None:
        norm = at(self.norm, self.trained) * math.exp(self.random.gauss(0, 0.1 + 3 * self.noise.loss))
        self.say(*STYLES[self.style](self, loss, norm))

    def value(self, name: str) -> float:
        level = at(self.signals.get(name, 0.0), self.trained)
        return level * (1 + self.random.gauss(0, 2 * self.noise.loss))

    def save(self, minutes: float = 0.7, *, listed: bool = True) -> None:
        self.spend(minutes, "save", *[self.filled(text) for text in SAVES.get(self.style, SAVES["hf"])])
        if self.style == "megatron":
            self.say(self.filled(SAVED))
        if listed:
            name = f"checkpoint-{self.step}"
            self.checkpoints.append(Checkpoint(checkpoint_id=name, created_at=self.now()))

    def evaluate(self, minutes: float, loss: float, *, has_bar: bool = True) -> None:
        announced, bar, result = EVALUATIONS.get(self.style, EVALUATIONS["hf"])
        self.say(*[self.filled(text) for text in announced])
        if has_bar:
            self.bars(minutes, "eval", bar, 400)
        else:
            self.spend(minutes, "eval")
        self.say(self.filled(result, loss=loss, perplexity=math.exp(loss), seconds=minutes * 60))

    def filled(self, text: str, **values: float) -> str:
        stamp, epoch = f"{self.now():%Y-%m-%d %H:%M:%S}", self.step / self.epoch_steps
        return text.format(step=self.step, epoch=epoch, stamp=stamp, **values)

    def refit(self, *texts: str) -> None:
        """Begin another training: steps and loss start again."""
        self.say(*texts)
        self.step, self.trained, self.fit_began = 0, 0.0, self.minute

    # The printed form of numbers.

    def learning_rate(self, peak: float = 2e-5) -> float:
        part = min(1.0, self.step / self.steps)
        return peak * min(1.0, self.step / max(1, self.steps // 30)) * (1 + math.cos(math.pi * part)) / 2

    def bar(self, postfix: str = "") -> str:
        done = min(1.0, self.step / self.steps)
        passed = (self.minute - self.fit_began) * 60
        left = max(0, self.steps - self.step) * self.step_s
        rate = f"{self.step_s:.2f}s/it" if self.step_s >= 1 else f"{1 / self.step_s:.2f}it/s"
        blocks = f"{'█' * int(10 * done):<10}"
        shown = f"{self.step}/{self.steps} [{hms(passed)}<{hms(left)}, {rate:>9}{postfix}]"
        return f"{done:4.0%}|{blocks}| {shown}"


# A case is a run and what is expected of it.


@dataclass(frozen=True)
class Trouble:
    """What is wrong, words that name it, when it begins, and by when a person wants to know (minutes)."""

    what: str
    words: tuple[str, ...]
    begins: float
    by: float

    def is_named_by(self, finding: HealthFinding) -> bool:
        text = f"{finding.kind} {finding.text}".lower()
        return any(word in text for word in self.words)


Script = Callable[[Run], None]


@dataclass(frozen=True)
class Case:
    name: str
    style: str
    script: Script
    trouble: Trouble | None
    options: Mapping[str, int]

    def run(self, noise: Noise) -> Run:
        run = Run(self.name, noise, self.style, **self.options)
        self.script(run)
        return run


def case(number: int, style: str, trouble: Trouble | None = None, **options: int) -> Callable[[Script], Case]:
    """Make a case of a script; options are those of the run."""

    def make(script: Script) -> Case:
        letter = "healthy" if trouble is None else "sick"
        return Case(f"{letter}-{number:02}-{script.__name__}", style, script, trouble, options)

    return make


# What a dashboard would have shown.


class Samples:
    """The samples of all nodes of a run, each half minute; ``until`` returns the new ones."""

    def __init__(self, run: Run) -> None:
        self._minutes = [index * SAMPLE_S / 60 for index in range(int(run.minute * 60 / SAMPLE_S) + 1)]
        self._stamps = [BEGIN + timedelta(minutes=minute) for minute in self._minutes]
        self._begins = [begin for begin, _ in run.spans]
        self._run = run
        self._nodes = [(node.name, self._of(node)) for node in run.nodes]
        self._read = 0

    def _of(self, node: Node) -> list[tuple[float, ...] | None]:
        """Return rows: GPU utilizations, GPU memories, cores, memory, disk; None without a sample."""
        run, rng = self._run, random.Random(f"{self._run.random.random()}")
        noise, rows = run.noise, list[tuple[float, ...] | None]()
        loads = {**LOADS, **node.loads}
        for minute in self._minutes:
            if minute > node.gone or rng.random() < noise.missing:
                rows.append(None)
                continue
            activity = run.spans[max(0, bisect_right(self._begins, minute) - 1)][1]
            load = at(loads[activity], minute)
            if rng.random() < noise.dip:
                load *= 0.4
            uses = [
                min(
                    1.0,
                    max(0.0, load * at(node.gpu_loads.get(gpu, 1.0), minute) * (1 + rng.gauss(0, noise.use))),
                )
                for gpu in range(node.gpus)
            ]
            memory = at(node.gpu_memory, minute) * (0.02 if activity in ("start", "data") else 1.0)
            memories = [GPU_BYTES * memory] * node.gpus
            cores = at(node.cores, minute) if node.cores is not None else CORES.get(activity, 14.0)
            wobble = 1 + rng.gauss(0, noise.use / 10)
            rows.append((*uses, *memories, cores * (1 + rng.gauss(0, noise.use)),
                         NODE_BYTES * min(1.0, at(node.memory, minute) * wobble),
                         min(1.0, at(node.disk, minute))))  # fmt: skip
        return rows

    def until(self, minute: float) -> JobMetrics:
        begin, self._read = self._read, bisect_right(self._minutes, minute)
        window = slice(begin, self._read)
        nodes = []
        for (name, rows), node in zip(self._nodes, self._run.nodes, strict=True):
            known = [
                (stamp, row) for stamp, row in zip(self._stamps[window], rows[window], strict=True) if row
            ]
            columns = [
                [MetricSample(stamp, row[index]) for stamp, row in known]
                for index in range(2 * node.gpus + 3)
            ]
            uses, memories, (cores, memory, disk) = (
                columns[: node.gpus],
                columns[node.gpus : -3],
                columns[-3:],
            )
            usage = [MetricSample(one.timestamp, (one.value or 0.0) * DISK_BYTES) for one in disk]
            series = NodeSeries.model_construct(
                gpu_utilization={str(gpu): column for gpu, column in enumerate(uses)},
                gpu_memory_usage_bytes={str(gpu): column for gpu, column in enumerate(memories)},
                cpu_usage=cores,
                cpu_memory_usage_bytes=memory,
                ephemeral_storage=StorageMetrics.model_construct(utilization=disk, usage_bytes=usage),
            )
            nodes.append(NodeMetrics.model_construct(node_id=name, metrics=series))
        return JobMetrics.model_construct(cache=None, training_job=None, per_node_metrics=nodes)


def looks(run: Run, every_s: float) -> Iterator[tuple[float, tuple[HealthFinding, ...]]]:
    """Yield the minute and the findings of each look, as somebody who watches the run sees them."""
    job = TrainingJob(
        id="simulated", current_status=JobStatus.RUNNING, created_at=BEGIN, training_project_id="project",
        node_count=len(run.nodes),
        instance_type=InstanceType(
            id="h100", gpu_count=run.nodes[0].gpus, gpu_type="H100", gpu_memory_limit_mib=GPU_BYTES // 2**20,
            memory_limit_mib=NODE_BYTES // 2**20,
        ),
    )  # fmt: skip
    watched, samples = WatchedRun(job), Samples(run)
    arrivals, read = [minute for minute, _ in run.lines], 0
    for number in range(1, int(run.minute * 60 / every_s) + 1):
        minute = number * every_s / 60
        arrived = bisect_right(arrivals, minute)
        new = [line for _, line in run.lines[read:arrived]]
        read = arrived
        now = BEGIN + timedelta(minutes=minute)
        saved = tuple(one for one in run.checkpoints if one.created_at is not None and one.created_at <= now)
        yield minute, watched.look(now, new, samples.until(minute), checkpoints=saved)
