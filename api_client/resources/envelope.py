"""Configuration shared by all envelopes."""

from __future__ import annotations

from pydantic import ConfigDict

TOLERANT = ConfigDict(extra="ignore", defer_build=True)
"""Build validators when an answer is first parsed: most commands need two or three of them."""
