"""Y copies the status as Markdown, wherever it does not copy lines of the log."""

import re

from support.dashboard import Heard, home, job_view, opened, pressed
from support.worlds import JOBS, job, run
from tui.screens.job.header import status_markdown
from tui.screens.messages import CopyRequested


async def test_the_status_of_a_job_is_copied_on_the_tabs_without_a_log() -> None:
    copied = Heard(CopyRequested)
    async with opened(job_view(), message_hook=copied) as pilot:
        for tab in "345":
            await pressed(pilot, tab, "Y")
    assert [one.text for one in copied.messages] == [LLAMA] * 3


def test_the_status_has_the_reason_of_a_failure_and_of_waiting() -> None:
    failed = status_markdown(run(JOBS[6], checkpoints=()))
    reason = "✗ node-1: exit code 1: torch.OutOfMemoryError: CUDA out of memory"
    assert f"- `{reason} · no checkpoints`" in failed.splitlines()
    waiting = status_markdown(run(job("queued", "PENDING", hours_ago=0.25), checkpoints=()))
    assert "- `waiting 15m for 32 H100`" in waiting.splitlines()


def test_text_of_the_server_is_quoted() -> None:
    named = job("grpo", name="**[x](https://x.example)** `@channel`", error_message="<img src=x> @here")
    copied = status_markdown(run(named))
    spans = re.sub(r"`[^`\n]*`", "", copied)
    assert "x.example" in copied and not set("@<[") & set(spans)


async def test_home_copies_the_status_of_the_marked_jobs() -> None:
    copied = Heard(CopyRequested)
    async with opened(home(), (80, 24), message_hook=copied) as pilot:
        await pressed(pilot, "Y", "space", "space", "Y")
    assert [one.text for one in copied.messages] == [GRPO, f"{GRPO}\n{WHISPER}"]


LLAMA = """● **`llama-70b-sft-v3`** `running 6h 12m · 4×8 H100 · 198 GPU·h ≈ $967 · llama-sft`
- `step 4,117/9,000 46% · ETA 6h 46m`
- `loss 1.10 ↓ · 0.20 it/s · lr 1.90e-05`
- `▲ node-2 lags behind the other nodes: GPUs at 56%, others at 92% · ≈$61 lost · checkpoint-4000 12m ago`
- `llama70`, as of 2026-03-01 13:00 UTC"""
WHISPER = "- ● **`whisper-ft`** `running · 52%, 22m left · 1 A10G · submitted 24m ago · whisper · whisper`"
GRPO = "- ● **`qwen3-grpo-7`** `running · ✗ stalled · 44% · 2×8 H200 · submitted 3h ago · qwen3-grpo · grpo7`"


def test_copied_text_obeys_nothing_and_an_id_is_one_line() -> None:
    hostile = "job\nrm -rf ~\r\x1b]52;c;eA==\x07\u202e"
    one_line = CopyRequested(hostile, "job id").text
    assert one_line.isprintable()
    lines = CopyRequested(hostile, "status", keeps_line_breaks=True).text.split("\n")
    assert len(lines) > 1 and all(line.isprintable() for line in lines)
