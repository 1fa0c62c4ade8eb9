"""Read the log lines that explain a finding or a failed run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from api_client.client import TrainingClient
from api_client.models.logs import LogGap, LogLine
from tui.analysis.run.finding import HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.why.explain import MAX_LINES, explain, explained_range
from tui.analysis.why.explanation import Explanation
from tui.text.units import count


@dataclass(frozen=True, slots=True)
class Evidence:
    """The lines that explain ``finding``; if it is None, the failure of the run.

    ``missing_notes`` say which lines are missing.
    """

    finding: HealthFinding | None
    lines: Sequence[LogLine]
    missing_notes: Sequence[str] = ()

    async def explain(self, run: RunSnapshot) -> Explanation:
        """Explain the finding, or its newer version in ``run``, from these lines."""
        newest_findings = {finding.key: finding for finding in run.findings}
        finding = self.finding and newest_findings.get(self.finding.key, self.finding)
        explanation = await asyncio.to_thread(explain, run, finding, self.lines)
        return replace(explanation, facts=(*explanation.facts, *self.missing_notes))


async def read_explanation(
    client: TrainingClient, run: RunSnapshot, finding: HealthFinding | None
) -> Explanation:
    """Explain ``finding``; if it is None, the failure of the run. Raises RequestError."""
    evidence = await read_evidence(client, run, finding)
    return await evidence.explain(run)


async def read_evidence(client: TrainingClient, run: RunSnapshot, finding: HealthFinding | None) -> Evidence:
    """Read the log lines that explain ``finding``; if it is None, the run's failure. Raises RequestError."""
    start, end = explained_range(run, finding)
    lines: list[LogLine] = []
    missing_notes: list[str] = []
    history = client.logs.history(run.job.project_id, run.job.id, start=start, end=end, newest_first=True)
    async with aclosing(history) as batches:
        async for batch in batches:
            lines += reversed([entry for entry in batch.entries if isinstance(entry, LogLine)])
            if any(isinstance(entry, LogGap) for entry in batch.entries):
                missing_notes = ["part of the log could not be read"]
            if len(lines) >= MAX_LINES:
                missing_notes.append(f"only the newest {count(MAX_LINES)} log lines were read")
                break
    return Evidence(finding, lines[:MAX_LINES][::-1], missing_notes)
