"""Read the log lines that explain a finding or a failed run."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace

from api_client.client import TrainingClient
from api_client.models.logs import LogGap, LogLine
from tui.analysis.run.finding import HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.why.explain import MAX_LINES, explain, explained_range
from tui.analysis.why.explanation import Explanation
from tui.text.units import count


async def read_explanation(
    client: TrainingClient, run: RunSnapshot, finding: HealthFinding | None
) -> Explanation:
    """Explain a finding, or why a run failed if it is None. Raises RequestError.

    One of the facts is that not all lines were read, if so.
    """
    start, end = explained_range(run, finding)
    lines: list[LogLine] = []
    unread: list[str] = []
    history = client.logs.history(run.job.project_id, run.job.id, start=start, end=end, newest_first=True)
    async with aclosing(history) as batches:
        async for batch in batches:
            lines += reversed([entry for entry in batch.entries if isinstance(entry, LogLine)])
            if any(isinstance(entry, LogGap) for entry in batch.entries):
                unread = ["part of the log could not be read"]
            if len(lines) >= MAX_LINES:
                unread.append(f"only the newest {count(MAX_LINES)} log lines were read")
                break
    lines = lines[:MAX_LINES]
    lines.reverse()
    explanation = await asyncio.to_thread(explain, run, finding, lines)
    return replace(explanation, facts=(*explanation.facts, *unread))
