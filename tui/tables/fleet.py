"""Home's list of all jobs, grouped by how much they need the user: columns, group headings and header.

Also the columns of Home's list of projects, and the columns that ``bt-tui jobs --health`` adds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from api_client.vocabulary import JobStatus
from tui.analysis.cost import TotalCost
from tui.analysis.export import ExportTable
from tui.analysis.fleet.snapshot import FleetSnapshot, JobRow, Need, ProjectRow, count_needing_attention
from tui.analysis.run.finding import SIGNS, TONES, need_attention
from tui.tables.column import (
    FILL_MARKER,
    GAP,
    MARGIN,
    Column,
    Heading,
    Sort,
    Span,
    export_table,
    select_columns,
    text_cell,
)
from tui.tables.jobs import JOB_COLUMNS
from tui.text.sanitize import cell_width, sanitize
from tui.text.units import UNKNOWN, counted, duration, money, number, percent, thin_bar

if TYPE_CHECKING:
    from api_client.models import TrainingJob

CurveDrawer = Callable[[tuple[float | None, ...], int], str]
"""Takes values and a number of cells; returns a curve of the values as a text of that width."""


def no_curve(_values: tuple[float | None, ...], _cells: int) -> str:
    return ""


ATTENTION_TONE = "caution"
"""Tone of the last span of the header's fact "… need attention"; Home finds that fact by its tone."""


def header_facts(
    remote_label: str,
    snapshot: FleetSnapshot | None,
    rows: Sequence[JobRow],
    *,
    marked_count: int,
    compare_key: str,
    filter_key: str,
    query: str,
    project: str,
) -> tuple[list[list[Span]], int]:
    """Return the facts of Home's header, the most important first, and how many of them must stay visible.

    Facts about what hides jobs must stay visible: the filter ``query``, the selected ``project`` (empty for
    all projects), and how many of all jobs are listed. ``rows`` are the listed jobs, of which
    ``marked_count`` are marked; ``filter_key`` and ``compare_key`` are the keys to show as hints.
    """
    facts: list[list[Span]] = [[("bt-tui", "key"), (f"  {remote_label}", "plain")]]
    if query:
        facts.append([(filter_key, "key"), (query, "accent")])
    job_count = len(snapshot.jobs) if snapshot is not None else 0
    if snapshot is not None and (query or project):
        in_project = [(" in ", "muted"), (project, "accent")] if project else []
        facts.append([(f"{len(rows)} of {counted(job_count, 'job')}", "plain"), *in_project])
    priority_count = len(facts)
    if marked_count:
        facts.append([(f"◆ {marked_count} marked", "key"), (f" {compare_key} compares", "muted")])
    if snapshot is not None:
        running_rows = [row for row in rows if row.running]
        if counts := count_needing_attention(rows):
            signs = [(f"{SIGNS[severity]} {count} ", TONES[severity]) for severity, count in counts.items()]
            facts.append([*signs, (need_attention(counts), ATTENTION_TONE)])
        facts.append([(f"{len(running_rows)} running", "running" if running_rows else "muted")])
        if usd_per_hour := sum(row.usd_per_hour or 0.0 for row in running_rows):
            facts.append([(f"{money(usd_per_hour)}/h", "muted")])
        if busy_gpu_count := sum(row.gpu_count for row in running_rows):
            facts.append([(f"{counted(busy_gpu_count, 'GPU')} busy", "muted")])
        if not (query or project):
            facts.append([(counted(job_count, "job"), "muted")])
        cost = snapshot.cost_of(rows)
        if cost.spent_usd:
            unpriced_text = f" + {cost.unpriced} unpriced" if cost.unpriced else ""
            spent_text = f"{cost.sign} {money(cost.spent_usd)}".strip()
            facts.append(
                [(f"{spent_text if snapshot.is_read else READING_SPANS[0][0]} spent{unpriced_text}", "muted")]
            )
            if snapshot.bill is not None and snapshot.bill.unreadable_reason:
                facts.append([(f"estimate: {sanitize(snapshot.bill.unreadable_reason)}", "muted")])
    return facts, priority_count


