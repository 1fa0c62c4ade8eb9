"""What ``bt-tui deploy_checkpoints`` prints."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui.commands.output import Output
from tui.commands.tables import Cell, render_facts
from tui.insight.text import inert

if TYPE_CHECKING:
    from api_client.deployment import DeploymentResult
    from api_client.preflight.findings import Finding
    from api_client.remotes import Remote
    from tui.wizard.review import Review
    from tui.wizard.state import WizardState


def remark_findings(output: Output, findings: Sequence[Finding]) -> None:
    """A line for each."""
    from tui.commands.push_report import finding_text

    for finding in findings:
        output.remark(finding_text(finding))


def dry_run_document(review: Review, result: DeploymentResult, path: Path | None) -> dict[str, Any]:
    """What would be deployed, as data."""
    return {
        "dry_run": True,
        "config": review.config.model_dump(mode="json"),
        "findings": [asdict(finding) for finding in review.findings],
        "command": review.command,
        "truss_config": _parsed(result.truss_config),
        "truss_config_path": str(path) if path else None,
    }


def print_dry_run(output: Output, review: Review, path: Path | None) -> None:
    """The same for reading."""
    facts = [(title.lower(), Cell(text)) for _step, title, text in review.lines]
    facts.append(("truss config", Cell(str(path) if path else "none was returned")))
    output.data(render_facts(facts, paint=output.paint))


def deployed_document(
    remote: Remote,
    state: WizardState,
    review: Review,
    result: DeploymentResult,
    path: Path | None,
    status: str,
) -> dict[str, Any]:
    """What was deployed, and how to call it, as data; ``status`` is empty where it was not followed."""
    document: dict[str, Any] = {
        "dry_run": False,
        "model_id": result.model_id,
        "deployment_id": result.version_id,
        "name": result.name,
        "model_name": review.config.model_name,
        "link": result.link,
        "status": status or None,
        "config": review.config.model_dump(mode="json"),
        "findings": [asdict(finding) for finding in review.findings],
        "truss_config_path": str(path) if path else None,
    }
    return document | _calls(remote, state, result)


def print_deployed(output: Output, document: Mapping[str, Any]) -> None:
    """The same for reading; the calls come last, ready to be copied."""
    names = ("model_name", "model_id", "deployment_id", "status", "link", "truss_config_path")
    facts = [(name.replace("_", " "), Cell(str(document[name]))) for name in names if document[name]]
    output.data(render_facts(facts, paint=output.paint))
    for name in ("curl", "python"):
        if name in document:
            lines = "".join(f"{inert(line)}\n" for line in document[name].splitlines())
            output.data(f"\n{output.paint(f'how to call it: {name}', 'muted')}\n{lines}")


def _calls(remote: Remote, state: WizardState, result: DeploymentResult) -> dict[str, Any]:
    """Curl and OpenAI client; the model that a request names is the checkpoint."""
    from api_client.deployment import curl_example, kind_of, openai_example, serving_url

    if not state.chosen or not result.model_id or not result.version_id:
        return {}
    url = serving_url(remote, result.model_id, result.version_id)
    first = state.chosen[0]
    is_whisper = kind_of(first) == "whisper"
    return {
        "url": url,
        "models": [each.checkpoint_id for each in state.chosen],
        "curl": curl_example(url, first.checkpoint_id, is_whisper=is_whisper),
        "python": openai_example(url, first.checkpoint_id, is_whisper=is_whisper),
    }


def _parsed(truss_config: str) -> Any:
    """The truss config as data; as text where it is no JSON."""
    try:
        return json.loads(truss_config) if truss_config else None
    except ValueError:
        return truss_config
