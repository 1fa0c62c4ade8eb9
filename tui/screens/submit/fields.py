"""The values that go before the config's own."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.suggester import SuggestFromList
from textual.widgets import Input, Label

from api_client.definitions import AvailabilityModel, TrainingProject
from api_client.submission.overrides import Overrides
from tui.insight.text import inert

FIELDS = (
    ("job_name", "name"),
    ("accelerator", "accelerator"),
    ("node_count", "nodes"),
    ("entrypoint", "runs"),
    ("priority", "priority"),
    ("availability", "availability"),
)
NUMBERS = frozenset({"node_count", "priority"})


class OverrideFields(Vertical):
    """A field for each override; an empty one leaves the config's value alone, which it shows faintly."""

    def compose(self) -> ComposeResult:
        """A line a field."""
        for name, label in FIELDS:
            with Horizontal(classes="field"):
                yield Label(label)
                yield Input(
                    id=name,
                    compact=True,
                    type="integer" if name in NUMBERS else "text",
                    suggester=SuggestFromList([model.value for model in AvailabilityModel])
                    if name == "availability"
                    else None,
                )

    def show(self, project: TrainingProject) -> None:
        """Show the values that hold where a field is empty."""
        job = project.job
        spec = job.compute.accelerator
        gpu = spec.accelerator if spec is not None else None
        own = {
            "job_name": job.name or "",
            "accelerator": f"{gpu.value}:{spec.count}" if spec is not None and gpu is not None else "",
            "node_count": str(job.compute.node_count),
            "entrypoint": " && ".join(job.runtime.start_commands),
            "availability": job.compute.availability_model.value,
            "priority": "" if job.priority is None else str(job.priority),
        }
        for name, value in own.items():
            self.query_one(f"#{name}", Input).placeholder = inert(value) or "as the config says"

    def clear(self) -> None:
        """Forget everything typed."""
        for name, _label in FIELDS:
            self.query_one(f"#{name}", Input).value = ""

    @property
    def overrides(self) -> Overrides:
        """What was typed; only fields that were filled."""
        typed = {name: self.query_one(f"#{name}", Input).value.strip() for name, _ in FIELDS}
        return Overrides(
            job_name=typed["job_name"] or None,
            accelerator=typed["accelerator"] or None,
            node_count=_number(typed["node_count"]),
            entrypoint=typed["entrypoint"] or None,
            priority=_number(typed["priority"]),
            spot=typed["availability"].lower() == AvailabilityModel.SPOT.value,
        )


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
