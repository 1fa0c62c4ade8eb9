"""The list of all jobs, grouped by need: columns, headings and header; also the list of projects."""

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
from tui.tables.column import FILL, GAP, MARGIN, Column, Heading, Sort, Span, chosen, exported, text_cell
from tui.tables.jobs import JOB_COLUMNS
from tui.text.sanitize import cell_width, sanitize
from tui.text.units import UNKNOWN, counted, duration, money, number, percent, thin_bar

if TYPE_CHECKING:
    from api_client.models import TrainingJob

Drawer = Callable[[tuple[float | None, ...], int], str]
"""Draws a curve of values as one line of text, as wide as the given number of cells."""


def no_curve(_values: tuple[float | None, ...], _cells: int) -> str:
    return ""


ATTENTION = "caution"
"""Tone at the end of the header's fact that jobs need attention; Home finds the fact by this tone."""


def header_facts(
    remote_label: str,
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
    facts: list[list[Span]] = [[("bt-tui", "key"), (f"  {remote_label}", "plain")]]
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
        if counts := count_needing_attention(rows):
            signs = [(f"{SIGNS[severity]} {count} ", TONES[severity]) for severity, count in counts.items()]
            facts.append([*signs, (need_attention(counts), ATTENTION)])
        facts.append([(f"{len(running)} running", "running" if running else "muted")])
        if usd_per_hour := sum(row.usd_per_hour or 0.0 for row in running):
            facts.append([(f"{money(usd_per_hour)}/h", "muted")])
        if busy := sum(row.gpu_count for row in running):
            facts.append([(f"{counted(busy, 'GPU')} busy", "muted")])
        if not (query or project):
            facts.append([(counted(total, "job"), "muted")])
        cost = snapshot.cost_of(rows)
        if cost.spent_usd:
            unpriced = f" + {cost.unpriced} unpriced" if cost.unpriced else ""
            spent = f"{cost.sign} {money(cost.spent_usd)}".strip()
            facts.append([(f"{spent if snapshot.is_read else READING[0][0]} spent{unpriced}", "muted")])
            if snapshot.bill is not None and snapshot.bill.why_not:
                facts.append([(f"estimate: {sanitize(snapshot.bill.why_not)}", "muted")])
    return facts, priority_count


TITLES = {
    Need.ATTENTION: "needs you",
    Need.RUNNING: "running",
    Need.WAITING: "waiting",
    Need.ENDED: "ended",
}


def group_headings(rows: Sequence[JobRow]) -> list[Heading]:
    """Return the heading of each group of ``rows``, which must be in the order of ``Need``."""
    headings: list[Heading] = []
    for need, title in TITLES.items():
        first = bisect_left(rows, need, key=lambda row: row.need)
        group = rows[first : bisect_right(rows, need, key=lambda row: row.need)]
        if not group:
            continue
        gpus = sum(row.gpu_count for row in group)
        words = f"{counted(gpus, 'GPU')}" if gpus and need in (Need.RUNNING, Need.WAITING) else ""
        if need is Need.ATTENTION and (wasted := sum(row.wasted_usd_per_hour for row in group)) >= 1:
            words = f"wasting ≈{money(wasted)}/h, the most wasteful first"
        headings.append((first, [(f"{title} {len(group)}", "heading"), (f"  {words}", "muted")]))
    return headings


BAR_CELLS = 6
CURVE_CELLS, VALUE_CELLS = 7, 7
READING = [("⋯", "muted")]
"""The cell of a value that is still being read."""


def _or_reading(row: JobRow, spans: list[Span]) -> list[Span]:
    """Return ``READING`` while the job is still being read, else ``spans``."""
    return READING if row.preview.reading else spans


def _sign(row: JobRow) -> list[Span]:
    mark = ("◆", "key") if row.marked else ("★", "caution") if row.bookmarked else (" ", "plain")
    mark = ("■", "caution") if row.stopping and not row.marked else mark
    return [(row.sign, "muted" if row.tone == "good" else row.tone), mark]


def _name(row: JobRow) -> list[Span]:
    return [(row.name, _WEIGHTS[row.need])]


_WEIGHTS = {Need.ATTENTION: "strong", Need.RUNNING: "plain", Need.WAITING: "plain", Need.ENDED: "muted"}
"""The tone of a job's name."""


def _note(row: JobRow) -> list[Span]:
    text = row.note if row.alarmed else row.note or row.saved
    note = [(text, row.tone if row.alarmed else "muted")] if text else _or_reading(row, [])
    return [*note, (f" ■ {row.stopping}", "caution")] if row.stopping else note


def _note_or_loss(draw: Drawer, row: JobRow) -> list[Span]:
    """Return the note; without one, the loss. Used if the column of the loss is left out."""
    return _note(row) if row.note or row.stopping else _loss(draw, row)


def _lost(row: JobRow) -> list[Span]:
    if row.lost_usd >= 1:
        return [(f"−${row.lost_usd:,.0f}", "plain")]
    return _or_reading(row, []) if row.alarmed else []


def _note_and_lost(draw: Drawer, row: JobRow) -> list[Span]:
    """Return the note or loss and, at the right, the problem's cost. Used if its column is left out."""
    lost = [FILL, (" ", "plain"), *_lost(row)] if row.lost_usd >= 1 else []
    return [*_note_or_loss(draw, row), *lost]


def _health(row: JobRow) -> list[Span]:
    """Return the worst finding; else why the job ended or waits, or that a check found no problems."""
    if row.alarmed or row.note:
        return [(f"{row.sign} {row.note}", row.tone)] if row.alarmed else [(row.note, "muted")]
    is_healthy = row.running and row.preview.log_read
    return [("no problems", "muted")] if is_healthy else _or_reading(row, [])


def _verdict(row: JobRow) -> str | None:
    """Return the worst finding's severity; else for a running job ``healthy`` or ``checking``, else None."""
    severities = (finding.severity for finding in row.findings if finding.severity != "info")
    checked = "healthy" if row.preview.log_read else "checking"
    return next(severities, checked if row.running else None)


def _progress_bar(row: JobRow) -> list[Span]:
    """Return a bar and the percentage, or the step; for a job that ended early, the percentage only."""
    fraction = row.progress.fraction if row.progress is not None else None
    if row.need is Need.ENDED:
        ended_early = fraction and row.status.name != JobStatus.COMPLETED
        return [(percent(fraction), "muted")] if fraction and ended_early else []
    if fraction is not None:
        done, rest = thin_bar(fraction, BAR_CELLS)
        return [(done, "bar"), (rest, "faint"), (f"{percent(fraction):>5}", "plain")]
    if row.running and row.steps:
        return [(f"step {row.steps}", "plain")]
    return _or_reading(row, [("no step yet", "muted")]) if row.running else []


def _progress(row: JobRow) -> list[Span]:
    """Return the progress of a job; for one that does not run, its status."""
    done = _progress_bar(row)
    if row.need is Need.ENDED:
        return [(" ".join([row.status.word, *(text for text, _tone in done)]), "muted")]
    return done or [(f"{row.status.word} {row.age}", "muted")]


def _steps(row: JobRow) -> list[Span]:
    """Return the steps; empty if the progress column shows them (a running job without a known end)."""
    is_progress = row.running and (row.progress is None or row.progress.fraction is None)
    return [] if is_progress else [(row.steps, "muted")]


def _left(row: JobRow) -> list[Span]:
    return [(duration(row.eta_s), "muted")] if row.eta_s is not None else []


def _loss(draw: Drawer, row: JobRow) -> list[Span]:
    """Return the curve and the value of the loss; in reinforcement learning, of the reward."""
    value = row.loss if row.reward is None else row.reward
    if value is None:
        return _or_reading(row, [])
    bad = any(finding.kind.loss for finding in row.findings)
    tone = "bad" if bad else "muted" if row.need is Need.ENDED else "plain"
    text = f" {'' if row.reward is None else 'rew '}{number(value)}".rjust(VALUE_CELLS)
    curve = draw(row.preview.curve, CURVE_CELLS + VALUE_CELLS - len(text))
    return [(curve, "curve"), FILL, (text, tone)]


def _gpu_use(row: JobRow) -> list[Span]:
    use = row.preview.gpu_use if row.running else None
    if use is None:
        return _or_reading(row, []) if row.running and row.gpu_count else []
    return [(percent(use), "plain" if row.alarmed else "muted")]


_JOB_COLUMN: dict[str, Column[JobRow]] = {column.id: column.of(lambda row: row.job) for column in JOB_COLUMNS}
_COLUMNS: tuple[Column[JobRow], ...] = (
    Column("need", "", _sign, width=2, keep=10, value=lambda row: row.rank),
    replace(
        _JOB_COLUMN["name"],
        title="job",
        cell=_name,
        width=21,
        flex=4,
        most=32,
        keep=9,
        clip="middle",
        value=lambda row: row.name.lower(),
    ),
    replace(
        _JOB_COLUMN["gpus"],
        cell=lambda row: [(row.gpu, "muted" if row.need is Need.ENDED else "plain")],
    ),
    Column(
        "progress",
        "progress",
        _progress,
        width=BAR_CELLS + 5,
        keep=7,
        value=lambda row: row.done,
        descending=True,
        export=lambda row: row.progress.fraction if row.progress is not None else None,
    ),
    Column(
        "left",
        "left",
        _left,
        width=7,
        align="right",
        keep=6,
        value=lambda row: row.eta_s,
        export=lambda row: row.eta_s,
        field="eta_s",
    ),
    Column(
        "note",
        "",
        _note,
        width=20,
        flex=4,
        keep=8,
        export=lambda row: row.note,
    ),
    Column(
        "lost",
        "lost",
        _lost,
        width=6,
        align="right",
        keep=5,
        value=lambda row: row.lost_usd or None,
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
        keep=1,
        value=lambda row: row.done[1] if row.done is not None else None,
        descending=True,
        export=lambda row: row.steps,
    ),
    Column(
        "loss",
        "loss",
        width=CURVE_CELLS + VALUE_CELLS,
        align="right",
        keep=4,
        value=lambda row: row.loss if row.reward is None else None,
        export=lambda row: row.loss,
    ),
    Column(
        "use",
        "use",
        _gpu_use,
        width=4,
        align="right",
        keep=3,
        value=lambda row: row.preview.gpu_use,
        export=lambda row: row.preview.gpu_use,
        field="gpu_use",
    ),
    Column("cost", "≈ cost", width=7, align="right", keep=4, descending=True, field="cost_usd"),
    replace(
        _JOB_COLUMN["project"],
        width=15,
        cell=text_cell(lambda row: row.project, "muted"),
        value=lambda row: (row.project.lower(), row.status.order) if row.project else None,
    ),
    replace(_JOB_COLUMN["user"], flex=12),
    _JOB_COLUMN["priority"],
    _JOB_COLUMN["spot"],
    replace(
        _JOB_COLUMN["age"],
        cell=text_cell(lambda row: row.age, "muted"),
        width=3,
        keep=3,
        value=lambda row: row.age_s if row.age != UNKNOWN else None,
    ),
)
"""The columns of the job list, in the order of the screen; ``job_columns`` completes three of them."""


def job_columns(
    fleet: Callable[[], FleetSnapshot | None], draw: Drawer = no_curve
) -> tuple[Column[JobRow], ...]:
    """Return the columns of the job list.

    ``fleet`` returns the snapshot whose bill and prices give the cost; ``draw`` draws the curve of the loss.
    """

    def cost_of(row: JobRow) -> TotalCost | None:
        snapshot = fleet()
        total = snapshot.cost_of([row]) if snapshot is not None else None
        return total if total is not None and total.spent_usd and not total.unpriced else None

    def usd(row: JobRow) -> float | None:
        cost = cost_of(row)
        return cost.spent_usd if cost is not None else None

    def cost(row: JobRow) -> list[Span]:
        total, snapshot = cost_of(row), fleet()
        is_awaited = row.preview.reading and row.preview.idle_s is None
        if total is not None and not is_awaited:
            return [(money(total.spent_usd), "muted")]
        has_bill = snapshot is None or snapshot.bill is not None
        return READING if row.node_seconds is not None and (is_awaited or not has_bill) else []

    completed: dict[str, dict[str, Any]] = {
        "note": {"without": {"lost": partial(_note_and_lost, draw), "loss": partial(_note_or_loss, draw)}},
        "loss": {"cell": partial(_loss, draw)},
        "cost": {"cell": cost, "value": usd, "export": usd},
    }
    return tuple(replace(column, **completed.get(column.id, {})) for column in _COLUMNS)


def health_columns(fleet: Callable[[], FleetSnapshot | None]) -> tuple[Column[JobRow], ...]:
    """Return the columns that only Home has (progress, health, cost …), for commands that list jobs."""
    of_home = {column.id: column for column in job_columns(fleet)}
    health: Column[JobRow] = Column(
        "health", "health", _health, width=20, keep=8, shrinks=True, export=_verdict, field="verdict"
    )
    columns = {**of_home, "progress": replace(of_home["progress"], cell=_progress_bar), "health": health}
    return chosen(columns.values(), "progress step left health note lost loss use cost")


HEALTH = "progress left health lost loss use cost"
"""IDs of the columns that ``bt-tui jobs --health`` adds to its list."""


Cells = Mapping[str, Sequence[Span]]
"""The cells of a job in ``HEALTH`` columns."""


def health_cells(fleet: FleetSnapshot, row: JobRow) -> dict[str, list[Span]]:
    return {column.id: list(column.cell(row)) for column in chosen(health_columns(lambda: fleet), HEALTH)}


def listed_columns(cells: Mapping[str, Cells]) -> tuple[Column[TrainingJob], ...]:
    """Return the columns of ``bt-tui jobs --health``, with each job's ``cells`` by job ID."""

    def with_given_cells(column: Column[JobRow]) -> Column[TrainingJob]:
        def cell(job: TrainingJob) -> Sequence[Span]:
            return cells.get(job.id, {}).get(column.id, ())

        changes: dict[str, Any] = {"cell": cell, "needed_by": None}
        return cast("Column[TrainingJob]", replace(column, **changes))

    added = (with_given_cells(column) for column in health_columns(lambda: None))
    job = (replace(column, keep=10) if column.id in ("id", "status") else column for column in JOB_COLUMNS)
    return chosen((*job, *added), f"status id name gpus {HEALTH} age")


def jobs_table(columns: Iterable[Column[JobRow]], rows: Iterable[JobRow]) -> ExportTable:
    """Return a table with the server's fields of the jobs, then with those of ``columns``."""
    return exported("jobs", (*_JOB_COLUMN.values(), *columns), rows)


FIRST_SORT: Sort = ("need", False)

ALL_PROJECTS = ""
"""Row key of the line that selects all projects."""


def _job_counts(row: ProjectRow) -> list[Span]:
    severity = "critical" if row.is_critical else "warning"
    alarmed = [(f"{SIGNS[severity]}{row.alarmed} ", TONES[severity])] if row.alarmed else []
    running = [(f"●{row.running} ", "running")] if row.running else []
    return [*alarmed, *running, (str(row.jobs), "muted")]


def projects_cells(projects: Sequence[ProjectRow]) -> int:
    """Return the width that the list of projects needs."""
    name, jobs = PROJECT_COLUMNS
    names = max((cell_width(project.name) for project in projects), default=name.width)
    border = 1
    return min(40, max(name.title_cells, names) + GAP + jobs.width + 2 * MARGIN + border)


PROJECT_COLUMNS: tuple[Column[ProjectRow], ...] = (
    Column("name", "projects", text_cell(lambda row: row.name), width=8, flex=1, keep=2),
    Column("jobs", "", _job_counts, width=10, align="right", keep=1),
)
