"""The status of a run as Markdown, to paste into a chat or an issue: what the header shows."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC

from api_client.models import WAITING_STATUSES
from tui.analysis.run.snapshot import RunSnapshot
from tui.screens.job.header import Fact, cost, health, pace, progress
from tui.text.sanitize import sanitize
from tui.text.units import duration, hardware

UNLIMITED_CELLS = 10_000


def status_markdown(run: RunSnapshot) -> str:
    job, status = run.job, run.status
    elapsed = f" {duration(run.elapsed_s)}" if run.elapsed_s else ""
    facts = (f"{status.word}{elapsed}", hardware(job), _text(cost(run)), sanitize(job.project_name))
    lines = [f"{status.sign} **{sanitize(job.name or job.id)}** {' · '.join(filter(None, facts))}"]
    waits = job.current_status in WAITING_STATUSES
    for line in (pace(run), progress(run), [] if waits else health(run, UNLIMITED_CELLS)):
        text = _joined(line)
        lines += [f"- {text}"] if text else []
    lines.append(f"- `{sanitize(job.id)}`, as of {run.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC")
    return "\n".join(lines)


def _joined(facts: Iterable[Fact]) -> str:
    return " · ".join(filter(None, map(_text, facts)))


def _text(fact: Fact) -> str:
    return "".join(text for text, _ in fact).strip()
