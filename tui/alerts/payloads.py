"""Alerts in the form that a webhook's service reads: ours, Slack's, Discord's or Teams'.

The text of an alert may quote a log. In a chat it stays text: it mentions nobody, formats nothing, and no
address in it is fetched for a preview.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import urlsplit

from tui.text.sanitize import clip, sanitize

Record = Mapping[str, Any]
"""An alert as a JSON object."""
Form = Literal["json", "slack", "discord", "teams"]

HOSTS: Mapping[str, Form] = {
    "hooks.slack.com": "slack",
    "hooks.slack-gov.com": "slack",
    "discord.com": "discord",
    "discordapp.com": "discord",
    "webhook.office.com": "teams",
    "logic.azure.com": "teams",
    "api.powerplatform.com": "teams",
    "powerautomate.com": "teams",
    "flow.microsoft.com": "teams",
}
"""Hosts of webhooks, also with a name in front (``prod-15.uksouth.logic.azure.com``)."""

SUPPRESS_EMBEDS = 4
_COLORS = {"critical": "attention", "warning": "warning"}


def form_of(url: str, wanted: Form | Literal["auto"] = "auto") -> Form:
    """Return the form that a webhook reads, by its host unless the user chose one."""
    if wanted != "auto":
        return wanted
    host = (urlsplit(url).hostname or "").lower()
    return next((form for end, form in HOSTS.items() if f".{host}".endswith(f".{end}")), "json")


def payload(record: Record, form: Form) -> bytes:
    """Return the body to post, ASCII JSON."""
    text, facts = str(record["text"]), _facts(record)
    body: Record = record
    if form == "slack":
        escaped = f"{text}\n{facts}".replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        body = {"text": escaped, "mrkdwn": False, "unfurl_links": False, "unfurl_media": False}
    elif form == "discord":
        content = f"{_inert(text, 1700)}\n-# {_inert(facts, 200)}"
        body = {"content": content, "allowed_mentions": {"parse": []}, "flags": SUPPRESS_EMBEDS}
    elif form == "teams":
        body = _card(text, facts, _COLORS.get(str(record["severity"]), "default"))
    return json.dumps(body).encode("ascii")


def _facts(record: Record) -> str:
    """Return ``2026-11-29 03:12:04 UTC · llama-sft · abc1234``: an alert may arrive late."""
    at = datetime.fromisoformat(str(record["at"])).astimezone(UTC)
    job = record["job"] or {}
    names = (clip(sanitize(str(job.get(key) or "")), 48) for key in ("project", "id"))
    return " · ".join(filter(None, (f"{at:%Y-%m-%d %H:%M:%S} UTC", *names)))


def _inert(text: str, characters: int) -> str:
    """Return the text for Discord without Markdown; it refuses messages of more than 2,000 characters."""
    escaped = re.sub(r"([\\*_~`|<>\[\]])", r"\\\1", text)
    if len(escaped) <= characters:
        return escaped
    return escaped[: characters - 1].rstrip("\\") + "…"


def _card(text: str, facts: str, color: str) -> Record:
    # In a TextBlock, the texts would be read as Markdown.
    runs: list[Record] = [
        {"type": "TextRun", "text": text, "color": color},
        {"type": "TextRun", "text": facts, "size": "small", "isSubtle": True},
    ]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.2",
        "body": [{"type": "RichTextBlock", "inlines": [run]} for run in runs],
    }
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card,
    }
    return {"type": "message", "attachments": [attachment]}
