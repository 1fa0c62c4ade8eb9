"""Format alerts for webhooks: as our JSON, or for Slack, Discord or Teams.

The text of an alert may quote a log. In a chat, the quotation must stay plain text, without mentions,
formatting and link previews.
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
BodyFormat = Literal["json", "slack", "discord", "teams"]
"""The format of a webhook's body."""

FORMAT_BY_DOMAIN: Mapping[str, BodyFormat] = {
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
"""The format that webhooks at a domain or its subdomains (``prod-15.uksouth.logic.azure.com``) expect."""

SUPPRESS_EMBEDS = 4
"""Discord's message flag against link previews."""
_TEAMS_COLORS = {"critical": "attention", "warning": "warning"}


def resolved_format(url: str, setting: BodyFormat | Literal["auto"] = "auto") -> BodyFormat:
    """Return the format for a webhook: the user's setting; for ``auto``, the format that its host expects."""
    if setting != "auto":
        return setting
    host = (urlsplit(url).hostname or "").lower()
    return next(
        (form for domain, form in FORMAT_BY_DOMAIN.items() if f".{host}".endswith(f".{domain}")), "json"
    )


def payload(record: Record, body_format: BodyFormat) -> bytes:
    """Return the body of a webhook's request, as ASCII JSON."""
    text, facts = str(record["text"]), _facts_line(record)
    body: Record = record
    if body_format == "slack":
        escaped = f"{text}\n{facts}".replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        body = {"text": escaped, "mrkdwn": False, "unfurl_links": False, "unfurl_media": False}
    elif body_format == "discord":
        content = f"{_discord_text(text, 1700)}\n-# {_discord_text(facts, 200)}"
        body = {"content": content, "allowed_mentions": {"parse": []}, "flags": SUPPRESS_EMBEDS}
    elif body_format == "teams":
        body = _teams_card(text, facts, _TEAMS_COLORS.get(str(record["severity"]), "default"))
    return json.dumps(body).encode("ascii")


def _facts_line(record: Record) -> str:
    """Return ``2026-11-29 03:12:04 UTC · llama-sft · abc1234``: with the time, as alerts may be late."""
    at = datetime.fromisoformat(str(record["at"])).astimezone(UTC)
    job = record["job"] or {}
    names = (clip(sanitize(str(job.get(key) or "")), 48) for key in ("project", "id"))
    return " · ".join(filter(None, (f"{at:%Y-%m-%d %H:%M:%S} UTC", *names)))


def _discord_text(text: str, max_characters: int) -> str:
    """Escape Markdown for Discord, and cut the text: Discord rejects more than 2,000 characters."""
    escaped = re.sub(r"([\\*_~`|<>\[\]])", r"\\\1", text)
    if len(escaped) <= max_characters:
        return escaped
    return escaped[: max_characters - 1].rstrip("\\") + "…"


def _teams_card(text: str, facts: str, color: str) -> Record:
    # A TextBlock would interpret the texts as Markdown.
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
