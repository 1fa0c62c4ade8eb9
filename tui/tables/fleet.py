"""The list of all jobs by need: its columns, headings and header; and the list of projects."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from api_client.vocabulary import JobStatus
from tui.analysis.cost import TotalCost
from tui.analysis.export import ExportTable
from tui.analysis.fleet.snapshot import FleetSnapshot, JobRow, Need, ProjectRow, needing
from tui.analysis.run.finding import SIGNS, TONES, need_attention
from tui.tables.column import FILL, GAP, MARGIN, Column, Heading, Sort, Span, chosen, exported, text_cell
from tui.tables.jobs import JOB_COLUMNS
from tui.text.sanitize import cell_width, sanitize
from tui.text.units import UNKNOWN, counted, duration, money, number, percent, thin_bar

if TYPE_CHECKING:
    from api_client.models import TrainingJob

Drawer = Callable[[tuple[float | None, ...], int], str]
"""Draws values in one line of as many cells."""


def no_curve(_values: tuple[float | None, ...], _cells: int) -> str:
    return ""


ATTENTION = "caution"
"""Tone of the words that say that jobs need attention; no other fact of the header ends in it."""


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
        if counts := needing(rows):
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
    """Return the line above the first job of each group of ``rows``, which are in the order of ``Need``."""
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


def _unless_unread(row: JobRow, spans: list[Span]) -> list[Span]:
    """Return the cell of a job without a value; while the job is still being read, it looks so."""
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
    note = [(text, row.tone if row.alarmed else "muted")] if text else _unless_unread(row, [])
    return [*note, (f" ■ {row.stopping}", "caution")] if row.stopping else note


def _note_or_loss(draw: Drawer, row: JobRow) -> list[Span]:
    """Return the note; of a healthy run, its loss, where that has no column."""
    return _note(row) if row.note or row.stopping else _loss(draw, row)


def _lost(row: JobRow) -> list[Span]:
    if row.lost_usd >= 1:
        return [(f"−${row.lost_usd:,.0f}", "plain")]
    return _unless_unread(row, []) if row.alarmed else []


def _note_and_lost(draw: Drawer, row: JobRow) -> list[Span]:
    """Return the note, and at the right what the problem has cost, where neither has a column."""
    lost = [FILL, (" ", "plain"), *_lost(row)] if row.lost_usd >= 1 else []
    return [*_note_or_loss(draw, row), *lost]


def _health(row: JobRow) -> list[Span]:
    """Return the worst finding; of a job without one, why it ended or waits, or that it has been checked."""
    if row.alarmed or row.note:
        return [(f"{row.sign} {row.note}", row.tone)] if row.alarmed else [(row.note, "muted")]
    is_healthy = row.running and row.preview.log_read
    return [("no problems", "muted")] if is_healthy else _unless_unread(row, [])


def _verdict(row: JobRow) -> str | None:
    """Return the severity of the worst finding, else ``healthy`` or ``checking``; None if it does not run."""
    severities = (finding.severity for finding in row.findings if finding.severity != "info")
    checked = "healthy" if row.preview.log_read else "checking"
    return next(severities, checked if row.running else None)


def _done(row: JobRow) -> list[Span]:
    """Return a bar and percents, or the step; percents of a job that ended early; else nothing."""
    fraction = row.progress.fraction if row.progress is not None else None
    if row.need is Need.ENDED:
        is_news = fraction and row.status.name != JobStatus.COMPLETED
        return [(percent(fraction), "muted")] if fraction and is_news else []
    if fraction is not None:
        done, rest = thin_bar(fraction, BAR_CELLS)
        return [(done, "bar"), (rest, "faint"), (f"{percent(fraction):>5}", "plain")]
    if row.running and row.steps:
        return [(f"step {row.steps}", "plain")]
    return _unless_unread(row, [("no step yet", "muted")]) if row.running else []


def _progress(row: JobRow) -> list[Span]:
    """Return how far a job is; of one that does not run, its status."""
    done = _done(row)
    if row.need is Need.ENDED:
        return [(" ".join([row.status.word, *(text for text, _tone in done)]), "muted")]
    return done or [(f"{row.status.word} {row.age}", "muted")]


def _steps(row: JobRow) -> list[Span]:
    """Return the steps; empty for a running job without a known end, whose progress shows them."""
    is_progress = row.running and (row.progress is None or row.progress.fraction is None)
    return [] if is_progress else [(row.steps, "muted")]


def _left(row: JobRow) -> list[Span]:
    return [(duration(row.eta_s), "muted")] if row.eta_s is not None else []


def _loss(draw: Drawer, row: JobRow) -> list[Span]:
    """Return the loss behind its curve, or of reinforcement learning the reward."""
    value = row.loss if row.reward is None else row.reward
    if value is None:
        return _unless_unread(row, [])
    bad = any(finding.kind.loss for finding in row.findings)
    tone = "bad" if bad else "muted" if row.need is Need.ENDED else "plain"
    text = f" {'' if row.reward is None else 'rew '}{number(value)}".rjust(VALUE_CELLS)
    curve = draw(row.preview.curve, CURVE_CELLS + VALUE_CELLS - len(text))
    return [(curve, "curve"), FILL, (text, tone)]


def _gpu_use(row: JobRow) -> list[Span]:
    use = row.preview.gpu_use if row.running else None
    if use is None:
        return _unless_unread(row, []) if row.running and row.gpu_count else []
    return [(percent(use), "plain" if row.alarmed else "muted")]


_OF_JOB: dict[str, Column[JobRow]] = {column.id: column.of(lambda row: row.job) for column in JOB_COLUMNS}
_COLUMNS: tuple[Column[JobRow], ...] = (
    Column("need", "", _sign, width=2, keep=10, value=lambda row: row.rank),
    replace(
        _OF_JOB["name"],
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
        _OF_JOB["gpus"],
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
        _OF_JOB["project"],
        width=15,
        cell=text_cell(lambda row: row.project, "muted"),
        value=lambda row: (row.project.lower(), row.status.order) if row.project else None,
    ),
    replace(_OF_JOB["user"], flex=12),
    _OF_JOB["priority"],
    _OF_JOB["spot"],
    replace(
        _OF_JOB["age"],
        cell=text_cell(lambda row: row.age, "muted"),
        width=3,
        keep=3,
        value=lambda row: row.age_s if row.age != UNKNOWN else None,
    ),
)
"""The columns of the job list, in the order of the screen; ``job_columns`` adds to three of them."""


def job_columns(
    fleet: Callable[[], FleetSnapshot | None], draw: Drawer = no_curve
) -> tuple[Column[JobRow], ...]:
    """Return the columns of the job list.

    The cost is that by the bill and the prices of ``fleet``; ``draw`` draws the curve of the loss.
    """

    def cost_of(row: JobRow) -> TotalCost | None:
        snapshot = fleet()
        known = snapshot.cost_of([row]) if snapshot is not None else None
        return known if known is not None and known.spent_usd and not known.unpriced else None

    def usd(row: JobRow) -> float | None:
        cost = cost_of(row)
        return cost.spent_usd if cost is not None else None

    def cost(row: JobRow) -> list[Span]:
        known, snapshot = cost_of(row), fleet()
        is_awaited = row.preview.reading and row.preview.idle_s is None
        if known is not None and not is_awaited:
            return [(money(known.spent_usd), "muted")]
        has_bill = snapshot is None or snapshot.bill is not None
        return READING if row.node_seconds is not None and (is_awaited or not has_bill) else []

    own: dict[str, dict[str, Any]] = {
        "note": {"without": {"lost": partial(_note_and_lost, draw), "loss": partial(_note_or_loss, draw)}},
        "loss": {"cell": partial(_loss, draw)},
        "cost": {"cell": cost, "value": usd, "export": usd},
    }
    return tuple(replace(column, **own.get(column.id, {})) for column in _COLUMNS)


def health_columns(fleet: Callable[[], FleetSnapshot | None]) -> tuple[Column[JobRow], ...]:
    """Return what Home adds to the columns of any list of jobs, for commands that show it beside those."""
    of_home = {column.id: column for column in job_columns(fleet)}
    health: Column[JobRow] = Column(
        "health", "health", _health, width=20, keep=8, shrinks=True, export=_verdict, field="verdict"
    )
    columns = {**of_home, "progress": replace(of_home["progress"], cell=_done), "health": health}
    return chosen(columns.values(), "progress step left health note lost loss use cost")


HEALTH = "progress left health lost loss use cost"
"""What ``bt-tui jobs --health`` adds to the columns of a list."""


Cells = Mapping[str, Sequence[Span]]
"""The cells of a job in ``HEALTH`` columns."""


def health_cells(fleet: FleetSnapshot, row: JobRow) -> dict[str, list[Span]]:
    return {column.id: list(column.cell(row)) for column in chosen(health_columns(lambda: fleet), HEALTH)}


def listed_columns(cells: Mapping[str, Cells]) -> tuple[Column[TrainingJob], ...]:
    """Return the columns of ``bt-tui jobs`` with these cells, by job id."""

    def kept(column: Column[JobRow]) -> Column[TrainingJob]:
        def cell(job: TrainingJob) -> Sequence[Span]:
            return cells.get(job.id, {}).get(column.id, ())

        changes: dict[str, Any] = {"cell": cell, "needed_by": None}
        return cast("Column[TrainingJob]", replace(column, **changes))

    added = (kept(column) for column in health_columns(lambda: None))
    job = (replace(column, keep=10) if column.id in ("id", "status") else column for column in JOB_COLUMNS)
    return chosen((*job, *added), f"status id name gpus {HEALTH} age")


def jobs_table(columns: Iterable[Column[JobRow]], rows: Iterable[JobRow]) -> ExportTable:
    """Return what the server knows about the jobs, then what only these columns show."""
    return exported("jobs", (*_OF_JOB.values(), *columns), rows)


FIRST_SORT: Sort = ("need", False)

ALL_PROJECTS = ""
"""Row key of the line that selects all projects."""


def _jobs(row: ProjectRow) -> list[Span]:
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
    Column("jobs", "", _jobs, width=10, align="right", keep=1),
)
