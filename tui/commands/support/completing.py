"""Shell completion of names from the server: queried with a timeout, else read from a cache.

This module is slow to import: only a tab press on a parameter for such names imports it. ``catalogue``
completes the rest.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace

from api_client import Remote, RetryPolicy, TrainingClient, resolve_remote
from api_client.models import TrainingJob
from api_client.remotes.trussrc import read_sections, trussrc_path
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.metrics import curves_of
from tui.analysis.series import latest
from tui.commands.support.options import (
    JOBS,
    METRICS,
    PROJECTS,
    REMOTES,
    CommandSettings,
    job_named,
)
from tui.commands.support.remotes import LOCAL_REMOTE, remote_name, running_local_remote
from tui.settings.remembered import State, change_state, read_state, state_path
from tui.text.sanitize import clip, sanitize
from tui.text.units import number

_SHELL_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/@+-]*\Z")


@dataclass(frozen=True)
class CachedWords(State):
    """The server's last response; ``job_id`` is set for checkpoints and metrics, which belong to a job."""

    asked_s: float = 0.0
    job_id: str | None = None
    words: list[tuple[str, str]] = field(default_factory=list)


Words = Sequence[Sequence[str]]
"""Pairs of a word and its description."""


def fetch_completions(kind: str, settings: CommandSettings, job_id: str | None, typed: str) -> Words:
    """Return the words of one kind at the chosen remote; checkpoints and metrics are those of ``job_id``.

    Jobs and projects are completed by name, or by id if several share the name; if ``typed`` is not empty,
    also by id. Words that a shell would execute, such as ``$(…)``, are left out.

    Takes at most two seconds, then uses the last response of the server. Does not start an emulator or
    renew a login. Raises any error that occurs.
    """
    if kind == REMOTES:
        remotes = dict.fromkeys(read_sections(trussrc_path(os.environ)), "of ~/.trussrc")
        pairs: Words = list(({LOCAL_REMOTE: "an emulator on this machine"} | remotes).items())
    elif kind in (JOBS, PROJECTS) or job_id is not None:
        pairs = _cached_or_fetched(settings, kind, None if kind in (JOBS, PROJECTS) else job_id)
    else:
        pairs = []
    if kind in (JOBS, PROJECTS):
        names = Counter(name for _, name in pairs)
        by_name = {item_id: name for item_id, name in pairs if names[name] == 1 and _SHELL_SAFE.match(name)}
        # Ids are offered only once a character is typed: a full list shows names, which users know.
        pairs = [
            *((name, item_id) for item_id, name in by_name.items()),
            *((item_id, name) for item_id, name in pairs if typed or item_id not in by_name),
        ]
    return [(word, description) for word, description in pairs if _SHELL_SAFE.match(word)]


def _completion_remote(settings: CommandSettings) -> Remote | None:
    """Return the chosen remote without login renewal: a renewal cut off half-way would lose the login."""
    name = remote_name(settings.remote_name)
    if name == LOCAL_REMOTE and name not in read_sections(trussrc_path(os.environ)):
        return running_local_remote()
    return replace(resolve_remote(name, environ=os.environ), login=None)


def _cached_or_fetched(settings: CommandSettings, kind: str, job_id: str | None) -> Words:
    """Return cached or fresh words; only ids and names are cached, in a private file for each kind."""
    remote = _completion_remote(settings)
    if remote is None:
        return []
    remote_hash = hashlib.sha256(f"{remote.name} {remote.api_url}".encode()).hexdigest()[:16]
    path = state_path(f"completion-{remote_hash}-{kind}.json")
    cached_words = read_state(path, CachedWords)
    if cached_words.job_id != job_id:
        cached_words = CachedWords()
    now_s = time.time()
    # A response is reused for 15 s, because users press tab several times.
    if (
        not 0 <= now_s - cached_words.asked_s < 15.0
        and (fetched_words := _fetch_with_timeout(remote, kind, job_id)) is not None
    ):
        pairs = [(word, description) for word, description in fetched_words if len(word) <= 120]
        response = cached_words = CachedWords(asked_s=now_s, job_id=job_id, words=pairs[:300])
        with suppress(OSError):
            change_state(path, CachedWords, lambda _previous: response)
    return cached_words.words


def _fetch_with_timeout(remote: Remote, kind: str, job_id: str | None) -> Words | None:
    """Query the server; return None if it does not respond in time or refuses."""
    client = TrainingClient(remote, retry=RetryPolicy(max_attempts=1))
    responses: list[Words] = []

    def fetch() -> None:
        with suppress(Exception):  # tab completion has nowhere to report errors
            responses.append(asyncio.run(_fetch(client, kind, job_id)))

    # A pending name lookup cannot be canceled, so its thread is left behind.
    fetch_thread = threading.Thread(target=fetch, daemon=True)
    fetch_thread.start()
    fetch_thread.join(2.0)
    return responses[0] if responses else None


async def _fetch(client: TrainingClient, kind: str, job_id: str | None) -> Words:
    async with client:
        if kind == JOBS:
            return [(job.id, _description(job.name)) for job in await client.jobs.search()]
        if kind == PROJECTS:
            return [(project.id, _description(project.name)) for project in await client.projects.list()]
        job = await job_named(client, job_id or "")
        if kind == METRICS:
            return await _logged_metrics(client, job)
        return [
            (checkpoint.checkpoint_id, "")
            for checkpoint in await client.checkpoints.list(job.project_id, job.id)
        ]


async def _logged_metrics(client: TrainingClient, job: TrainingJob) -> Words:
    """Return the curves in the newest batch of log lines that has any."""
    fold = ProgressFold()
    start = job.earliest_time(client.clock.now())
    history = client.logs.history(job.project_id, job.id, start=start, newest_first=True)
    async with aclosing(history) as batches:
        async for batch in batches:
            fold.add(batch.entries)
            if curves := curves_of(fold.snapshot()):
                return [(curve.name, number(latest(curve.series))) for curve in curves]
    return []


def _description(name: str | None) -> str:
    return clip(sanitize(name or ""), 50)
