"""Deliver alerts: to the terminal as escape sequences, to the user's command, and to a webhook.

OSC 2 sets the title; OSC 9 (iTerm2) and OSC 777 (urxvt) show a notification. All texts are sanitized. tmux
and screen forward sequences to the outer terminal only if these are wrapped.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import Any, Literal, Protocol

from api_client.addresses import is_loopback
from api_client.errors import BadRequest, RedirectRefused, RequestError, ServerFault, Unreachable
from api_client.http.retry import RetryPolicy, parse_retry_after, retrying
from tui.alerts.alert import Alert
from tui.alerts.payloads import Form, Record, form_of, payload
from tui.text.sanitize import clip, sanitize

ESC, BEL, ST = "\x1b", "\x07", "\x1b\\"
NOTICE_CELLS = 200
"""Maximum width of a desktop notification's texts, in terminal cells."""
SAVE_TITLE, RESTORE_TITLE = f"{ESC}[22;2t", f"{ESC}[23;2t"
"""Save and restore the title on xterm's title stack; other terminals ignore these."""

OscKind = Literal["off", "9", "777"]


def title_sequence(text: str) -> str:
    """Return the sequence that sets the terminal's title (the pane's, in tmux)."""
    return f"{ESC}]2;{_safe_text(text, 80)}{BEL}"


def notification_sequence(kind: OscKind, title: str, text: str, environ: Mapping[str, str]) -> str:
    """Return the sequence for a desktop notification; empty for ``off``."""
    if kind == "off":
        return ""
    if kind == "777":
        # Semicolons separate the fields.
        head, body = (_safe_text(part, NOTICE_CELLS).replace(";", ",") for part in (title, text))
        sequence = f"{ESC}]777;notify;{head};{body}{BEL}"
    else:
        notice = _safe_text(f"{title}: {text}", NOTICE_CELLS)
        if notice[:1].isdigit():
            notice = f"– {notice}"  # a leading number would be a command in ConEmu and other terminals
        sequence = f"{ESC}]9;{notice}{BEL}"
    return through_multiplexer(sequence, environ)


def through_multiplexer(sequence: str, environ: Mapping[str, str]) -> str:
    """Wrap the sequence for tmux (``allow-passthrough``) or GNU screen if one of them is running."""
    if environ.get("TMUX"):
        return f"{ESC}Ptmux;{sequence.replace(ESC, ESC + ESC)}{ST}"
    if environ.get("STY"):
        return f"{ESC}P{sequence}{ST}"
    return sequence


def osc_kind(wanted: Literal["off", "9", "777", "auto"], environ: Mapping[str, str]) -> OscKind:
    """Resolve ``auto`` to a sequence: OSC 777 for terminals known to support it, else harmless OSC 9."""
    if wanted != "auto":
        return wanted
    terminal = environ.get("TERM", "")
    if terminal in ("dumb", "linux"):
        return "off"
    if terminal.startswith(("rxvt", "foot")) or environ.get("VTE_VERSION"):
        return "777"
    return "9"


def _safe_text(text: str, cells: int) -> str:
    return "".join(letter for letter in clip(sanitize(text), cells) if letter.isprintable())


WEBHOOK_TIMEOUT_S = 10.0
MAX_WAITING_ALERTS = 200
"""Maximum number of undelivered alerts per destination; beyond that, the oldest are dropped."""

Way = Literal["command", "webhook"]
"""A destination of alerts."""

RETRIES: Mapping[Way, RetryPolicy] = {
    # The program may fail on this alert only, so after two attempts the alert moves to the end of the queue.
    "command": RetryPolicy(max_attempts=2, base_s=30.0),
    # A server that is down fails on all alerts, so retry each until it is delivered: this keeps their order.
    "webhook": RetryPolicy(
        max_attempts=None, base_s=2.0, cap_s=60.0, retry_after_cap_s=600.0, max_invalid_responses=None
    ),
}


class AlertNotDelivered(RequestError):
    """The user's program has failed; the message is the reason."""

    retryable = True


class UnsentAlerts(Protocol):
    """The undelivered alerts, which several processes share."""

    async def claim(self, way: Way, record: Record) -> bool:
        """Wait while another process tries to deliver the alert.

        Return True if this process must deliver it, False if it has been delivered.
        """
        ...

    def forget(self, way: Way, record: Record) -> None:
        """Remove an alert that was delivered or refused."""
        ...


