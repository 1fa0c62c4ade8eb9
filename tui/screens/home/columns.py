"""The columns of Home's tables, and its header line: remote, attention needed, running jobs, cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tui.analysis.cost import total_cost
from tui.analysis.export import ExportTable
from tui.analysis.fleet.snapshot import FleetSnapshot, JobRow, ProjectRow, attention
from tui.tables.column import Column, Sort, Span, exported, text_cell
from tui.tables.jobs import JOB_COLUMNS
from tui.text.sanitize import sanitize
from tui.text.units import UNKNOWN, count, counted, money, number
from tui.widgets.charts.spec import trace

MIN_GPU_HOURS = 1.0
ATTENTION = "warn"
"""Tone of the number of jobs that need attention; no other fact of the header has it."""


def header_facts(
    place: str,
    snapshot: FleetSnapshot | None,
    rows: Sequence[JobRow],
    *,
    marked: int,
    compare_key: str,
    filter_key: str,
    query: str,
    project: str,
) -> tuple[list[list[Span]], int]:
    """Return the facts, the most important first, and the number of facts that must be visible.

    The must-see facts include everything that hides jobs: the filter ``query`` after its key, the
    ``project`` if one is chosen, and how many of all jobs are listed as ``rows``.
    """
    facts: list[list[Span]] = [[("bt-tui", "key"), (f"  {place}", "plain")]]
    if query:
        facts.append([(filter_key, "key"), (query, "accent")])
    total = len(snapshot.jobs) if snapshot is not None else 0
    if snapshot is not None and (query or project):
        within = [(" in ", "muted"), (project, "accent")] if project else []
        facts.append([(f"{len(rows)} of {counted(total, 'job')}", "plain"), *within])
    priority_count = len(facts)
    if marked:
        facts.append([(f"◆ {marked} marked", "key"), (f" {compare_key} compares", "muted")])
    if snapshot is not None:
        running = [row for row in rows if row.running]
        if words := attention(rows):
            facts.append([(words, ATTENTION)])
        if not (query or project):
            facts.append([(counted(total, "job"), "muted")])
        facts.append([(f"{len(running)} running", "running" if running else "muted")])
        busy = sum(row.gpu_count for row in running)
        if busy:
            facts.append([(f"{counted(busy, 'GPU')} busy", "muted")])
        if spent := _total(rows, snapshot):
            facts.append(spent)
            if snapshot.bill is not None and snapshot.bill.why_not:
                facts.append([(f"estimate: {sanitize(snapshot.bill.why_not)}", "muted")])
    return facts, priority_count


def _total(rows: Sequence[JobRow], snapshot: FleetSnapshot) -> list[Span]:
    """Return an upper bound of the listed jobs' GPU-hours, what is billed, and an upper bound of the rest."""
    cost = total_cost(((row.job, row.charge) for row in rows), snapshot.prices, snapshot.bill, snapshot.at)
    spans: list[Span] = []
    if cost.gpu_hours >= MIN_GPU_HOURS:
        spans.append((f"≤ {count(cost.gpu_hours)} GPU·h", "muted"))
    if cost.billed.minutes:
        spans.append((f"{' ' if spans else ''}{money(cost.billed.usd)} billed", "muted"))
    if spans and cost.usd:
        plus = " +" if cost.billed.minutes else ""
        more = f" + {cost.unpriced} unpriced" if cost.unpriced else ""
        spans.append((f"{plus} ≤ {money(cost.usd)}{more}", "muted"))
    return spans


TRACE_CELLS = 8


def _name(row: JobRow) -> list[Span]:
    mark = ("◆", "key") if row.marked else ("★", "caution") if row.bookmarked else (" ", "plain")
    mark = ("■", "caution") if row.stopping and not row.marked else mark
    return [(row.status.sign, row.status.tone), mark, (row.name, "plain")]


def _note(row: JobRow) -> list[Span]:
    later = [(" ■ stops after next checkpoint", "caution")] if row.stopping else []
    return [(row.note, row.note_tone), *later]


def _note_without_status(row: JobRow) -> list[Span]:
    """Return the note, after the word for the status unless the note implies it: only the sign shows it."""
    if row.running or (row.note and not row.note.startswith("after ")):
        return _note(row)
    return [(f"{row.status.word} {row.note}".rstrip(), row.status.tone)]


