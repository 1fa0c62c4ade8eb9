"""Alerts in the form that a webhook's service reads: ours, Slack's, Discord's or Teams'.

The text of an alert may quote a log. In a chat it stays text: it mentions nobody, formats nothing, and no
address in it is fetched for a preview.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

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
DISCORD_CHARACTERS = 2000
"""Discord refuses a longer ``content``."""
_COLORS = {"critical": "attention", "warning": "warning"}


def form_of(url: str, wanted: Form | Literal["auto"] = "auto") -> Form:
    """Return the form that a webhook reads, by its host unless the user chose one."""
    if wanted != "auto":
        return wanted
    host = (urlsplit(url).hostname or "").lower()
    return next((form for end, form in HOSTS.items() if f".{host}".endswith(f".{end}")), "json")


def payload(record: Record, form: Form) -> bytes:
    """Return the body to post, ASCII JSON."""
    text = str(record["text"])
    body: Record = record
    if form == "slack":
        escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        body = {"text": escaped, "mrkdwn": False, "unfurl_links": False, "unfurl_media": False}
    elif form == "discord":
        escaped = re.sub(r"([\\*_~`|<>\[\]])", r"\\\1", text)
        if len(escaped) > DISCORD_CHARACTERS:
            escaped = escaped[: DISCORD_CHARACTERS - 1].rstrip("\\") + "…"
        body = {"content": escaped, "allowed_mentions": {"parse": []}, "flags": SUPPRESS_EMBEDS}
    elif form == "teams":
        body = _card(text, _COLORS.get(str(record["severity"]), "default"))
    return json.dumps(body).encode("ascii")


def _card(text: str, color: str) -> Record:
    run = {"type": "TextRun", "text": text, "color": color}  # a TextBlock would read it as Markdown
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.2",
        "body": [{"type": "RichTextBlock", "inlines": [run]}],
    }
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card,
    }
    return {"type": "message", "attachments": [attachment]}
