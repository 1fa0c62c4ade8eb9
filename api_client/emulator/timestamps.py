"""Moments as text: ISO-8601 in UTC, ending in Z."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(moment: datetime) -> str:
    """``2026-01-31T12:00:00.123456Z``."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def moment(text: str) -> datetime:
    """The other way; aware, in UTC."""
    return datetime.fromisoformat(text).astimezone(UTC)