def _trace(row: JobRow) -> list[Span]:
    return [(trace(row.trace, TRACE_CELLS, low=0.0, high=1.0), "running")] if row.trace else []


def _mean_use(row: JobRow) -> float | None:
    known = [value for value in row.trace if value is not None]
    return sum(known) / len(known) if known else None


# Problems of a job take precedence over other columns; where the status word does not fit, sign and note show
# the status.
_OF_JOB: dict[str, Column[JobRow]] = {column.id: column.of(lambda row: row.job) for column in JOB_COLUMNS}
_NAME = replace(
    _OF_JOB["name"],
    title="  job",
    cell=_name,
    width=22,
    flex=4,
    keep=9,
    clip="middle",
    value=lambda row: row.name.lower(),
)
_STATUS = replace(
    _OF_JOB["status"],
    cell=lambda row: [(row.status.word, row.status.tone)],
    width=13,
    keep=5,
    value=lambda row: row.rank,
)
_PROGRESS: Column[JobRow] = Column(
    "note",
    "progress",
    _note,
    width=21,
    flex=4,
    keep=8,
    without={"status": _note_without_status},
    value=lambda row: row.progress,
    descending=True,
    export=lambda row: row.note,
)
_STEP: Column[JobRow] = Column(
    "step",
    "step",
    text_cell(lambda row: row.steps, "muted"),
    width=13,
    align="right",
    keep=3,
    value=lambda row: row.progress[1] if row.progress is not None else None,
    descending=True,
    export=lambda row: row.steps,
)
_LOSS: Column[JobRow] = Column(
    "loss",
    "loss",
    text_cell(lambda row: number(row.loss) if row.loss is not None else "", "muted"),
    width=7,
    align="right",
    keep=4,
    value=lambda row: row.loss,
    export=lambda row: row.loss,
)
_GPU_USE: Column[JobRow] = Column(
    "trace", "gpu use", _trace, width=TRACE_CELLS, keep=4, value=_mean_use, export=_mean_use, field="gpu_use"
)
_PROJECT = replace(
    _OF_JOB["project"],
    cell=text_cell(lambda row: row.project, "muted"),
    value=lambda row: (row.project.lower(), row.status.order) if row.project else None,
)
_AGE = replace(
    _OF_JOB["age"],
    cell=text_cell(lambda row: row.age, "muted"),
    width=3,
    value=lambda row: row.age_s if row.age != UNKNOWN else None,
)


def job_columns(fleet: Callable[[], FleetSnapshot | None]) -> tuple[Column[JobRow], ...]:
    """Return the columns of the job list, with the cost by the bill and the prices of ``fleet``."""

    def cost_of(row: JobRow) -> tuple[float, bool] | None:
        snapshot = fleet()
        return snapshot.cost_of(row) if snapshot is not None else None

    def usd(row: JobRow) -> float | None:
        known = cost_of(row)
        return known[0] if known is not None else None

    def cost(row: JobRow) -> list[Span]:
        known = cost_of(row)
        return [(f"{'≤' if known[1] else ''}{money(known[0])}", "muted")] if known is not None else []

    cost_column = Column(
        "cost",
        "cost",
        cost,
        width=8,
        align="right",
        keep=4,
        value=usd,
        descending=True,
        export=usd,
        field="cost_usd",
    )
    return (
        _NAME,
        _STATUS,
        _OF_JOB["gpus"],
        _PROGRESS,
        _STEP,
        _LOSS,
        _GPU_USE,
        cost_column,
        _PROJECT,
        _OF_JOB["user"],
        _OF_JOB["priority"],
        _OF_JOB["spot"],
        _AGE,
    )


def jobs_table(columns: Iterable[Column[JobRow]], rows: Iterable[JobRow]) -> ExportTable:
    """Return what the server knows about the jobs, then what only these columns show."""
    return exported("jobs", (*_OF_JOB.values(), *columns), rows)


FIRST_SORT: Sort = ("status", False)

ALL_PROJECTS = ""
"""Row key of the line that selects all projects."""


def _jobs(row: ProjectRow) -> list[Span]:
    running = [(f"●{row.running} ", "running")] if row.running else []
    return [*running, (str(row.jobs), "muted")]


PROJECT_COLUMNS: tuple[Column[ProjectRow], ...] = (
    Column("name", "projects", text_cell(lambda row: row.name), width=8, flex=1, keep=2),
    Column("jobs", "", _jobs, width=6, align="right", keep=1),
)