class AlertDelivery:
    """Delivers alerts in order to a command and a webhook, with secrets removed.

    ``fail`` is called with a message at the first failure and the first refusal of each destination. From
    the texts, ``secrets`` are removed, and everything that looks like a secret.
    """

    def __init__(
        self,
        command: Sequence[str],
        webhook: str | None,
        fail: Callable[[str], object],
        environ: Mapping[str, str],
        *,
        form: Form | Literal["auto"] = "auto",
        secrets: Iterable[str] = (),
        unsent: UnsentAlerts | None = None,
    ) -> None:
        from api_client.recordings.scrub import Scrubber, secrets_of_environment

        self._command = command
        self._webhook = webhook or ""
        self._form = form_of(self._webhook, form)
        self._fail = fail
        self._unsent = unsent
        from tui.system.external_programs import scrubbed_environment

        self._environ = scrubbed_environment(environ)
        self._scrub = Scrubber([*secrets, *secrets_of_environment(environ)])
        ways: dict[Way, object] = {"command": command, "webhook": webhook}
        self._queues: dict[Way, asyncio.Queue[Record]] = {
            way: asyncio.Queue(MAX_WAITING_ALERTS) for way, target in ways.items() if target
        }
        self._reported_failures: set[tuple[Way, str]] = set()

    @property
    def ways(self) -> tuple[Way, ...]:
        return tuple(self._queues)

    def record(self, alert: Alert) -> dict[str, Any]:
        """Return an alert as a JSON object with secrets removed."""
        scrub, job, finding = self._scrub, alert.job, alert.finding
        if job is not None:
            texts = {"name": scrub(job.name or ""), "error_message": scrub(job.error_message or "")}
            job = job.model_copy(update=texts)
        if finding is not None:
            finding = replace(finding, text=scrub(finding.text))
        # Scrub before texts are cut and joined, since a fragment of a secret may not look like a secret.
        clean = replace(alert, job=job, finding=finding, message=scrub(alert.message))
        record: dict[str, Any] = scrub.document(clean.record())
        return record

    def send(self, alert: Alert) -> None:
        """Queue the alert for delivery; never blocks."""
        record = self.record(alert)
        for way in self._queues:
            self.queue(way, record)

    def queue(self, way: Way, record: Record) -> None:
        """Queue an alert for one destination; if the queue is full, drop the oldest alert."""
        queue = self._queues.get(way)
        if queue is None:
            return
        if queue.full():
            queue.get_nowait()
            queue.task_done()
        queue.put_nowait(record)

    async def run(self) -> None:
        """Deliver queued alerts until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for way, queue in self._queues.items():
                tasks.create_task(self._deliver_all(way, queue))

    async def drain(self, timeout_s: float) -> None:
        """Wait until all queued alerts are delivered or have failed, for at most ``timeout_s``."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await asyncio.gather(*(queue.join() for queue in self._queues.values()))

    async def _deliver_all(self, way: Way, queue: asyncio.Queue[Record]) -> None:
        while True:
            record = await queue.get()
            try:
                await retrying(
                    partial(self._deliver_once, way, record),
                    RETRIES[way],
                    sleep=asyncio.sleep,
                    on_wait=lambda error, _delay_s: self._report(way, error, "it is tried again"),
                )
            except AlertNotDelivered:
                self.queue(way, record)
            except RequestError as error:
                self._report(way, error, "it is not sent again")
                self._forget(way, record)
            else:
                self._forget(way, record)
            queue.task_done()

    async def _deliver_once(self, way: Way, record: Record) -> None:
        if self._unsent is None or await self._unsent.claim(way, record):
            await self.deliver(way, record)

    def _forget(self, way: Way, record: Record) -> None:
        if self._unsent is not None:
            self._unsent.forget(way, record)

    def _report(self, way: Way, error: RequestError, consequence: str) -> None:
        if (way, consequence) not in self._reported_failures:
            self._reported_failures.add((way, consequence))
            self._fail(f"Notification {way} failed: {clip(sanitize(str(error)), 160)}; {consequence}")

    async def deliver(self, way: Way, record: Record) -> None:
        """Try once to deliver an alert. Raises RequestError; its message lacks the URL, which is a secret."""
        if way == "command":
            await run_command(self._command, payload(record, "json"), self._environ)
        else:
            await post(self._webhook, payload(record, self._form))


async def run_command(
    command: Sequence[str], body: bytes, environ: Mapping[str, str], timeout_s: float = 10.0
) -> None:
    """Run a program, without a shell, with the JSON on its standard input.

    Its output is discarded; after the timeout the program and its children are killed. Raises
    AlertNotDelivered.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env=dict(environ),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise AlertNotDelivered(f"{command[0]}: {getattr(error, 'strerror', None) or error}") from None
    try:
        async with asyncio.timeout(timeout_s):  # wait_for may swallow a cancellation
            await process.communicate(body + b"\n")
    except TimeoutError:
        raise AlertNotDelivered(f"{command[0]} didn't finish within {timeout_s:g} s") from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode:
        raise AlertNotDelivered(f"{command[0]} exited with code {process.returncode}")


async def post(url: str, body: bytes) -> None:
    """POST the JSON without following redirects. Raises RequestError; its message lacks the URL, a secret."""
    import httpx

    try:
        # If the webhook is on this machine, do not use a proxy.
        direct = is_loopback(httpx.URL(url).host)
        headers = {"content-type": "application/json"}
        async with (
            asyncio.timeout(WEBHOOK_TIMEOUT_S),
            httpx.AsyncClient(timeout=None, follow_redirects=False, trust_env=not direct) as client,
            client.stream("POST", url, content=body, headers=headers) as response,
        ):
            pass  # only the status counts; the body may be endless
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
        raise Unreachable(type(error).__name__) from None
    if response.is_success:
        return
    reason, status = f"HTTP {response.status_code}", response.status_code
    if response.is_redirect:
        raise RedirectRefused(reason)
    is_retryable = response.is_server_error or status in (
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.REQUEST_TIMEOUT,
    )
    delay_s = parse_retry_after(
        response.headers.get("retry-after"), date=response.headers.get("date"), now=datetime.now(UTC)
    )
    raise (ServerFault if is_retryable else BadRequest)(reason, status=status, retry_after_s=delay_s)
