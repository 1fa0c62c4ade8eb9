"""Reading objects behind presigned URLs: whole, or a range of their bytes. Nothing secret goes there."""

from __future__ import annotations

from api_client.objects.answer import ObjectHead
from api_client.objects.client import Objects

__all__ = ["ObjectHead", "Objects"]