GROUP_TITLES = {
    Need.ATTENTION: "needs you",
    Need.RUNNING: "running",
    Need.WAITING: "waiting",
    Need.ENDED: "ended",
}


def group_headings(rows: Sequence[JobRow]) -> list[Heading]:
    """Return the heading of each group of ``rows``, which must be in the order of ``Need``."""
    headings: list[Heading] = []
    for need, title in GROUP_TITLES.items():
        first = bisect_left(rows, need, key=lambda row: row.need)
        group = rows[first : bisect_right(rows, need, key=lambda row: row.need)]
        if not group:
            continue
        gpus = sum(row.gpu_count for row in group)
        details = counted(gpus, "GPU") if gpus and need in (Need.RUNNING, Need.WAITING) else ""
        if need is Need.ATTENTION and (wasted_usd := sum(row.wasted_usd_per_hour for row in group)) >= 1:
            details = f"wasting ≈{money(wasted_usd)}/h, the most wasteful first"
        headings.append((first, [(f"{title} {len(group)}", "heading"), (f"  {details}", "muted")]))
    return headings


BAR_CELLS = 6
CURVE_CELLS, VALUE_CELLS = 7, 7
READING_SPANS = [("⋯", "muted")]
"""Content of a cell whose value is still being read."""


def _unless_reading(row: JobRow, spans: list[Span]) -> list[Span]:
    """Return ``spans``, or ``READING_SPANS`` while the job is still being read."""
    return READING_SPANS if row.preview.reading else spans


def _state_and_mark(row: JobRow) -> list[Span]:
    """Return two signs: the job's state, and whether it is marked, else stopping, else bookmarked."""
    mark = ("◆", "key") if row.marked else ("★", "caution") if row.bookmarked else (" ", "plain")
    mark = ("■", "caution") if row.stopping and not row.marked else mark
    return [(row.sign, "muted" if row.tone == "good" else row.tone), mark]


def _name(row: JobRow) -> list[Span]:
    return [(row.name, _NAME_TONES[row.need])]


_NAME_TONES = {Need.ATTENTION: "strong", Need.RUNNING: "plain", Need.WAITING: "plain", Need.ENDED: "muted"}
"""Tones of job names, by how much the jobs need the user."""


def _note(row: JobRow) -> list[Span]:
    text = row.note if row.alarmed else row.note or row.saved
    note = [(text, row.tone if row.alarmed else "muted")] if text else _unless_reading(row, [])
    return [*note, (f" ■ {row.stopping}", "caution")] if row.stopping else note


def _note_or_loss(draw: CurveDrawer, row: JobRow) -> list[Span]:
    """Return the note, or the loss if there is no note; for a table without the "loss" column."""
    return _note(row) if row.note or row.stopping else _loss(draw, row)


def _lost(row: JobRow) -> list[Span]:
    if row.lost_usd >= 1:
        return [(f"−${row.lost_usd:,.0f}", "plain")]
    return _unless_reading(row, []) if row.alarmed else []


def _note_and_lost(draw: CurveDrawer, row: JobRow) -> list[Span]:
    """Return the note or loss, and at the right the cost of a problem; without the "lost" column."""
    lost = [FILL_MARKER, (" ", "plain"), *_lost(row)] if row.lost_usd >= 1 else []
    return [*_note_or_loss(draw, row), *lost]


def _health(row: JobRow) -> list[Span]:
    """Return the worst finding; without findings, why the job ended or waits, or "no problems"."""
    if row.alarmed or row.note:
        return [(f"{row.sign} {row.note}", row.tone)] if row.alarmed else [(row.note, "muted")]
    is_healthy = row.running and row.preview.log_read
    return [("no problems", "muted")] if is_healthy else _unless_reading(row, [])


