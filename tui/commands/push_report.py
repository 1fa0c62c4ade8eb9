"""What ``bt-tui push`` says before it sends anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from api_client.definitions import TrainingProject
from api_client.payload import job_payload, project_payload
from api_client.preflight import Finding
from api_client.submission.archive import ArchivePlan
from api_client.submission.user_environment import describe_environment
from tui.commands.output import Output
from tui.commands.tables import Cell, Column, render_facts, render_table
from tui.insight.text import inert
from tui.insight.units import bytes_iec

TONE_OF_SEVERITY = {"error": "bad", "warning": "caution", "info": "muted"}
NOT_SHOWN = frozenset({"truss_user_env"})
"""Parts of the payload that the readable summary leaves to the JSON document."""


def finding_text(finding: Finding) -> str:
    """``warning: field: problem – remedy``, one line."""
    remedy = f" – {finding.remedy}" if finding.remedy else ""
    return f"{finding.severity}: {finding.field}: {finding.problem}{remedy}"


def dry_run_document(
    project: TrainingProject, source_dir: Path, plan: ArchivePlan, findings: Sequence[Finding]
) -> dict[str, Any]:
    """What would be sent, as data.

    ``training_project`` and ``training_job`` are the bodies themselves, but for the archive's address in
    ``runtime.artifacts``: the server gives that out with the upload.
    """
    user_env = describe_environment(source_dir)
    return {
        "training_project": project_payload(project),
        "training_job": job_payload(project.job, artifact=None, user_env=user_env),
        "archive": {
            "files": [{"name": name, "size_bytes": size_bytes} for _path, name, size_bytes in plan.files],
            "dropped": [{"name": name, "reason": reason} for name, reason in plan.dropped],
            "size_bytes": plan.size_bytes,
        },
        "findings": [asdict(finding) for finding in findings],
    }


def print_dry_run(output: Output, document: Mapping[str, Any], findings: Sequence[Finding]) -> None:
    """The same for reading."""
    project, job, archive = document["training_project"], document["training_job"], document["archive"]
    facts = [("project", Cell(project["name"], "strong"))]
    if "team_name" in project:
        facts.append(("team", Cell(project["team_name"])))
    facts.extend((name, Cell(text)) for name, text in _leaves(job, ""))
    output.data(render_facts(facts, paint=output.paint))
    count = len(archive["files"])
    size = bytes_iec(archive["size_bytes"])
    output.data(f"\narchive: {count} {'file' if count == 1 else 'files'}, {size}\n")
    rows = [
        *([Cell(bytes_iec(each["size_bytes"])), Cell(each["name"]), Cell("")] for each in archive["files"]),
        *(
            [Cell("left out", "muted"), Cell(each["name"], "muted"), Cell(each["reason"], "muted")]
            for each in archive["dropped"]
        ),
    ]
    columns = (Column("SIZE", right=True), Column("NAME"), Column("WHY", shrinks=True))
    if rows:
        output.data(render_table(columns, rows, width_cells=output.width_cells, paint=output.paint))
    output.data("\nfindings: none\n" if not findings else "\nfindings:\n")
    for finding in findings:
        text = inert(finding_text(finding))
        output.data(f"  {output.paint(text, TONE_OF_SEVERITY[finding.severity])}\n")


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Path and text of every value that is set."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name not in NOT_SHOWN:
                yield from _leaves(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{index}]")
    elif value is not None:
        yield path, str(value)
