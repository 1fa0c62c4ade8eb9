"""Deliver alerts: to the terminal as escape sequences, to the user's command, and to a webhook.

OSC 2 sets the title; OSC 9 (iTerm2) and OSC 777 (urxvt) show a notification. All texts are sanitized. tmux
and screen forward sequences to the outer terminal only if the sequences are wrapped.
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
from tui.alerts.payloads import BodyFormat, Record, payload, resolved_format
from tui.text.sanitize import clip, sanitize

ESC, BEL, ST = "\x1b", "\x07", "\x1b\\"
MAX_NOTICE_CELLS = 200
"""Maximum width of a desktop notification's texts, in terminal cells."""
SAVE_TITLE, RESTORE_TITLE = f"{ESC}[22;2t", f"{ESC}[23;2t"
"""Save and restore the title on xterm's title stack; other terminals ignore these sequences."""

OscKind = Literal["off", "9", "777"]


def title_sequence(text: str) -> str:
    """Return the sequence that sets the title of the terminal, or of the pane in tmux."""
    return f"{ESC}]2;{_safe_text(text, 80)}{BEL}"


def notification_sequence(kind: OscKind, title: str, text: str, environ: Mapping[str, str]) -> str:
    """Return the sequence for a desktop notification; empty for ``off``."""
    if kind == "off":
        return ""
    if kind == "777":
        # Semicolons separate the fields.
        head, body = (_safe_text(part, MAX_NOTICE_CELLS).replace(";", ",") for part in (title, text))
        sequence = f"{ESC}]777;notify;{head};{body}{BEL}"
    else:
        notice = _safe_text(f"{title}: {text}", MAX_NOTICE_CELLS)
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


def osc_kind(setting: Literal["off", "9", "777", "auto"], environ: Mapping[str, str]) -> OscKind:
    """Resolve ``auto``: OSC 777 for terminals known to support it, else OSC 9, which is harmless."""
    if setting != "auto":
        return setting
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

Destination = Literal["command", "webhook"]
"""A destination of alerts."""

RETRIES: Mapping[Destination, RetryPolicy] = {
    # A program may fail only on one alert, so after two attempts the alert goes to the end of the queue.
    "command": RetryPolicy(max_attempts=2, base_s=30.0),
    # A server that is down fails on all alerts, so retry each until it is delivered, which keeps their order.
    "webhook": RetryPolicy(
        max_attempts=None, base_s=2.0, cap_s=60.0, retry_after_cap_s=600.0, max_invalid_responses=None
    ),
}


class AlertNotDelivered(RequestError):
    """The program that the settings name for alerts has failed; the message says why.

    A RequestError, so that ``retrying`` repeats it like a request.
    """

    retryable = True


class UnsentAlerts(Protocol):
    """The undelivered alerts that several processes share."""

    async def claim(self, destination: Destination, record: Record) -> bool:
        """Wait while another process tries to deliver the alert.

        Return True if this process must deliver the alert, False if it has been delivered.
        """
        ...

    def forget(self, destination: Destination, record: Record) -> None:
        """Remove an alert that was delivered, or that the destination refused."""
        ...