def _verdict(row: JobRow) -> str | None:
    """Return the severity of the worst finding, such as ``critical``.

    Without findings, return None, or for a running job ``healthy`` (until its log is read, ``checking``).
    """
    severities = (finding.severity for finding in row.findings if finding.severity != "info")
    verdict_without_findings = "healthy" if row.preview.log_read else "checking"
    return next(severities, verdict_without_findings if row.running else None)


def _progress_bar(row: JobRow) -> list[Span]:
    """Return a bar and a percentage; for a running job without a known end, the step.

    A job that ended early has only the percentage, a completed job nothing.
    """
    fraction = row.progress.fraction if row.progress is not None else None
    if row.need is Need.ENDED:
        ended_early = row.status.name != JobStatus.COMPLETED
        return [(percent(fraction), "muted")] if fraction and ended_early else []
    if fraction is not None:
        completed, remaining = thin_bar(fraction, BAR_CELLS)
        return [(completed, "bar"), (remaining, "faint"), (f"{percent(fraction):>5}", "plain")]
    if row.running and row.steps:
        return [(f"step {row.steps}", "plain")]
    return _unless_reading(row, [("no step yet", "muted")]) if row.running else []


def _progress(row: JobRow) -> list[Span]:
    """Return the progress of a job; if the job waits or ended, its status."""
    progress = _progress_bar(row)
    if row.need is Need.ENDED:
        return [(" ".join([row.status.word, *(text for text, _tone in progress)]), "muted")]
    return progress or [(f"{row.status.word} {row.age}", "muted")]


def _steps(row: JobRow) -> list[Span]:
    """Return the steps; nothing for a running job without a known end: its progress column shows them."""
    progress_column_shows_steps = row.running and (row.progress is None or row.progress.fraction is None)
    return [] if progress_column_shows_steps else [(row.steps, "muted")]


def _time_left(row: JobRow) -> list[Span]:
    return [(duration(row.eta_s), "muted")] if row.eta_s is not None else []


def _loss(draw: CurveDrawer, row: JobRow) -> list[Span]:
    """Return the curve and the value of the loss; for reinforcement learning, of the reward."""
    value = row.loss if row.reward is None else row.reward
    if value is None:
        return _unless_reading(row, [])
    has_loss_finding = any(finding.kind.loss for finding in row.findings)
    tone = "bad" if has_loss_finding else "muted" if row.need is Need.ENDED else "plain"
    value_text = f" {'' if row.reward is None else 'rew '}{number(value)}".rjust(VALUE_CELLS)
    curve = draw(row.preview.curve, CURVE_CELLS + VALUE_CELLS - len(value_text))
    return [(curve, "curve"), FILL_MARKER, (value_text, tone)]


def _gpu_utilization(row: JobRow) -> list[Span]:
    utilization = row.preview.gpu_utilization if row.running else None
    if utilization is None:
        return _unless_reading(row, []) if row.running and row.gpu_count else []
    return [(percent(utilization), "plain" if row.alarmed else "muted")]


