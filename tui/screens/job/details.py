"""The details tab: all that the API returns about a job, as a list."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import zip_longest

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.reactive import var
from textual.widgets import Static

from tui.analysis.cost import billed_text
from tui.analysis.run.finding import SIGNS, TONES
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.status import status_view, upload_text
from tui.text.sanitize import sanitize_beginning
from tui.text.times import local_time
from tui.text.units import BYTES_PER_MIB, bytes_iec, count, duration, gpu_time, hardware, money
from tui.widgets.tones import Recolored, tone_styles


class Details(Recolored, VerticalScroll, can_focus=True):
    """The job's fields; beside them, or below on narrow screens, its findings and status history."""

    snapshot: var[RunSnapshot | None] = var(None)

    def compose(self) -> ComposeResult:
        yield Static(id="facts")
        yield Static(id="events")

    def recolor(self) -> None:
        self.watch_snapshot(self.snapshot)

    def watch_snapshot(self, snapshot: RunSnapshot | None) -> None:
        if snapshot is not None and self.display:
            strong = tone_styles(self.app)["strong"]
            fields = [(Text(name), Text(sanitize_beginning(value))) for name, value in facts(snapshot)]
            if costs := cost_facts(snapshot):
                fields.append((Text("\ncost", strong), Text()))
            fields += [(Text(name), Text(sanitize_beginning(value))) for name, value in costs]
            self.query_one("#facts", Static).update(self._table(fields))
            self.query_one("#events", Static).update(self._table(self._event_rows(snapshot)))

    def _table(self, rows: Iterable[tuple[Text, Text]]) -> Table:
        table = Table.grid(padding=(0, 2))
        table.add_column(width=19, no_wrap=True, style=tone_styles(self.app)["muted"])
        table.add_column(ratio=1, overflow="fold")
        for row in rows:
            table.add_row(*row)
        return table

    def _event_rows(self, run: RunSnapshot) -> Iterator[tuple[Text, Text]]:
        """Yield the findings, then each status of the job and how long it lasted."""
        tones, events = tone_styles(self.app), run.status_history
        if run.findings:
            yield Text("findings", tones["strong"]), Text()
        for finding in run.findings:
            since_text = local_time(finding.since) if finding.since is not None else finding.severity
            sentence = f"{SIGNS[finding.severity]} {sanitize_beginning(finding.sentence)}"
            yield Text(since_text), Text(sentence, tones[TONES[finding.severity]])
        if events:
            yield Text("\nhistory" if run.findings else "history", tones["strong"]), Text()
        for event, next_event in zip_longest(events, events[1:]):
            view = status_view(event.status)
            text = Text.assemble((f"{view.sign} {view.word}", tones[view.tone]))
            if next_event is not None and next_event.created is not None and event.created is not None:
                text.append(f"  {duration((next_event.created - event.created).total_seconds())}")
            if event.exit_code is not None:
                text.append(f"  exit code {event.exit_code}")
            if event.event_message:
                text.append(f"  {sanitize_beginning(event.event_message)}", tones["muted"])
            yield Text(local_time(event.created)), text


def facts(run: RunSnapshot) -> list[tuple[str, str]]:
    job = run.job
    instance_type = job.instance_type
    memory = (
        bytes_iec(instance_type.memory_limit_mib * BYTES_PER_MIB) if instance_type.memory_limit_mib else ""
    )
    rows = [
        ("id", job.id),
        ("name", job.name or ""),
        ("project", f"{job.project_name} ({job.project_id})" if job.training_project else job.project_id),
        ("status", job.current_status),
        ("message", job.error_message or ""),
        ("hardware", hardware(job)),
        (
            "instance",
            f"{instance_type.name}  {memory}  {instance_type.millicpu_limit / 1000:g} CPU"
            if instance_type.name
            else "",
        ),
        ("availability", (job.availability_model or "").lower()),
        ("priority", str(job.priority or "")),
        ("user", job.user_email or ""),
        ("created", local_time(job.created_at)),
        ("last change", local_time(job.updated_at)),
        ("checkpoint upload", upload_text(job.checkpoint_sync_status)),
    ]
    extra_fields = (
        (name, value) for name, value in (job.model_extra or {}).items() if value not in (None, "")
    )
    rows += [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in extra_fields
    ]
    return [(name, value) for name, value in rows if value]


def cost_facts(run: RunSnapshot) -> list[tuple[str, str]]:
    """Return the cost so far and the projected total; amounts need a bill or a known price."""
    cost = run.cost
    price_text = (
        f"{money(run.price_per_minute * 60)} per node-hour (list price)" if run.price_per_minute else ""
    )
    low, high, range_text, unbilled_text = cost.usd_to_end_low, cost.usd_to_end_high, "", ""
    if low is not None and high is not None and money(low) != money(high):
        range_text = f" ({money(low)}–{money(high)})"
    if cost.billed is not None and cost.unbilled_usd:
        unbilled_text = f"≈ {money(cost.unbilled_usd)} for {count(cost.unbilled_minutes)} min"
    rows = [
        ("price", price_text),
        ("so far", _amount_text(cost.gpu_hours, cost.spent_text)),
        (
            "projected total",
            _amount_text(cost.gpu_hours_to_end, _estimate_text(cost.usd_to_end)) + range_text,
        ),
        ("billed", billed_text(cost.billed) if cost.billed is not None else ""),
        ("not billed yet", unbilled_text),
        ("estimate", cost.basis if cost.usd is not None else ""),
        ("bill", run.bill.unreadable_reason if run.bill is not None else ""),
    ]
    return [(name, value) for name, value in rows if value]


def _estimate_text(usd: float | None) -> str:
    return "" if usd is None else f"≈ {money(usd)}"


def _amount_text(gpu_hours: float | None, usd: str) -> str:
    return "  ".join(filter(None, ("" if gpu_hours is None else gpu_time(gpu_hours), usd)))
