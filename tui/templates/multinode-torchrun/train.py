"""Train a small transformer to continue counting sequences, on as many processes as torchrun starts.

Replace ``batches`` with your data and ``Counter`` with your model. Runs on GPUs over NCCL and on CPUs over
gloo. The environment variable STEPS sets the number of steps.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

BATCH = 32
VOCABULARY = 64
LENGTH = 16
WIDTH = 64
LEARNING_RATE = 1e-3
LOG_EVERY = 10
CHECKPOINT_EVERY = 50


class Counter(nn.Module):
    """A transformer that predicts the next number of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.position = nn.Parameter(torch.zeros(LENGTH, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, nhead=4, dim_feedforward=4 * WIDTH, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, num_layers=2)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, numbers: Tensor) -> Tensor:
        """Return scores for the next numbers: batch × length × vocabulary."""
        hidden = self.embedding(numbers) + self.position
        mask = nn.Transformer.generate_square_subsequent_mask(LENGTH, device=numbers.device)
        return self.head(self.layers(hidden, mask=mask, is_causal=True))


def batches(rank: int, device: torch.device) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield sequences that count up by 1 to 5, different on each rank, and the same shifted by one."""
    generator = torch.Generator().manual_seed(rank)
    while True:
        start = torch.randint(VOCABULARY, (BATCH, 1), generator=generator)
        stride = torch.randint(1, 6, (BATCH, 1), generator=generator)
        numbers = (start + stride * torch.arange(LENGTH + 1)) % VOCABULARY
        yield numbers[:, :-1].to(device), numbers[:, 1:].to(device)


def save_checkpoint(root: Path, step: int, model: Counter) -> None:
    """Write the whole model; only rank 0 does this."""
    folder = root / f"checkpoint-{step}"
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), folder / "model.pt")
    print(f"INFO saved {folder}", flush=True)


def load_checkpoint(root: Path, model: Counter) -> None:
    """Resume from the newest checkpoint loaded by ``load_checkpoint_config``, if there is one."""
    checkpoints = sorted(root.rglob("model.pt"), key=lambda path: path.stat().st_mtime)
    if checkpoints:
        model.load_state_dict(torch.load(checkpoints[-1], map_location="cpu", weights_only=True))
        print(f"INFO resuming from {checkpoints[-1]}", flush=True)


def main() -> None:
    """Train on this rank's share; rank 0 prints the loss."""
    on_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rank, local_rank = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    print(f"INFO rank {rank} of {dist.get_world_size()} on {device}", flush=True)

    torch.manual_seed(0)
    model = Counter()
    if loaded_checkpoint := os.environ.get("BT_LOAD_CHECKPOINT_DIR"):
        load_checkpoint(Path(loaded_checkpoint), model)
    parallel = DistributedDataParallel(model.to(device), device_ids=[local_rank] if on_gpu else None)
    optimizer = torch.optim.AdamW(parallel.parameters(), lr=LEARNING_RATE)
    checkpoints = os.environ.get("BT_CHECKPOINT_DIR")

    steps = int(os.environ.get("STEPS", "200"))
    started_s = time.monotonic()
    for step, (numbers, targets) in enumerate(batches(rank, device), start=1):
        scores = parallel(numbers)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and (step % LOG_EVERY == 0 or step == steps):
            rate = step / (time.monotonic() - started_s)
            print(f"step {step}/{steps} loss={loss.item():.4f} lr={LEARNING_RATE} {rate:.2f}it/s", flush=True)
        if rank == 0 and checkpoints and (step % CHECKPOINT_EVERY == 0 or step == steps):
            save_checkpoint(Path(checkpoints), step, model)
        if step == steps:
            break
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