_JOB_COLUMN_BY_ID: dict[str, Column[JobRow]] = {
    column.id: column.for_rows(lambda row: row.job) for column in JOB_COLUMNS
}
_COLUMNS: tuple[Column[JobRow], ...] = (
    Column("need", "", _state_and_mark, width=2, priority=10, sort_key=lambda row: row.rank),
    replace(
        _JOB_COLUMN_BY_ID["name"],
        title="job",
        cell=_name,
        width=21,
        flex=4,
        max_width=32,
        priority=9,
        clip="middle",
        sort_key=lambda row: row.name.lower(),
    ),
    replace(
        _JOB_COLUMN_BY_ID["gpus"],
        cell=lambda row: [(row.gpu, "muted" if row.need is Need.ENDED else "plain")],
    ),
    Column(
        "progress",
        "progress",
        _progress,
        width=BAR_CELLS + 5,
        priority=7,
        sort_key=lambda row: row.fraction_and_step,
        descending=True,
        export=lambda row: row.progress.fraction if row.progress is not None else None,
    ),
    Column(
        "left",
        "left",
        _time_left,
        width=7,
        align="right",
        priority=6,
        sort_key=lambda row: row.eta_s,
        export=lambda row: row.eta_s,
        field="eta_s",
    ),
    Column(
        "note",
        "",
        _note,
        width=20,
        flex=4,
        priority=8,
        export=lambda row: row.note,
    ),
    Column(
        "lost",
        "lost",
        _lost,
        width=6,
        align="right",
        priority=5,
        sort_key=lambda row: row.lost_usd or None,
        descending=True,
        export=lambda row: row.lost_usd,
        field="lost_usd",
    ),
    Column(
        "step",
        "step",
        _steps,
        width=13,
        align="right",
        priority=1,
        sort_key=lambda row: row.fraction_and_step[1] if row.fraction_and_step is not None else None,
        descending=True,
        export=lambda row: row.steps,
    ),
    Column(
        "loss",
        "loss",
        width=CURVE_CELLS + VALUE_CELLS,
        align="right",
        priority=4,
        sort_key=lambda row: row.loss if row.reward is None else None,
        export=lambda row: row.loss,
    ),
    Column(
        "use",
        "use",
        _gpu_utilization,
        width=4,
        align="right",
        priority=3,
        sort_key=lambda row: row.preview.gpu_utilization,
        export=lambda row: row.preview.gpu_utilization,
        field="gpu_use",
    ),
    Column("cost", "≈ cost", width=7, align="right", priority=4, descending=True, field="cost_usd"),
    replace(
        _JOB_COLUMN_BY_ID["project"],
        width=15,
        cell=text_cell(lambda row: row.project, "muted"),
        sort_key=lambda row: (row.project.lower(), row.status.order) if row.project else None,
    ),
    replace(_JOB_COLUMN_BY_ID["user"], flex=12),
    _JOB_COLUMN_BY_ID["priority"],
    _JOB_COLUMN_BY_ID["spot"],
    replace(
        _JOB_COLUMN_BY_ID["age"],
        cell=text_cell(lambda row: row.age, "muted"),
        width=3,
        priority=3,
        sort_key=lambda row: row.age_s if row.age != UNKNOWN else None,
    ),
)
"""Columns of the job list, in the order of the screen; ``job_columns`` completes "note", "loss", "cost"."""


def job_columns(
    fleet: Callable[[], FleetSnapshot | None], draw: CurveDrawer = no_curve
) -> tuple[Column[JobRow], ...]:
    """Return the columns of the job list.

    ``fleet`` returns the current snapshot, whose bill and prices give the cost of a job; ``draw`` draws the
    curve of the loss.
    """

    def cost_of(row: JobRow) -> TotalCost | None:
        snapshot = fleet()
        total = snapshot.cost_of([row]) if snapshot is not None else None
        return total if total is not None and total.spent_usd and not total.unpriced else None

    def spent_usd(row: JobRow) -> float | None:
        cost = cost_of(row)
        return cost.spent_usd if cost is not None else None

    def cost_cell(row: JobRow) -> list[Span]:
        cost, snapshot = cost_of(row), fleet()
        is_awaited = row.preview.reading and row.preview.idle_s is None
        if cost is not None and not is_awaited:
            return [(money(cost.spent_usd), "muted")]
        has_bill = snapshot is None or snapshot.bill is not None
        return READING_SPANS if row.node_seconds is not None and (is_awaited or not has_bill) else []

    notes = {"lost": partial(_note_and_lost, draw), "loss": partial(_note_or_loss, draw)}
    changes_by_id: dict[str, dict[str, Any]] = {
        "note": {"cells_without": notes},
        "loss": {"cell": partial(_loss, draw)},
        "cost": {"cell": cost_cell, "sort_key": spent_usd, "export": spent_usd},
    }
    return tuple(replace(column, **changes_by_id.get(column.id, {})) for column in _COLUMNS)


