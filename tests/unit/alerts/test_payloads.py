"""What each service gets is in the form that it documents, and the text of a log stays text in it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from support.worlds import ONE_O_CLOCK, job
from tui.alerts.alert import Alert
from tui.alerts.delivery import AlertDelivery
from tui.alerts.payloads import payload, resolved_format
from tui.analysis.health.registry import KINDS
from tui.analysis.run.finding import HealthFinding

FACTS = "2026-03-01 13:00:00 UTC · llama-sft · id7"
EVIL = "@everyone <!channel> <@U1> [safe](https://evil.example) `x` & *y*"


def alert(text: str = EVIL) -> Alert:
    finding = HealthFinding(KINDS["stalled"], "critical", text)
    return Alert(job("id7", name="llama_70b"), "critical", ONE_O_CLOCK, finding)


def body(form: Any, text: str = EVIL) -> dict[str, Any]:
    return json.loads(payload(alert(text).record(), form))


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("https://hooks.slack.com/services/T0/B0/x", "slack"),
        ("https://discord.com/api/webhooks/1/x", "discord"),
        ("https://canary.discord.com/api/webhooks/1/x", "discord"),
        ("https://acme.webhook.office.com/webhookb2/x", "teams"),
        ("https://prod-15.uksouth.logic.azure.com:443/workflows/x", "teams"),
        ("https://default1.ab.environment.api.powerplatform.com:443/powerautomate/x", "teams"),
        ("https://hooks.example/slack.com", "json"),
        ("https://notdiscord.com/api/webhooks/1/x", "json"),
    ],
)
def test_form_follows_the_host_of_the_webhook(url: str, form: str) -> None:
    assert resolved_format(url) == form
    assert resolved_format(url, "json") == "json"


def test_slack_text_mentions_nobody() -> None:
    text = body("slack")["text"]
    assert text.startswith("✗ llama_70b: @everyone &lt;!channel&gt; &lt;@U1&gt;")
    assert body("slack").items() >= {"mrkdwn": False, "unfurl_links": False, "unfurl_media": False}.items()
    assert "<" not in text and text.endswith(FACTS)


def test_discord_content_mentions_nobody_and_makes_no_link() -> None:
    message = body("discord")
    assert (message["allowed_mentions"], message["flags"]) == ({"parse": []}, 4)
    assert r"\[safe\](https://evil.example) \`x\` & \*y\*" in message["content"]
    assert r"llama\_70b" in message["content"] and message["content"].endswith(FACTS)


def test_teams_gets_an_adaptive_card_without_markdown() -> None:
    message = body("teams")
    assert message["type"] == "message"
    (attachment,) = message["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    card = attachment["content"]
    assert (card["type"], card["version"]) == ("AdaptiveCard", "1.2")
    assert {block["type"] for block in card["body"]} == {"RichTextBlock"}
    text, facts = (block["inlines"][0]["text"] for block in card["body"])
    assert text.startswith("✗ llama_70b: @everyone <!channel>")
    assert facts == FACTS


@given(st.text())
def test_discord_content_is_never_too_long(text: str) -> None:
    record = alert(text).record() | {"text": "*" * 1500 + text * 20}
    content = json.loads(payload(record, "discord"))["content"]
    assert len(content) <= 2000
    text = content.partition("\n-# ")[0]
    assert not text.removesuffix("…").endswith("\\") or text.endswith("\\\\")


SECRETS = ("hf_abcdefghijklmnopqrstuvwxyz012345", "the-key-of-this-remote")


@pytest.mark.parametrize("form", ["json", "slack", "discord", "teams"])
def test_payload_of_each_form_holds_no_secret(form: Any) -> None:
    text = f"login with HF_TOKEN={SECRETS[0]} failed, key {SECRETS[1]}, https://u:pa55word@host/"
    delivery = AlertDelivery((), None, pytest.fail, {}, secrets=SECRETS[1:])
    sent = payload(delivery.record(alert(text)), form).decode()
    assert "login with HF" in sent
    assert not [secret for secret in (*SECRETS, "pa55word") if secret in sent]


async def test_answer_without_end_is_not_read() -> None:
    hung_up = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\nx")
        await reader.read()
        writer.close()
        hung_up.set()

    async with await asyncio.start_server(answer, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        delivery = AlertDelivery((), f"http://127.0.0.1:{port}/", pytest.fail, {})
        await delivery.deliver("webhook", delivery.record(alert()))
        await hung_up.wait()


def test_secret_is_removed_before_texts_are_joined_and_cut() -> None:
    delivery = AlertDelivery((), None, pytest.fail, {}, secrets=["known-secret-4711"])
    secrets = Alert(
        job("id7", name="password=hunter2secret"),
        "critical",
        ONE_O_CLOCK,
        guard_event="stopped",
        message=f"{'x ' * 245}known-secret-4711",
    )
    text = delivery.record(secrets)["text"]
    assert "hunter2" not in text and "known" not in text