class AlertDelivery:
    """Delivers alerts in order to a command and a webhook, with secrets removed.

    ``on_failure`` is called with a message at the first failure and the first refusal of each destination.
    ``secrets``, and everything that looks like a secret, are removed from the texts.
    """

    def __init__(
        self,
        command: Sequence[str],
        webhook: str | None,
        on_failure: Callable[[str], object],
        environ: Mapping[str, str],
        *,
        body_format: BodyFormat | Literal["auto"] = "auto",
        secrets: Iterable[str] = (),
        unsent: UnsentAlerts | None = None,
    ) -> None:
        from api_client.recordings.scrub import Scrubber, secrets_of_environment

        self._command = command
        self._webhook = webhook or ""
        self._body_format = resolved_format(self._webhook, body_format)
        self._on_failure = on_failure
        self._unsent = unsent
        from tui.system.external_programs import scrubbed_environment

        self._environ = scrubbed_environment(environ)
        self._scrub = Scrubber([*secrets, *secrets_of_environment(environ)])
        destinations: dict[Destination, object] = {"command": command, "webhook": webhook}
        self._queues: dict[Destination, asyncio.Queue[Record]] = {
            destination: asyncio.Queue(MAX_WAITING_ALERTS)
            for destination, target in destinations.items()
            if target
        }
        self._reported_failures: set[tuple[Destination, str]] = set()

    @property
    def destinations(self) -> tuple[Destination, ...]:
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
        scrubbed_alert = replace(alert, job=job, finding=finding, message=scrub(alert.message))
        record: dict[str, Any] = scrub.document(scrubbed_alert.record())
        return record

    def send(self, alert: Alert) -> None:
        """Queue the alert for delivery; never blocks."""
        record = self.record(alert)
        for destination in self._queues:
            self.queue(destination, record)

    def queue(self, destination: Destination, record: Record) -> None:
        """Queue an alert for one destination; if the queue is full, drop the oldest alert."""
        queue = self._queues.get(destination)
        if queue is None:
            return
        if queue.full():
            queue.get_nowait()
            queue.task_done()
        queue.put_nowait(record)

    async def run(self) -> None:
        """Deliver queued alerts until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for destination, queue in self._queues.items():
                tasks.create_task(self._deliver_all(destination, queue))

    async def drain(self, timeout_s: float) -> None:
        """Wait until all queued alerts have been delivered or have failed, but at most ``timeout_s``."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await asyncio.gather(*(queue.join() for queue in self._queues.values()))

    async def _deliver_all(self, destination: Destination, queue: asyncio.Queue[Record]) -> None:
        while True:
            record = await queue.get()
            try:
                await retrying(
                    partial(self._deliver_once, destination, record),
                    RETRIES[destination],
                    sleep=asyncio.sleep,
                    on_wait=lambda error, _delay_s: self._report(destination, error, "it is tried again"),
                )
            except AlertNotDelivered:
                self.queue(destination, record)
            except RequestError as error:
                self._report(destination, error, "it is not sent again")
                self._forget(destination, record)
            else:
                self._forget(destination, record)
            queue.task_done()

    async def _deliver_once(self, destination: Destination, record: Record) -> None:
        if self._unsent is None or await self._unsent.claim(destination, record):
            await self.deliver(destination, record)

    def _forget(self, destination: Destination, record: Record) -> None:
        if self._unsent is not None:
            self._unsent.forget(destination, record)

    def _report(self, destination: Destination, error: RequestError, consequence: str) -> None:
        if (destination, consequence) not in self._reported_failures:
            self._reported_failures.add((destination, consequence))
            self._on_failure(
                f"Notification {destination} failed: {clip(sanitize(str(error)), 160)}; {consequence}"
            )

    async def deliver(self, destination: Destination, record: Record) -> None:
        """Try once to deliver an alert. Raises RequestError, without the webhook's URL, which is a secret."""
        if destination == "command":
            await run_command(self._command, payload(record, "json"), self._environ)
        else:
            await post_json(self._webhook, payload(record, self._body_format))


async def run_command(
    command: Sequence[str], body: bytes, environ: Mapping[str, str], timeout_s: float = 10.0
) -> None:
    """Run a program, without a shell, with the JSON on its standard input.

    The program's output is discarded; after the timeout, the program and its children are killed. Raises
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


async def post_json(url: str, body: bytes) -> None:
    """POST the JSON without following redirects. Raises RequestError, without the URL: it is a secret."""
    import httpx

    try:
        is_local = is_loopback(httpx.URL(url).host)  # then no proxy is used
        headers = {"content-type": "application/json"}
        async with (
            asyncio.timeout(WEBHOOK_TIMEOUT_S),
            httpx.AsyncClient(timeout=None, follow_redirects=False, trust_env=not is_local) as client,
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