def health_columns(fleet: Callable[[], FleetSnapshot | None]) -> tuple[Column[JobRow], ...]:
    """Return the columns of progress, health and cost, for commands that list jobs."""
    column_by_id = {column.id: column for column in job_columns(fleet)}
    column_by_id["progress"] = replace(column_by_id["progress"], cell=_progress_bar)
    column_by_id["health"] = Column(
        "health", "health", _health, width=20, priority=8, shrinks=True, export=_verdict, field="verdict"
    )
    return select_columns(column_by_id.values(), "progress step left health note lost loss use cost")


HEALTH_COLUMN_IDS = "progress left health lost loss use cost"
"""IDs of the columns that the option ``--health`` adds to ``bt-tui jobs``."""


HealthCells = Mapping[str, Sequence[Span]]
"""The cells of one job in the columns of ``HEALTH_COLUMN_IDS``, by column ID."""


def health_cells(fleet: FleetSnapshot, row: JobRow) -> dict[str, list[Span]]:
    return {
        column.id: list(column.cell(row))
        for column in select_columns(health_columns(lambda: fleet), HEALTH_COLUMN_IDS)
    }


def listed_columns(cells: Mapping[str, HealthCells]) -> tuple[Column[TrainingJob], ...]:
    """Return the columns of ``bt-tui jobs --health``; ``cells`` are the health cells by job ID."""

    def with_given_cells(column: Column[JobRow]) -> Column[TrainingJob]:
        def cell(job: TrainingJob) -> Sequence[Span]:
            return cells.get(job.id, {}).get(column.id, ())

        changes: dict[str, Any] = {"cell": cell, "needed_by": None}
        return cast("Column[TrainingJob]", replace(column, **changes))

    added_columns = (with_given_cells(column) for column in health_columns(lambda: None))
    identifying_columns = [
        replace(column, priority=10) for column in select_columns(JOB_COLUMNS, "id status")
    ]
    # of two columns with the same ID, the last is selected
    columns = (*JOB_COLUMNS, *identifying_columns, *added_columns)
    return select_columns(columns, f"status id name gpus {HEALTH_COLUMN_IDS} age")


def jobs_table(columns: Iterable[Column[JobRow]], rows: Iterable[JobRow]) -> ExportTable:
    """Return the export of jobs: the API's fields of each job, then the fields of ``columns``."""
    return export_table("jobs", (*_JOB_COLUMN_BY_ID.values(), *columns), rows)


DEFAULT_SORT: Sort = ("need", False)

ALL_PROJECTS = ""
"""Key of the row "all projects" in the list of projects."""


def _job_counts(row: ProjectRow) -> list[Span]:
    severity = "critical" if row.is_critical else "warning"
    alarmed_count = [(f"{SIGNS[severity]}{row.alarmed} ", TONES[severity])] if row.alarmed else []
    running_count = [(f"●{row.running} ", "running")] if row.running else []
    return [*alarmed_count, *running_count, (str(row.jobs), "muted")]


def projects_width_cells(projects: Sequence[ProjectRow]) -> int:
    """Return the width in cells that the list of projects needs, with its border; at most 40."""
    name_column, jobs_column = PROJECT_COLUMNS
    name_cells = max((cell_width(project.name) for project in projects), default=name_column.width)
    border = 1
    name_cells = max(name_column.title_cells, name_cells)
    return min(40, name_cells + GAP + jobs_column.width + 2 * MARGIN + border)


PROJECT_COLUMNS: tuple[Column[ProjectRow], ...] = (
    Column("name", "projects", text_cell(lambda row: row.name), width=8, flex=1, priority=2),
    Column("jobs", "", _job_counts, width=10, align="right", priority=1),
)
