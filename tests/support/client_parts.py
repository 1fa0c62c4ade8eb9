"""List the public attributes of a client, including those created on first use."""

from __future__ import annotations

from functools import cached_property

from api_client import TrainingClient


def parts_of(client: TrainingClient) -> dict[str, object]:
    """Each part by its name."""
    made_when_asked = {
        name for name, member in vars(TrainingClient).items() if isinstance(member, cached_property)
    }
    return {
        name: getattr(client, name)
        for name in vars(client).keys() | made_when_asked
        if not name.startswith("_")
    }
