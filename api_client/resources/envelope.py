"""What all envelopes have in common."""

from __future__ import annotations

from pydantic import ConfigDict

TOLERANT = ConfigDict(extra="ignore", defer_build=True)
"""Validators are built when an answer is first read: most commands need two or three of them."""
